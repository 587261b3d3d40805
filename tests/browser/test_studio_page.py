"""The studio's page in a browser: what a user does there has its effect.

A browser that draws without a graphics card takes seconds for each; most run in `make soak`.
"""

from __future__ import annotations

import csv
import shlex
import time
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import pytest

from simbridge.browser.address import PortInUse
from simbridge.browser.studio import studio
from simbridge.recording.log_reader import read_log
from simbridge.robot.kinematics import tool_frame
from tests.chromium import patient_context
from tests.patience import PATIENCE
from tests.ports import free_port

pytestmark = pytest.mark.shares_setup

SIZE = (1280, 800)


def wait_for(reached, what):
    end = time.monotonic() + PATIENCE
    while True:
        result = reached()
        if result:
            return result
        assert time.monotonic() < end, what
        time.sleep(0.05)


class Opened:
    """A page of a studio, with what its console said."""

    def __init__(self, browser: Any, made: Any, size: tuple[int, int] = SIZE) -> None:
        self.made = made
        self.size = size
        width, height = size
        self.context = patient_context(browser, viewport={"width": width, "height": height})
        self.page = self.context.new_page()
        self.errors: list[str] = []
        self.page.on("console", lambda m: self.errors.append(m.text) if m.type == "error" else None)
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.goto(made.url)
        self.page.get_by_role("tab", name="Goal").wait_for(timeout=1e3 * PATIENCE)
        self.number = max(wait_for(lambda: set(made._pages), "the page has arrived"))

    def tab(self, name: str) -> None:
        self.page.get_by_role("tab", name=name).click()

    def press(self, name: str) -> None:
        self.page.get_by_role("button", name=name).first.click()

    def says(self, words: str) -> None:
        wait_for(
            lambda: words in self.page.inner_text("body"),
            f"{words!r} in {self.page.inner_text('body')}",
        )

    def field(self, label: str) -> Any:
        """The field of a control; viser does not connect all of them with their labels."""
        row = "ancestor::div[contains(@class, 'mantine-Flex-root')][1]"
        return self.page.locator(
            f"xpath=//label[normalize-space(text())='{label}']/{row}//input[not(@type='hidden')]"
        ).last

    def fill(self, label: str, text: str) -> None:
        field = self.field(label)
        field.fill(text)
        field.press("Enter")
        field.blur()

    def choose(self, label: str, option: str) -> None:
        self.field(label).click()
        self.page.get_by_role("option", name=option, exact=True).first.click()

    def on_screen(self, point):
        """Where a point in base_link is seen, in pixels, by the page's camera."""
        camera = self.made._server.get_clients()[self.number].camera
        w, x, y, z = camera.wxyz
        rotation = np.array([
            [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
            [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
            [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
        ])  # fmt: skip
        seen = rotation.T @ (np.asarray(point) - camera.position)
        focal = 0.5 * self.size[1] / np.tan(0.5 * camera.fov)
        width, height = self.size
        x = width / 2 + focal * seen[0] / seen[2]
        y = height / 2 + focal * seen[1] / seen[2]
        return x, y


@pytest.fixture(scope="module")
def ur10():
    """One studio of a UR10 for the tests of this module."""
    made = studio(port=free_port())
    yield made
    made.close()


@pytest.fixture(scope="module")
def planar():
    made = studio(
        "square_corners", robot="planar3r", solver="damped-least-squares", port=free_port()
    )
    yield made
    made.close()


@pytest.fixture
def open_page(browser):
    pages = []

    def one(made: Any, size: tuple[int, int] = SIZE) -> Opened:
        pages.append(Opened(browser, made, size))
        return pages[-1]

    yield one
    for page in pages:
        page.context.close()
    for page in pages:
        wait_for(lambda page=page: page.number not in page.made._pages, "the page has left")


def tool(made):
    arm = made.workspace.arm
    return tool_frame(arm.robot, arm.q).translation


def test_it_loads_without_an_error(open_page, ur10):
    page = open_page(ur10)

    page.says("The arm is at the goal.")

    assert page.errors == []


@pytest.mark.soak
def test_a_drag_of_the_goal_takes_the_arm_there(open_page, ur10):
    page = open_page(ur10)
    page.says("The arm is at the goal.")
    goal = ur10.workspace.goal
    # An arrow of the frame, which is drawn at this scale.
    centre, tip = (np.array(page.on_screen(goal.act(np.array([x, 0.0, 0.0])))) for x in (0.0, 0.27))
    page.page.mouse.move(*tip)
    page.page.mouse.down()
    for share in np.linspace(0.0, 1.0, 10):
        page.page.mouse.move(*(tip + share * (tip - centre)))
    page.page.mouse.up()
    moved = wait_for(
        lambda: np.linalg.norm(ur10.workspace.goal.translation - goal.translation) > 0.05,
        "the goal moved",
    )
    assert moved
    wait_for(
        lambda: np.linalg.norm(tool(ur10) - ur10.workspace.goal.translation) < 1e-3,
        "the arm is there",
    )
    assert page.errors == []


@pytest.mark.soak
def test_a_typed_goal_takes_the_arm_there(open_page, ur10):
    page = open_page(ur10)
    page.says("The arm is at the goal.")

    place = page.field("position, m")
    place.fill("")
    place.press_sequentially("0.456", delay=250)
    wait_for(lambda: abs(ur10.workspace.goal.translation[2] - 0.456) < 1e-6, ur10.workspace.goal)
    wait_for(lambda: abs(tool(ur10)[2] - 0.456) < 1e-3, "the arm is there")


@pytest.mark.soak
def test_a_setting_changes_and_is_reset(open_page, ur10):
    page = open_page(ur10)

    page.tab("Solver")
    page.fill("error clamp, m and rad", "0.1 0.25")
    wait_for(
        lambda: ur10.workspace.arm.setup.solver_settings.error_clamp == (0.1, 0.25), "the setting"
    )
    assert "--solver.error-clamp 0.1 0.25" in ur10.workspace.setup.command("circle")

    page.press("Reset error clamp, m and rad")
    wait_for(
        lambda: ur10.workspace.arm.setup.solver_settings.error_clamp == (0.2, 0.5), "the default"
    )


@pytest.mark.soak
def test_a_value_without_sense_is_a_sentence(open_page, ur10):
    page = open_page(ur10)
    page.tab("Solver")
    for wrong in ("-1 1", "fast"):
        page.fill("error clamp, m and rad", wrong)
        wait_for(lambda: "solver.error_clamp" in ur10.workspace.view.problem, wrong)
        field = page.field("error clamp, m and rad")
        wait_for(
            lambda field=field: field.input_value() == "0.2 0.5",
            "the control shows the value before",
        )
        said = page.page.get_by_text("⚠").bounding_box()
        below = said["y"] - field.bounding_box()["y"] - field.bounding_box()["height"]
        assert 0.0 < below < 40.0, "the sentence is at the control"
    assert ur10.workspace.arm.setup.solver_settings.error_clamp == (0.2, 0.5)
    page.fill("error clamp, m and rad", "0.2 0.4")
    wait_for(lambda: not ur10.workspace.view.problem, "the sentence is gone")
    page.press("Reset error clamp, m and rad")


@pytest.mark.soak
def test_a_table_shows_two_solvers(open_page, ur10):
    page = open_page(ur10)

    page.tab("Solver")
    page.choose("second solver", "jacobian-transpose")
    page.says("jacobian-transpose")
    wait_for(lambda: len(ur10.workspace.view.rivals) == 2, "the table")
    names = [row[0] for row in ur10.workspace.view.rivals]
    assert names == ["forward-dynamics", "jacobian-transpose"]
    page.choose("second solver", "none")
    wait_for(lambda: not ur10.workspace.view.rivals, "one solver")


@pytest.mark.soak
def test_a_kept_session_repeats_to_the_bit(
    open_page, ur10, cli, short_pages, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    page = open_page(ur10)
    page.tab("Scenario")
    page.press("Keep this")
    sentence = wait_for(lambda: ur10.workspace.view.playing.partition("Kept: ")[2], "kept")
    kept = Path(sentence.partition(". Its page")[0])
    command = sentence.split("`")[1]
    assert (kept / "report.html").is_file()
    assert cli(*shlex.split(command)[1:], "--out", "again").status == 0
    before = read_log(kept / "log.mcap")
    after = read_log(Path("again") / "log.mcap")
    assert np.array_equal(before.setpoint, after.setpoint[: len(before.setpoint)])
    page.fill("kept run", str(kept))
    page.press("Load")
    wait_for(lambda: ur10.workspace.playback.player, "it is loaded")
    page.press("Stop")


@pytest.mark.soak
def test_a_browser_that_returns_finds_its_state(open_page, ur10):
    page = open_page(ur10)
    page.says("The arm is at the goal.")
    page.fill("position, m", "0.5")
    wait_for(lambda: abs(ur10.workspace.goal.translation[2] - 0.5) < 1e-6, "the goal")
    page.tab("Iterate")
    page.fill("threshold, mm", "2.5")
    wait_for(lambda: ur10.workspace.playback.iterating == {"threshold": 2.5e-3}, "the threshold")

    page.page.reload()
    page.page.get_by_role("tab", name="Iterate").wait_for(timeout=1e3 * PATIENCE)
    page.number = max(
        wait_for(lambda: set(ur10._pages) - {page.number}, "the page has arrived again")
    )
    page.tab("Iterate")
    wait_for(lambda: page.field("threshold, mm").input_value() == "2.5", "the threshold is shown")
    page.press("Reset threshold, mm")
    wait_for(lambda: not ur10.workspace.playback.iterating, "the default")
    page.tab("Goal")
    wait_for(lambda: float(page.field("position, m").input_value()) == 0.5, "the goal is shown")
    assert ur10.access.driver == page.number


@pytest.mark.soak
def test_a_phone_shows_the_arm_above_the_panel(open_page, ur10):
    page = open_page(ur10, (390, 844))
    page.says("The arm is at the goal.")
    panel = page.page.get_by_text("simbridge studio").bounding_box()["y"]
    origins = np.zeros(3), tool(ur10)
    wait_for(
        lambda: all(0.0 < page.on_screen(place)[1] < panel for place in origins),
        "the arm is above the panel",
    )
    assert all(0.0 < page.on_screen(place)[0] < 390.0 for place in origins)


@pytest.mark.soak
def test_a_second_page_only_watches(open_page, ur10):
    first = open_page(ur10)
    second = open_page(ur10)

    second.says(f"Page {first.number} is driving")
    assert ur10.access.driver == first.number
    assert second.page.get_by_role("button", name="Start at home").is_disabled()

    second.press("Take control")
    wait_for(lambda: ur10.access.driver == second.number, "control")
    first.says(f"Page {second.number} is driving")


@pytest.mark.soak
def test_a_click_places_a_planar_goal(open_page, planar):
    page = open_page(planar)
    page.says("The arm is at the goal.")
    wanted = np.array([0.4, 0.7, 0.0])

    page.page.mouse.click(*page.on_screen(wanted))
    wait_for(lambda: np.linalg.norm(planar.workspace.goal.translation - wanted) < 0.01, "the goal")
    wait_for(lambda: np.linalg.norm(tool(planar) - wanted) < 0.01, "the arm")


@pytest.mark.soak
def test_a_double_click_places_a_planar_start(open_page, planar):
    page = open_page(planar)
    page.says("The arm is at the goal.")
    # Far from the frame of the goal, which takes clicks too.
    wanted = np.array([-0.4, 0.6, 0.0])

    def double_click():
        """Click twice; a page that takes more than a second to draw misses that it was twice."""
        page.page.mouse.dblclick(*page.on_screen(wanted))
        page.page.wait_for_timeout(3000.0)
        return np.linalg.norm(planar.workspace.start - wanted) < 0.01

    wait_for(double_click, "the start")
    assert np.linalg.norm(tool(planar) - wanted) < 0.01


@pytest.mark.soak
def test_iterations_are_saved(open_page, planar, tmp_path):
    page = open_page(planar)
    page.tab("Goal")
    page.press("Start at home")
    page.says("The arm is at the goal.")
    page.page.mouse.click(*page.on_screen([0.2, 0.9, 0.0]))
    wait_for(lambda: planar.workspace.goal.translation[1] > 0.85, "the goal")
    page.tab("Iterate")
    page.press("Iterate, a frame each")
    page.says("ms of computing")
    with page.page.expect_download() as download:
        page.press("Save iterations as CSV")
    download.value.save_as(tmp_path / "iterations.csv")
    rows = list(csv.DictReader((tmp_path / "iterations.csv").open()))
    assert float(rows[-1]["distance_m"]) <= 1e-3 < float(rows[-2]["distance_m"])
    end = [float(rows[-1][f"joint_3_end_{axis}_m"]) for axis in "xy"]
    assert end == pytest.approx([0.2, 0.9], abs=0.02)


@pytest.mark.soak
def test_a_scenario_is_played_over_the_run_before(open_page, planar):
    page = open_page(planar)
    page.tab("Scenario")
    page.press("Play")
    page.says("Tracking error of the whole run")
    first = planar.workspace.playback.player.run

    page.tab("Arm")
    page.fill("servo gain", "300")
    wait_for(lambda: planar.workspace.arm.setup.values.get("servo_gain") == 300.0, "the setting")
    page.tab("Scenario")
    page.press("Play")
    page.says("Previous run: ")
    player = planar.workspace.playback.player
    assert player.older is first
    assert player.run.tracking.mean() > first.tracking.mean()
    assert player.curves[0] is not None
    assert player.curves[1] is not None
    page.press("Stop")


@pytest.mark.soak
@pytest.mark.parametrize("size", [SIZE, (390, 844)], ids=["desktop", "phone"])
def test_the_plots_are_within_the_page(open_page, ur10, size):
    page = open_page(ur10, size)
    page.says("The arm is at the goal.")
    page.tab("Figures")
    page.says("manipulability")

    def panel():
        return page.page.evaluate("""() => {
            const shown = e => e.getBoundingClientRect().width > 0;
            const plots = [...document.querySelectorAll(".uplot canvas")].filter(shown);
            const right = plots.map(e => e.getBoundingClientRect().right);
            const title = document.querySelector(".u-title");
            return { right, colour: title && getComputedStyle(title).color };
        }""")

    light = wait_for(
        lambda: (found := panel())["colour"] and len(found["right"]) == 3 and found, "the plots"
    )
    assert max(light["right"]) <= size[0]
    page.page.get_by_text("dark", exact=True).click()
    wait_for(lambda: panel()["colour"] != light["colour"], "words in another colour")
    assert (
        page.page.evaluate("document.documentElement.scrollWidth") <= size[0] and page.errors == []
    )


def test_a_port_in_use_is_refused(ur10, cli):
    port = urlsplit(ur10.url).port
    with pytest.raises(PortInUse, match=str(port)):
        studio(port=port)

    answer = cli("studio", "--port", port, "--no-browser")

    assert answer.status == 2
    assert f"Port {port} of 127.0.0.1 is in use" in answer.message
