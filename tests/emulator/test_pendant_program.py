"""Programs of the pendant: each node as URScript, and what a program does to a controller."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from simbridge.emulator.dashboard import Dashboard
from simbridge.emulator.emulated_controller import EmulatedController
from simbridge.emulator.errors import UnknownNode
from simbridge.emulator.pendant_program import translate
from simbridge.emulator.program import ScriptProgram
from simbridge.emulator.state import profile
from simbridge.emulator.urscript.compiler import compile_script
from simbridge.emulator.urscript.library import describe
from simbridge.robot import load_robot
from simbridge.ur.tables import RobotMode
from tests.emulator.fake_controller import write_program

LIBRARY_DESCRIPTIONS = describe({})
ROBOT = load_robot("ur10e")
WAYPOINT = """<Waypoint type="Fixed" name="W"><motionParameters {}/>
    <position><JointAngles angles="0.1, -1.5, 1.5, -1.5, -1.5, 0.2"/></position></Waypoint>"""
SLEEP = '<Wait type="Sleep"><waitTime>0.01</waitTime></Wait>'
SET = (
    '<Set type="DigitalOutput"><pin referencedName="digital_out[{}]"/>'
    "<digitalValue>1</digitalValue></Set>"
)
CAP = '<Contributed strategyProgramNodeType="Grip" strategyURCapName="Gripper"/>'


def expression(text: str) -> str:
    """As PolyScope writes it: a node a character."""
    letters = [f'<ExpressionChar character="{letter}"/>' for letter in text]
    return f"<expression>{''.join(letters)}</expression>"


def body(folder: Path, *nodes: str) -> list[str]:
    """The URScript lines of a program with these nodes, without the frame around them."""
    return [
        line.strip()
        for line in translate(write_program(folder / "p.urp", *nodes)).splitlines()[1:-1]
    ]


@pytest.mark.parametrize(
    ("node", "lines"),
    [
        (SLEEP, ["sleep(0.01)"]),
        ('<Wait type="NoWait"/>', []),
        ('<Comment comment="hello"/>', []),
        (f'<Wait type="Condition">{expression("x")}</Wait>', ["while not (x):", "sync()", "end"]),
        (f'<Script type="Line">{expression("sync()")}</Script>', ["sync()"]),
        (
            '<Script type="File"><cachedContents>a = 1\nsync()</cachedContents></Script>',
            ["a = 1", "sync()"],
        ),
        (f'<Assignment><variable name="n"/>{expression("2")}</Assignment>', ["global n = 2"]),
        (SET.format(3), ["set_standard_digital_out(3, True)"]),
        (f"<Folder><children>{SLEEP}</children></Folder>", ["sleep(0.01)"]),
        (
            f'<Loop type="Always"><children>{SLEEP}</children></Loop>',
            ["while True:", "sleep(0.01)", "sync()", "end"],
        ),
        ("<Halt/>", ["halt"]),
        (
            '<Move motionType="MoveJ" speed="1.0" acceleration="1.4"><children>'
            + WAYPOINT.format("")
            + "</children></Move>",
            ["movej([0.1, -1.5, 1.5, -1.5, -1.5, 0.2], a=1.4, v=1.0)"],
        ),
        (
            '<Move motionType="MoveL" speed="0.2" acceleration="1.1"><children>'
            + WAYPOINT.format('cartesianSpeed="0.1"')
            + "</children></Move>",
            ["movel([0.1, -1.5, 1.5, -1.5, -1.5, 0.2], a=1.1, v=0.1)"],
        ),
        (
            '<Move motionType="MoveP" speed="0.2" acceleration="1.1"><children>'
            + WAYPOINT.format('blendRadius="0.012"')
            + "</children></Move>",
            ["movep([0.1, -1.5, 1.5, -1.5, -1.5, 0.2], a=1.1, v=0.2, r=0.012)"],
        ),
        (
            '<InitVariablesNode><children><Assignment><variable name="n"/>'
            + expression("2")
            + "</Assignment></children></InitVariablesNode>",
            ["global n = 2"],
        ),
        ('<Popup message="hello"/>', ['popup("hello", blocking=True)']),
    ],
)
def test_each_known_node_is_translated(node: str, lines: list[str], tmp_path: Path) -> None:
    assert body(tmp_path, node) == lines


def test_repeated_main_program_is_a_loop(tmp_path: Path) -> None:
    text = translate(write_program(tmp_path / "p.urp", SLEEP, once=False))

    assert text.split() == ["def", "p():", "while", "True:", "sleep(0.01)", "sync()", "end", "end"]


@pytest.mark.parametrize(
    ("node", "named"),
    [
        (CAP, "Grip, of the URCap Gripper"),
        ("<Palletizing/>", "Palletizing"),
        ('<Wait type="AnalogInput"/>', "Wait of the type AnalogInput"),
        ('<Move motionType="MoveX"/>', "Move of the type MoveX"),
        ("<InitVariablesNode><values/></InitVariablesNode>", "InitVariablesNode with values"),
        (
            '<Popup message="a&quot;) set_flag(0, True) popup(&quot;"/>',
            "Popup with a quotation mark or several lines, which no text of URScript has",
        ),
        (f"<Folder><children>{CAP}</children></Folder>", "Grip, of the URCap Gripper"),
    ],
)
def test_unknown_node_is_refused_by_name(node: str, named: str, tmp_path: Path) -> None:
    with pytest.raises(UnknownNode) as error:
        translate(write_program(tmp_path / "p.urp", SLEEP, node))
    assert (error.value.file, error.value.node) == ("p.urp", named)


@pytest.mark.parametrize(
    "name", ["größe", "end", "True", "1st", "my program", "sec", "пуск", "plain"]
)
def test_a_program_compiles_whatever_its_files_name(name: str, tmp_path: Path) -> None:
    text = translate(write_program(tmp_path / f"{name}.urp", SLEEP))

    assert compile_script(text, LIBRARY_DESCRIPTIONS).main
    assert name != "plain" or text.startswith("def plain():")


def test_a_program_that_is_too_large_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UnknownNode, match="more than 4 MiB"):
        translate(write_program(tmp_path / "p.urp", f'<Comment comment="{"x" * (1 << 22)}"/>'))


@pytest.mark.parametrize("content", [b"", b"no program", b"\x1f\x8b\x08broken"])
def test_a_file_that_is_no_program_is_refused(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "p.urp").write_bytes(content)

    with pytest.raises(UnknownNode):
        translate(tmp_path / "p.urp")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('<!DOCTYPE a [<!ENTITY b "c">]><URProgram name="&b;"/>', "document type"),
        ("<a>" * 5000 + "</a>" * 5000, "200 elements deep"),
        ("<URProgram><children/></URProgram>", "no main program"),
    ],
    ids=["entity", "depth", "empty"],
)
def test_unbounded_program_is_refused(text: str, reason: str, tmp_path: Path) -> None:
    (tmp_path / "p.urp").write_bytes(gzip.compress(text.encode()))

    with pytest.raises(UnknownNode, match=reason):
        translate(tmp_path / "p.urp")


def test_a_number_that_is_none_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UnknownNode, match="soon"):
        translate(
            write_program(tmp_path / "p.urp", '<Wait type="Sleep"><waitTime>soon</waitTime></Wait>')
        )


def test_the_dashboard_runs_a_program_to_its_end(tmp_path: Path) -> None:
    controller = EmulatedController(ROBOT, profile("5.25"), ScriptProgram)
    controller.state.robot_mode = RobotMode.RUNNING
    controller.programs = tmp_path
    write_program(tmp_path / "p.urp", SLEEP, SET.format(2))
    dashboard = Dashboard(controller)

    assert dashboard.answer("play") == "Failed to execute: play"
    assert dashboard.answer("load p.urp") == "Loading program: /programs/p.urp"
    assert dashboard.answer("play") == "Starting program"
    assert controller.program is not None

    controller.program.compilation.join()
    controller.tick()

    assert dashboard.answer("programState") == "PLAYING p.urp"

    for _ in range(10):
        controller.tick()

    assert dashboard.answer("programState") == "STOPPED p.urp"
    assert controller.state.digital_outputs == 1 << 2


def test_the_dashboard_names_the_node_that_it_does_not_know(tmp_path: Path) -> None:
    controller = EmulatedController(ROBOT, profile("5.25"), ScriptProgram)
    controller.state.robot_mode = RobotMode.RUNNING
    controller.programs = tmp_path
    write_program(tmp_path / "p.urp", CAP)
    dashboard = Dashboard(controller)

    assert dashboard.answer("load p.urp") == "Loading program: /programs/p.urp"

    answer = dashboard.answer("play")

    assert answer.startswith("Failed to execute: play")
    assert "Grip, of the URCap Gripper" in answer
