"""Texts that users and files control: pages show them as they are, and run none as script.

Every name, description, label and message holds a payload that would report itself if it became
HTML.
"""

from __future__ import annotations

import csv
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from xml.sax.saxutils import quoteattr

import numpy as np
import pytest
import tomli_w

from simbridge import Options, live
from simbridge.browser.studio import studio
from simbridge.cli.command_line import main
from simbridge.robot.cell_file import load_cell
from simbridge.robot.load import load_robot
from simbridge.sweeps.sweep import GRID
from simbridge.sweeps.sweep_page import sweep_page
from tests.browser.test_studio_page import wait_for
from tests.chromium import patient_context
from tests.patience import PATIENCE
from tests.ports import free_port
from tests.report.pages import leave_out_drawings
from tests.sweeps.rows import made_rows

pytestmark = pytest.mark.shares_setup

# A file name may hold it: there is no slash.
SCRIPT = "<img src=x onerror=window.pwned=1>"
# What else Markdown, HTML, templates and matplotlib would make something of.
MARKUP = "R&D &lt; a_b*c*_d $x$ {x} {{x}} `y` | ![i](x.png) [l](javascript:0) www.x.org 'q' \"q\""


def hostile(what: str) -> str:
    """A text that names what it stands for."""
    return f"{what} {SCRIPT} {MARKUP}"


JOINT = hostile("joint")
LINK = hostile("link")
ROBOT = hostile("robot")
OBSTACLE = hostile("obstacle")
SCENARIO = hostile("scenario")
DESCRIPTION = hostile("description")
LABEL = hostile("label")
SOLVER = hostile("solver")
NOTE = hostile("note")
RAISED = hostile("raised")
VARIANT = hostile("variant")
# A path becomes part of an address, and of the command that repeats a run.
FOLDER = f"folder {SCRIPT}"
ADDRESS = "javascript:window.pwned=1//"

# Joint positions, rad, from which the tool comes near the obstacle.
START = (0.3, 0.8)
URDF = """<robot name={robot}>
  <link name="base_link"/>
  <joint name={joint} type="revolute">
    <parent link="base_link"/><child link={link}/><axis xyz="0 0 1"/>
    <limit lower="-3" upper="3" velocity="2" effort="50"/>
  </joint>
  <link name={link}>
    <inertial><mass value="1"/><origin xyz="0.15 0 0"/>
      <inertia ixx="0.01" ixy="0" ixz="0" iyy="0.01" iyz="0" izz="0.01"/></inertial>
    <collision><origin xyz="0.15 0 0"/><geometry><box size="0.3 0.04 0.04"/></geometry></collision>
  </link>
  <joint name={second} type="revolute">
    <parent link={link}/><child link={tip}/><axis xyz="0 0 1"/><origin xyz="0.3 0 0"/>
    <limit lower="-3" upper="3" velocity="2" effort="50"/>
  </joint>
  <link name={tip}>
    <inertial><mass value="1"/><origin xyz="0.1 0 0"/>
      <inertia ixx="0.01" ixy="0" ixz="0" iyy="0.01" iyz="0" izz="0.01"/></inertial>
    <collision><origin xyz="0.1 0 0"/><geometry><box size="0.2 0.04 0.04"/></geometry></collision>
  </link>
  <joint name="flange" type="fixed">
    <parent link={tip}/><child link="tool0"/><origin xyz="0.2 0 0"/>
  </joint>
  <link name="tool0"/>
</robot>
"""

SCRIPT_FILE = """
import numpy as np
from pathlib import Path
from simbridge import Scenario
from simbridge.ik.settings import SOLVERS
from simbridge.robot.kinematics import tool_path
from simbridge.trajectory import Trajectory

def scenario(robot):
    if Path(__file__).with_name("fail").exists():
        raise ValueError({raised!r})
    turn = [1.0, -0.6] if Path(__file__).with_name("collide").exists() else [0.2, 0.3]
    q = np.array([0.3, 0.8]) + np.linspace(0.0, 1.0, 40)[:, None] * np.array(turn)
    trajectory = Trajectory(np.linspace(0.0, 2.0, 40), tool_path(robot, q), source={name!r})
    solver = SOLVERS["damped-least-squares"]().build(robot)

    def step(q, target):
        solver.reset(q)
        return solver.step(target)

    step.__name__ = {solver!r}
    return Scenario(trajectory, {description!r}, solver=step, name={name!r})
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with an arm, a cell and a scenario, all with hostile names."""
    directory = tmp_path_factory.mktemp("hostile") / FOLDER
    directory.mkdir()
    names = {
        "robot": ROBOT,
        "joint": JOINT,
        "link": LINK,
        "tip": f"tip {LINK}",
        "second": f"second {JOINT}",
    }
    urdf = URDF.format(**{name: quoteattr(text) for name, text in names.items()})
    (directory / "arm.urdf").write_text(urdf, encoding="utf-8")
    box = {"name": OBSTACLE, "centre": [0.1, 0.52, 0.0], "size": [0.1, 0.1, 0.1]}
    (directory / "cell.toml").write_text(tomli_w.dumps({"keep_out_boxes": [box]}), encoding="utf-8")
    script = SCRIPT_FILE.format(
        raised=RAISED, name=SCENARIO, solver=SOLVER, description=DESCRIPTION
    )
    (directory / f"{SCRIPT}.py").write_text(script, encoding="utf-8")
    return directory


@pytest.fixture(scope="module")
def pages(folder: Path, run_without_page: Callable[..., int]) -> dict[str, Path]:
    """Every page that is a file, by its kind."""
    arm = [
        "--robot",
        str(folder / "arm.urdf"),
        "--floor",
        "none",
        "--cell",
        str(folder / "cell.toml"),
    ]
    repeats = folder / "repeats"
    script = str(folder / f"{SCRIPT}.py")
    flags = ("--speed-scale", "2", "--label", LABEL, "--repeat", "2", "--out", repeats)
    assert run_without_page(script, *arm, *flags) == 0
    first = repeats / "01"
    second = repeats / SCRIPT
    shutil.copytree(first, second)
    assert main(["report", str(second)]) == 0
    assert main(["compare", str(first), str(second), "--out", str(folder / "runs")]) == 0

    session = folder / "session"
    # The report above has the drawings of a run; those of a session remain.
    with pytest.MonkeyPatch.context() as patch:
        leave_out_drawings(patch)
        _record_session(folder, session)

    return {
        "report": second / "report.html",
        "replay": second / "replay.html",
        "repeats": repeats / "report.html",
        "compare": folder / "runs" / "compare.html",
        "session": session / "report.html",
        "sweep": _write_sweep(folder / f"one {SCRIPT}", 1.0) / "sweep.html",
        "sweeps": _compare_sweeps(folder) / "compare.html",
    }


def _record_session(folder: Path, out: Path) -> None:
    """A session whose first joint is at its velocity limit, with an event of the caller's."""
    robot = load_robot(folder / "arm.urdf")
    options = {"cell": load_cell(folder / "cell.toml"), "floor": "none"}
    with live(
        "pybullet",
        robot=robot,
        solver="damped-least-squares",
        out=out,
        realtime=False,
        start=START,
        **options,
    ) as session:
        session.engage()
        session.note(NOTE, fact=hostile("fact"))
        for progress in np.linspace(0.0, 1.0, 30):
            session.joints(np.array(START) + progress * np.array([1.0, -0.6]))
            session.wait(0.016)


def _write_sweep(directory: Path, error: float) -> Path:
    """A sweep as it is after somebody edited its results.csv."""
    directory.mkdir()
    variants = (VARIANT, f"another {VARIANT}")
    rows = made_rows(lambda gain, solver: error * gain, servo_gain=(500, 900), solver=variants)
    for row in rows:
        row["scenario"] = SCENARIO
        row["directory"] = ADDRESS
    rows[-1]["outcome"] = hostile("outcome")
    with open(directory / "results.csv", "w", newline="", encoding="utf-8") as file:
        table = csv.DictWriter(file, rows[0])
        table.writeheader()
        table.writerows(rows)
    (directory / GRID).touch()
    (directory / "sweep.html").write_text(sweep_page(rows, directory.name), encoding="utf-8")
    return directory


def _compare_sweeps(folder: Path) -> Path:
    """The page of two sweeps, in a directory that is returned."""
    second = _write_sweep(folder / f"two {SCRIPT}", 2.0)
    out = folder / "sweeps"
    assert main(["compare", str(folder / f"one {SCRIPT}"), str(second), "--out", str(out)]) == 0
    return out


class Visit:
    """A page in a browser, and what its texts have done there."""

    def __init__(self, browser: Any, address: str) -> None:
        self.context = patient_context(browser, viewport={"width": 1280, "height": 800})
        self.page = self.context.new_page()
        self.requests: list[str] = []
        self.dialogs: list[str] = []
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.on(
            "dialog", lambda dialog: (self.dialogs.append(dialog.message), dialog.dismiss())
        )
        self.page.goto(address)

    @property
    def text(self) -> str:
        """The text of the page, hidden parts included."""
        return str(self.page.evaluate("document.body.textContent"))

    def assert_nothing_ran(self) -> None:
        """No text became an element that runs, loads or leads anywhere."""
        assert self.page.evaluate("window.pwned") is None
        assert self.dialogs == []
        assert [url for url in self.requests if url.endswith(("/x", "x.png"))] == []
        assert (
            self.page.locator("body [onerror], body img[src='x'], body img[src='x.png']").count()
            == 0
        )
        assert self.page.locator("a[href^='javascript:'], a[href*='www.x.org']").count() == 0


@pytest.fixture
def visit(browser: Any) -> Iterator[Any]:
    visits: list[Visit] = []

    def open_address(address: str) -> Visit:
        visits.append(Visit(browser, address))
        return visits[-1]

    yield open_address
    for visited in visits:
        visited.context.close()


@pytest.mark.parametrize(
    ("name", "texts"),
    [
        ("report", (SCENARIO, DESCRIPTION, ROBOT, SOLVER, LABEL, JOINT, OBSTACLE, FOLDER)),
        ("replay", (SCENARIO, ROBOT)),
        ("repeats", (SCENARIO, SOLVER, LABEL)),
        ("compare", (SCENARIO, SOLVER, LABEL, SCRIPT)),
        ("session", (ROBOT, JOINT, OBSTACLE, NOTE)),
        ("sweep", (SCENARIO, VARIANT, f"one {SCRIPT}")),
        ("sweeps", (VARIANT, f"one {SCRIPT}")),
    ],
)
def test_a_page_shows_hostile_texts_literally(
    visit: Any, pages: dict[str, Path], name: str, texts: tuple[str, ...]
) -> None:
    page = visit(pages[name].as_uri())

    shown = page.text

    assert [text for text in texts if text not in shown] == []
    page.assert_nothing_ran()


def test_a_drawing_shows_a_name_literally(visit: Any, pages: dict[str, Path]) -> None:
    page = visit(pages["session"].as_uri())

    labels = page.page.locator("svg text").all_text_contents()

    assert any(f"obstacle {OBSTACLE}" in label for label in labels)


def test_the_studio_shows_hostile_texts_literally(visit: Any, folder: Path) -> None:
    script = folder / f"{SCRIPT}.py"
    options = Options(cell=load_cell(folder / "cell.toml"), floor="none")
    arm = {"robot": str(folder / "arm.urdf"), "solver": "damped-least-squares", "options": options}
    server = studio(str(script), **arm, port=free_port())
    try:
        page = visit(server.url)
        page.page.get_by_role("tab", name="Goal").wait_for(timeout=1e3 * PATIENCE)

        # The table of joints and the legends of two plots.
        page.page.get_by_role("tab", name="Figures").click()
        wait_for(lambda: page.text.count(JOINT) >= 3, "names of joints")

        # What limits the arm, in the sentence at the top.
        page.page.get_by_role("tab", name="Goal").click()
        field = page.page.locator(
            "xpath=//label[text()='position, m']/ancestor::div[.//input][1]//input"
        ).first
        field.fill("-0.4")
        field.press("Enter")
        wait_for(
            lambda: f"{JOINT} is at its velocity limit" in page.text,
            "the joint that limits the arm",
        )

        # A scenario that is played, one that fails, one that collides, and a run that is not there.
        page.page.get_by_role("tab", name="Scenario").click()
        page.page.get_by_role("button", name="Play").click()
        wait_for(lambda: f"{script}, " in page.text, "what is played")
        (folder / "fail").touch()
        page.page.get_by_role("button", name="Stop").click()
        page.page.get_by_role("button", name="Play").click()
        wait_for(lambda: RAISED in page.text, "what the scenario raised")
        (folder / "fail").rename(folder / "collide")
        page.page.get_by_role("button", name="Play").click()
        wait_for(lambda: f"tip {LINK}" in page.text, "the link that collides")
        missing = page.page.locator(
            "xpath=//label[text()='kept run']/ancestor::div[.//input][1]//input"
        ).first
        missing.fill(f"missing {SCRIPT}")
        page.page.get_by_role("button", name="Load").click()
        wait_for(lambda: f"missing {SCRIPT}" in page.text, "the run that is not there")

        page.assert_nothing_ran()
    finally:
        server.close()
