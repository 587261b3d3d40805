from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simbridge.emulator.dashboard import MAX_LINE, NOT_ALLOWED, Dashboard, DashboardConnection
from simbridge.emulator.errors import ProtocolViolation
from simbridge.emulator.state import PROFILES
from simbridge.ur.tables import RobotMode, RuntimeState, SafetyMode
from tests.emulator.fake_controller import FakeController, RealController, write_program
from tests.properties import few_examples

# PolyScope X has no dashboard.
VERSIONS = [name for name, profile in PROFILES.items() if not profile.is_polyscope_x]


def ask(line: str, controller: FakeController | None = None) -> str:
    return Dashboard(controller or FakeController("5.12")).answer(line)


@pytest.mark.parametrize(
    ("line", "answer"),
    [
        ("robotmode", "Robotmode: RUNNING"),
        ("safetymode", "Safetymode: NORMAL"),
        ("safetystatus", "Safetystatus: NORMAL"),
        ("running", "Program running: false"),
        ("programState", "STOPPED <unnamed>"),
        ("get loaded program", "No program loaded"),
        ("PolyscopeVersion", "URSoftware 5.12.6.1102099 (Sep 21 2023)"),
        ("version", "5.12.6.1102099"),
        ("get serial number", "20261234567"),
        ("get robot model", "UR10"),
        ("is in remote control", "true"),
        ("popup two words", "showing popup"),
        ("close popup", "closing popup"),
        ("close safety popup", "closing safety popup"),
        ("addToLog a line", "Added log message"),
        ("addToLog", "No log message to add"),
        ("power on", "Powering on"),
        ("power off", "Powering off"),
        ("brake release", "Brake releasing"),
        ("unlock protective stop", "Protective stop releasing"),
        ("restart safety", "Restarting safety"),
        ("load a.urp", "File not found: a.urp"),
        ("load a.txt", "File not found: a.txt"),
        ("load installation cell.installation", "Loading installation: cell.installation"),
        ("load installation cell.txt", "File not found: cell.txt"),
        ("stop", "Failed to execute: stop"),
        ("pause", "Failed to execute: pause"),
        ("play", "Starting program"),
        ("get operational mode", "NONE"),
        ("set operational mode manual", "Operational mode MANUAL is set"),
        ("set operational mode lazy", "Failed setting operational mode: lazy"),
        ("saveLog", "Log saved to disk"),
        ("quit", "Disconnected"),
        ("shutdown", "Shutting down"),
        ("  ROBOTMODE ", "Robotmode: RUNNING"),
        ("make coffee", "could not understand: 'make coffee'"),
        ("robotmodel", "could not understand: 'robotmodel'"),
    ],
)
def test_commands_have_their_documented_answers(line: str, answer: str) -> None:
    assert ask(line) == answer


@pytest.mark.parametrize(
    ("line", "known"),
    [
        ("is in remote control", {"5.9", "5.12", "5.25"}),
        ("safetystatus", {"5.9", "5.12", "5.25"}),
        ("get operational mode", {"5.9", "5.12", "5.25"}),
        ("setUserRole operator", {"3.15"}),
        ("getUserRole", {"3.15"}),
        ("get serial number", {"3.15", "5.9", "5.12", "5.25"}),
        ("get robot model", {"3.15", "5.9", "5.12", "5.25"}),
    ],
)
def test_a_command_is_understood_from_its_first_version_on(line: str, known: set[str]) -> None:
    understood = {
        name for name in VERSIONS if "could not understand" not in ask(line, FakeController(name))
    }

    assert understood == known


@pytest.mark.parametrize("polyscope", VERSIONS)
def test_the_version_is_the_profiles(polyscope: str) -> None:
    controller = FakeController(polyscope)
    version = ".".join(str(part) for part in controller.profile.version)

    assert (
        ask("PolyscopeVersion", controller) == f"URSoftware {version} ({controller.profile.date})"
    )


@pytest.mark.parametrize(
    "name", ["a.urp", "sub/b.urp", "/programs/a.urp", "/ursim/programs/sub/b.urp"]
)
def test_program_of_any_name_is_loaded(name: str, tmp_path: Path) -> None:
    controller = FakeController()
    controller.programs = tmp_path
    write_program(tmp_path / "a.urp")
    write_program(tmp_path / "sub" / "b.urp")

    assert (
        ask(f"load {name}", controller)
        == f"Loading program: {name if name[0] == '/' else f'/programs/{name}'}"
    )


@pytest.mark.parametrize(
    "name",
    [
        "none.urp",
        "../outside.urp",
        "a.script",
        "/etc/a.urp",
        "sub",
        "",
        f"{'a' * 300}.urp",
        "a\0b.urp",
    ],
)
def test_a_program_outside_of_the_folder_is_not_found(name: str, tmp_path: Path) -> None:
    controller = FakeController()
    controller.programs = tmp_path / "programs"
    write_program(tmp_path / "outside.urp")
    (write_program(tmp_path / "programs" / "sub" / "b.urp").parent / "a.script").touch()

    assert ask(f"load {name}", controller).startswith("File not found: ")


def test_a_program_whose_file_has_changed_is_played_as_changed(tmp_path, monkeypatch) -> None:
    controller = RealController("ur10e", "5.12")
    controller.programs = tmp_path
    started: list[str] = []
    load = controller.load_script

    def note(source: str) -> None:
        started.append(source)
        load(source)

    monkeypatch.setattr(controller, "load_script", note)
    file = write_program(tmp_path / "weld.urp")
    connection = DashboardConnection(Dashboard(controller))
    connection.receive(b"load weld.urp\n")

    assert connection.receive(b"play\nstop\n") == b"Starting program\nStopped\n"

    write_program(file, '<Wait type="Sleep"><waitTime>1</waitTime></Wait>')

    assert connection.receive(b"play\n") == b"Starting program\n"
    assert started[0] != started[1]
    assert "sleep(1" in started[1]


def test_a_client_that_floods_play_starts_one_program_a_piece(tmp_path, monkeypatch) -> None:
    controller = RealController("ur10e", "5.12")
    controller.programs = tmp_path
    write_program(tmp_path / "weld.urp")
    connection = DashboardConnection(Dashboard(controller))
    started = []
    load = controller.load_script
    monkeypatch.setattr(controller, "load_script", lambda source: started.append(load(source)))
    connection.receive(b"load weld.urp\n")

    answers = connection.receive(b"play\nstop\n" * 40).decode().splitlines()

    assert answers[:3] == ["Starting program", "Stopped", "Failed to execute: play"]
    assert len(answers) == 80
    assert len(started) == 1
    assert connection.receive(b"play\nstop\n") == b"Starting program\nStopped\n"


def test_a_program_is_loaded_played_paused_and_stopped(tmp_path: Path) -> None:
    controller = FakeController("5.12")
    controller.programs = tmp_path
    write_program(tmp_path / "weld.urp")
    dashboard = Dashboard(controller)
    lines = [
        "load weld.urp",
        "get loaded program",
        "isProgramSaved",
        "play",
        "running",
        "programState",
        "pause",
    ]
    lines += ["programState", "running", "play", "stop", "programState"]

    assert [dashboard.answer(line) for line in lines] == [
        "Loading program: /programs/weld.urp",
        "Loaded program: /programs/weld.urp",
        "true weld.urp",
        "Starting program",
        "Program running: true",
        "PLAYING weld.urp",
        "Pausing program",
        "PAUSED weld.urp",
        "Program running: false",
        "Starting program",
        "Stopped",
        "STOPPED weld.urp",
    ]


@pytest.mark.parametrize(
    ("polyscope", "answer"), [("3.15", "False <unnamed>"), ("5.12", "false <unnamed>")]
)
def test_without_a_program_nothing_is_saved(polyscope: str, answer: str) -> None:
    assert ask("isProgramSaved", FakeController(polyscope)) == answer


@pytest.mark.parametrize("mode", RobotMode)
def test_robot_modes_have_their_names(mode: RobotMode) -> None:
    controller = FakeController("5.12")
    controller.state.robot_mode = mode

    assert ask("robotmode", controller) == f"Robotmode: {mode.name}"


@pytest.mark.parametrize("mode", SafetyMode)
def test_safety_modes_have_their_names(mode: SafetyMode) -> None:
    controller = FakeController("5.12")
    controller.state.safety_mode = mode

    assert ask("safetymode", controller) == f"Safetymode: {mode.name}"


@pytest.mark.parametrize("state", RuntimeState)
def test_a_program_is_playing_paused_or_stopped(state: RuntimeState) -> None:
    controller = FakeController("5.12")
    controller.state.runtime_state = state

    assert ask("programState", controller).split()[0] in ("PLAYING", "PAUSED", "STOPPED")


def test_in_local_control_an_e_series_answers_questions_only() -> None:
    controller = FakeController("5.12")
    controller.remote_control = False
    commands = [
        "power on",
        "power off",
        "brake release",
        "play",
        "stop",
        "pause",
        "load a.urp",
        "unlock protective stop",
    ]

    assert {ask(line, controller) for line in commands} == {NOT_ALLOWED}
    assert controller.calls == []
    assert ask("is in remote control", controller) == "false"
    assert ask("robotmode", controller) == "Robotmode: RUNNING"


def test_cb3_has_no_local_control() -> None:
    controller = FakeController("3.15")
    controller.remote_control = False

    assert ask("power on", controller) == "Powering on"


def test_the_user_role_is_kept_and_checked() -> None:
    dashboard = Dashboard(FakeController("3.15"))

    assert dashboard.answer("setUserRole operator") == "Setting user role: operator"
    assert dashboard.answer("setUserRole king") == "Failed setting user role: king"
    assert dashboard.answer("getUserRole") == "OPERATOR"


def test_the_operational_mode_can_be_cleared() -> None:
    dashboard = Dashboard(FakeController("5.12"))
    dashboard.answer("set operational mode automatic")

    assert dashboard.answer("get operational mode") == "AUTOMATIC"
    assert "AUTOMATIC" in dashboard.answer("clear operational mode")
    assert dashboard.answer("get operational mode") == "NONE"


def test_cleared_operational_mode_is_per_client() -> None:
    dashboard = Dashboard(FakeController())
    first = DashboardConnection(dashboard)
    second = DashboardConnection(dashboard)
    first.receive(b"set operational mode manual\nclear operational mode\n")

    assert first.receive(b"is in remote control\n") == b"false\n"
    assert second.receive(b"is in remote control\n") == b"true\n"
    assert first.receive(b"is in remote control\n") == b"false\n"


def test_popups_reach_the_controller_with_their_text() -> None:
    controller = FakeController("5.12")
    ask("popup Mind the Gap", controller)
    ask("close popup", controller)

    assert controller.calls == [("popup", "Mind the Gap"), ("close_popup",)]


def test_lines_may_arrive_in_any_pieces() -> None:
    connection = DashboardConnection(Dashboard(FakeController("5.12")))
    pieces = [b"robot", b"mode\r\nsafety", b"mode\n\n", b"power"]

    assert [connection.receive(piece) for piece in pieces] == [
        b"",
        b"Robotmode: RUNNING\n",
        b"Safetymode: NORMAL\n",
        b"",
    ]


def test_unknown_command_is_reported_with_bytes() -> None:
    controller = FakeController("5.12")
    Dashboard(controller).answer("dance well")
    (event,) = controller.events

    assert event.kind == "unknown"
    assert "5.12" in event.text
    assert event.data == b"dance well"


def test_nothing_is_answered_after_quit() -> None:
    connection = DashboardConnection(Dashboard(FakeController("5.12")))

    assert connection.receive(b"quit\nrobotmode\n") == b"Disconnected\n"
    assert connection.finished


@pytest.mark.parametrize("data", [b"x" * (MAX_LINE + 1), b"x" * (MAX_LINE + 1) + b"\n"])
def test_a_line_that_does_not_end_is_a_violation(data: bytes) -> None:
    with pytest.raises(ProtocolViolation) as caught:
        DashboardConnection(Dashboard(FakeController("5.12"))).receive(data)
    assert caught.value.protocol == "dashboard"


@few_examples(40, soak=2000)
@given(
    st.lists(st.one_of(st.binary(max_size=60), st.text(max_size=30).map(str.encode)), max_size=8)
)
def test_every_filled_line_is_answered(chunks: list[bytes]) -> None:
    connection = DashboardConnection(Dashboard(FakeController("5.12")))
    answers = b"".join(connection.receive(chunk) for chunk in chunks)
    lines = [
        line for line in b"".join(chunks).split(b"\n")[:-1] if line.decode(errors="replace").strip()
    ]
    said_goodbye = [line.decode(errors="replace").strip().lower() == "quit" for line in lines]
    heard = said_goodbye.index(True) + 1 if True in said_goodbye else len(lines)

    assert answers.count(b"\n") == heard
