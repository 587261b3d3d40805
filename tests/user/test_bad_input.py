"""Bad input at the command line.

The status is 2, one paragraph says what, where and what to do, and nothing is written.
"""

from __future__ import annotations

import os
import re
import resource
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from simbridge.recording.log_reader import read_log
from simbridge.recording.run_directory import RunDirectory
from simbridge.resources import ROBOTS
from simbridge.robot import load_robot
from simbridge.robot.kinematics import tool_path
from simbridge.trajectory import Trajectory
from tests.properties import variants

pytestmark = pytest.mark.usefixtures("without_pages")

DOWN = "0.7071067811865476 -0.7071067811865476 0 0"
SOAK = pytest.mark.soak
GOOD_LINES = [f"{0.1 * k} {0.7 + 0.01 * k} 0.164 0.3 {DOWN}" for k in range(4)]


@pytest.fixture
def refused(cli, tmp_path, monkeypatch):
    """Call the program, and return its message.

    Its status, the form of its answer and that it wrote nothing are checked.
    """
    monkeypatch.chdir(tmp_path)

    def call(*arguments):
        before = sorted(tmp_path.rglob("*"))
        answer = cli(*arguments)
        assert answer.status == 2, answer.err
        assert answer.out == ""
        assert "Traceback" not in answer.err
        assert answer.err.strip()
        assert "\n\n" not in answer.err.strip()
        assert sorted(tmp_path.rglob("*")) == before
        return answer.message

    return call


@pytest.fixture
def written(tmp_path):
    """Writes lines of text as a file in the directory of the test, and returns its name."""

    def write(name, lines):
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines))
        return name

    return write


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        ("run sqare_tracking", ["no scenario 'sqare_tracking'", "Did you mean 'square_tracking'"]),
        ("run square_tracking --robot ur1", ["no robot 'ur1'", "Available: planar2r"]),
        (
            "run square_tracking --solver forward",
            ["no solver 'forward'", "Did you mean 'forward-dynamics'"],
        ),
        (
            "run square_tracking --backend pybulet",
            ["no backend 'pybulet'", "Did you mean 'pybullet'"],
        ),
        ("run ./nowhere.py", ["nowhere.py", "file not found"]),
        pytest.param("run nowhere.tum", ["nowhere.tum", "file not found"], marks=SOAK),
        ("run square_tracking --robot ./nowhere.urdf", ["nowhere.urdf", "file not found"]),
        pytest.param(
            "run square_tracking --robot ./nowhere.toml",
            ["nowhere.toml", "file not found"],
            marks=SOAK,
        ),
        ("run .", ["directory"]),
        (
            "check sqare_tracking",
            ["no scenario 'sqare_tracking'", "Did you mean 'square_tracking'"],
        ),
        ("export nowhere --to csv", ["nowhere is not a run", "directory not found"]),
        ("export . --to tum", ["is not a run", "settings.toml"]),
        ("run square_tracking --plan nowhere", ["nowhere is not a run"]),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_the_nearest_name_is_suggested(refused, arguments, parts):
    message = refused(*arguments.split())

    assert all(part in message for part in parts), message


def test_a_file_that_is_no_text_is_refused(refused, tmp_path):
    (tmp_path / "bag.tum").write_bytes(bytes(range(256)))

    assert "bag.tum, line 1: this is a binary file" in refused("run", "bag.tum")


@pytest.mark.parametrize(
    ("bad", "where"),
    [
        (f"0.1 hello 0.164 0.3 {DOWN}", "line 2, x: 'hello' is not a number"),
        (f"0.1 0.71 0.164 -inf {DOWN}", "line 2, z: -inf is not a finite number"),
        pytest.param(
            f"0.1 0.71 inf 0.3 {DOWN}", "line 2, y: inf is not a finite number", marks=SOAK
        ),
        ("0.1 0.71 0.164 0.3 0 0 0", "line 2: 7 columns, but 8 are expected"),
        (f"-0.1 0.71 0.164 0.3 {DOWN}", "line 2, time: time -0.1 s is not after 0.0 s"),
        pytest.param(
            f"0.0 0.71 0.164 0.3 {DOWN}", "line 2, time: time 0.0 s is not after 0.0 s", marks=SOAK
        ),
        ("0.1 0.71 0.164 0.3 0 0 0 0", "line 2, quaternion: the quaternion is zero"),
        ("0.1 0.71 0.164 0.3 1 1 0 0", "line 2, quaternion: the quaternion has norm 1.41"),
    ],
)
def test_a_bad_line_names_its_field(refused, written, bad, where):
    assert where in refused("run", written("mine.tum", [GOOD_LINES[0], bad, *GOOD_LINES[2:]]))


@pytest.mark.parametrize("lines", [[], ["# nothing but remarks"], ["", ""]])
def test_an_empty_trajectory_is_refused(refused, written, lines):
    assert "mine.tum: it has no samples" in refused("run", written("mine.tum", lines))


def test_millimetres_are_suspected(refused, written):
    lines = [f"{0.1 * k} {700 + 10 * k} 164 300 {DOWN}" for k in range(4)]
    message = refused("run", written("mine.tum", lines))

    assert "every target is out of reach; are these millimetres?" in message
    assert "sample 0 at 0.000 s" in message


def test_stamps_in_nanoseconds_are_suspected(refused, written):
    lines = [f"{k * 10**8} {0.7 + 0.01 * k} 0.164 0.3 {DOWN}" for k in range(4)]

    assert "Are its times in seconds" in refused("run", written("mine.tum", lines))


@pytest.fixture
def lines(tmp_path, tum, through):
    """Writes mine.tum through points at times, tool down."""
    return lambda points, times: tum(tmp_path / "mine.tum", through(points, times)).name


def test_unreachable_targets_are_named_by_sample(refused, lines):
    message = refused("run", lines([[0.7, 0.164, 0.3], [1.7, 0.164, 0.3]], [0.0, 5.0]))

    assert "targets are out of reach; the first is sample 0 at " in message
    assert " s, whose closest reachable pose is " in message
    assert " mm " in message


def test_a_way_through_the_floor_is_refused(refused, lines):
    points = [[0.7, 0.164, 0.3], [0.7, 0.164, -0.1]]
    message = refused("run", lines(points, [0.0, 2.0]))

    # 0.4 m in 2 s: below 5 mm after 1.475 s.
    assert "wrist_3_link" in message
    assert "the floor" in message
    assert "--floor" in message
    assert "at sample 185 (1.480 s)" in message


def test_a_way_through_the_arm_itself_is_refused(refused, tmp_path, tum):
    robot = load_robot("ur10")
    fold = robot.home.copy()
    fold[1:3] = -1.8, 2.95
    progress = np.linspace(0.0, 1.0, 101)
    blend = progress**3 * (10.0 - 15.0 * progress + 6.0 * progress**2)
    poses = tool_path(robot, robot.home + blend[:, None] * (fold - robot.home))
    tum(tmp_path / "fold.tum", Trajectory(4.0 * progress, poses))

    message = refused("run", "fold.tum", "--start", "home")

    assert "would pass: use --home" in message
    assert "upper_arm_link" in message
    assert "wrist_1_link" in message
    assert "at sample " in message


def test_excessive_speed_names_a_scale_that_helps(refused, lines):
    message = refused("run", lines([[0.6, 0.164, 0.3], [0.9, 0.164, 0.3]], [0.0, 0.15]))

    assert "would move at" in message
    assert "exceeding its limit of 2.094 rad/s" in message
    assert "--speed-scale" in message
    assert "at sample 1 (0.008 s) shoulder_lift_joint" in message


def test_a_corner_too_sharp_is_refused(refused, lines):
    message = refused(
        "run", lines([[0.7, 0.164, 0.3], [0.9, 0.164, 0.3], [0.7, 0.164, 0.3]], [0.0, 0.4, 0.8])
    )

    assert "at sample 50 (0.400 s)" in message
    assert "would jump by" in message
    assert "--on-limits limit" in message


def test_a_tool_too_fast_is_refused(refused, lines):
    fast_line = lines([[0.7, 0.164, 0.3], [0.9, 0.164, 0.3]], [0.0, 2.0])
    message = refused("run", fast_line, "--max-tool-speed", "0.05")

    assert "the tool would move at 0.100 m/s; at most 0.050 m/s is allowed" in message
    assert "--max-tool-speed" in message


def test_a_turn_past_a_joints_end_is_refused(refused, tmp_path, tum):
    angle = np.linspace(0.0, 7.0, 71)  # about the vertical, further than the last wrist joint turns
    half = 0.5 * angle
    z = np.array([0.7, 0.164, 0.3])
    zero = np.zeros(71)
    # Half a turn about x brings the tool down; then a turn about the vertical.
    rotations = np.column_stack([np.cos(half), np.sin(half), zero, zero])
    tum(tmp_path / "turn.tum", Trajectory(angle, np.column_stack([np.tile(z, (71, 1)), rotations])))

    message = refused("run", "turn.tum", "--start", "home")

    assert "wrist_3_joint would be at" in message
    assert "past its limit of" in message
    assert "6.283 rad" in message
    assert re.search(r"[0-9.]+° past its limit", message)


@pytest.mark.parametrize(
    ("flags", "part"),
    [
        ("--period -1", "got -1.0 s"),
        pytest.param("--period 0", "got 0.0 s", marks=SOAK),
        ("--period nan", "got nan s"),
        pytest.param("--period inf", "got inf s", marks=SOAK),
        ("--period 0.0085", "a multiple of the physics step"),
        pytest.param("--period 0.0005", "a multiple of the physics step", marks=SOAK),
        ("--period 1000", "from 0.0001 to 1 s"),
        pytest.param("--period 1e-9", "from 0.0001 to 1 s", marks=SOAK),
        ("--speed-scale 0", "got 0.0"),
        pytest.param("--speed-scale -1", "got -1.0", marks=SOAK),
        ("--speed-scale nan", "got nan"),
        pytest.param("--speed-scale inf", "got inf", marks=SOAK),
        ("--speed-scale 1e-9", "is the speed scale as intended"),
        pytest.param("--payload -1", "got -1.0", marks=SOAK),
        ("--payload nan", "got nan"),
        ("--unmodelled-payload -1", "got -1.0"),
        pytest.param("--payload 5 --unmodelled-payload -1", "got -1.0", marks=SOAK),
        pytest.param("--unmodelled-payload inf", "got inf", marks=SOAK),
        ("--tcp nan 0 0 0 0 0", "got [nan"),
        pytest.param("--tcp 0 0 0 0 0 inf", "six finite numbers", marks=SOAK),
        ("--tcp 0 0 150 0 0 0", "not mm"),
        ("--tcp 0 0 0.1 0 0 90", "not mm, degrees"),
        ("--floor abc", "got abc"),
        ("--floor nan", "got nan"),
        pytest.param("--floor inf", "got inf", marks=SOAK),
        ("--tolerance nan 1", "got nan"),
        ("--tolerance -1 1", "two non-negative numbers"),
        pytest.param("--tolerance 1 -1", "two non-negative numbers", marks=SOAK),
        pytest.param("--tolerance inf 1", "got inf", marks=SOAK),
        pytest.param("--max-tool-speed 0", "got 0.0", marks=SOAK),
        pytest.param("--max-tool-speed -1", "got -1.0", marks=SOAK),
        ("--max-tool-speed nan", "got nan"),
        ("--rest-port 99999", "The REST port must be from 1 to 65535; got 99999"),
        ("--home 0 0", "6 joint positions"),
        ("--home 0 -1.3 1.9 -2.17 -1.57 100", "100"),
        ("--home nan -1.3 1.9 -2.17 -1.57 0", "nan"),
        ("--solver.iterations 0", "The solver's iterations must be a whole number from 1 to"),
        pytest.param("--solver.iterations -3", "got -3", marks=SOAK),
        ("--solver.kp 1 2", "one number, or six"),
        ("--solver.kp", "--solver.kp needs a value"),
        pytest.param("--solver.kp nan", "one number, or six", marks=SOAK),
        (
            "--solver.kd -1",
            "The solver's kd must be one number, or six, none of them negative",
        ),
        pytest.param("--solver.dt 0", "got 0.0", marks=SOAK),
        ("--solver.dt nan", "got nan"),
        ("--solver.tool-mass=-1", "tool_mass must be a non-negative number"),
        ("--solver.link-inertia inf", "link_inertia must be a positive number"),
        ("--solver.error-clamp 1", "two numbers, in m and rad"),
        ("--solver.error-clamp 0 0", "positive, or infinite for none"),
        ("--solver.step-clamp nan", "positive, or infinite for none"),
        ("--solver.kp 1e6", "kappa = dt^2 kp/m must stay below 8, but it is 1e+04"),
        ("--solver.kd 1000", "dt kd/m below 4"),
    ],
    ids=lambda value: value if isinstance(value, str) and value.startswith("--") else "",
)
def test_a_value_that_makes_no_sense_is_refused(refused, line, flags, part):
    assert part in refused("run", line, "--out", "out", *flags.split())


@pytest.mark.parametrize(
    ("flags", "parts"),
    [
        ("--period abc", ["--period", "'abc'"]),
        ("--tcp 0 0 0", ["--tcp"]),
        ("--tcp a b c d e f", ["--tcp", "'a'"]),
        ("--tolerance 1", ["--tolerance"]),
        ("--hold cubic", ["--hold", "linear", "zero-order"]),
        pytest.param("--on-limits ignore", ["--on-limits", "refuse", "limit"], marks=SOAK),
        pytest.param("--frame world", ["--frame", "base_link"], marks=SOAK),
        pytest.param("--payload heavy", ["--payload", "'heavy'"], marks=SOAK),
        pytest.param("--rest-port http", ["--rest-port", "'http'"], marks=SOAK),
        ("--solver.iterations 1.5", ["--solver.iterations", "'1.5'"]),
        ("--solver.nosuch 1", ["forward-dynamics", "'nosuch'"]),
        ("--nosuch", ["--nosuch"]),
        ("and more", ["and"]),
    ],
    ids=lambda value: value if isinstance(value, str) and value.startswith("--") else "",
)
def test_an_unreadable_flag_says_what_it_takes(cli, line, tmp_path, monkeypatch, flags, parts):
    monkeypatch.chdir(tmp_path)
    answer = cli("run", line, "--out", "out", *flags.split())

    assert answer.status == 2
    assert answer.out == ""
    assert "Traceback" not in answer.err

    message = " ".join(answer.message.replace("│", " ").split())
    assert all(part in message for part in parts), message
    assert "None" not in message
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "command", [["run"], ["check"], ["export"], ["export", "."], ["nosuch"]], ids=" ".join
)
def test_a_command_that_lacks_something_says_so(cli, command):
    answer = cli(*command)

    assert answer.status == 2
    assert answer.out == ""
    assert "Traceback" not in answer.err


@pytest.mark.parametrize(
    ("old", "new", "parts"),
    [
        ("velocity = [2.09", "velocity = [-2.09", ["limits.velocity", "must be a positive number"]),
        ("period = 0.008", "", ["controller.period", "missing"]),
        ('title = "UR10"', 'titel = "UR10"', ["titel", "line"]),
        # In test_robot_file, too.
        pytest.param("mass = 7.1", 'mass = "heavy"', ["links[0].mass", "line"], marks=SOAK),
        pytest.param("[controller]", "[controller", ["not TOML", "line"], marks=SOAK),
    ],
)
def test_a_malformed_robot_toml_names_its_line(refused, tmp_path, line, old, new, parts):
    text = (ROBOTS / "ur10.toml").read_text()

    assert old in text

    (tmp_path / "mine.toml").write_text(text.replace(old, new, 1))
    message = refused("run", line, "--robot", "./mine.toml")

    assert "mine.toml" in message
    assert all(part in message for part in parts), message


@pytest.mark.parametrize(
    "text",
    variants(
        ["<robot>", "hello", '<robot name="x"></robot>', ""],
        "<robot>",
        '<robot name="x"></robot>',
    ),
)
def test_a_malformed_urdf_is_refused_by_its_line(refused, written, line, text):
    message = refused("run", line, "--robot", f"./{written('mine.urdf', [text])}")

    assert "mine.urdf" in message
    assert "line" in message


SCRIPT = "from simbridge import Scenario\nfrom simbridge.trajectory import square\n"


@pytest.mark.parametrize(
    ("body", "parts"),
    [
        ("def scenario(robot):\n    return 1 / 0\n", ["line 4", "ZeroDivisionError"]),
        ("def scenario(robot:\n    pass\n", ["line 3", "SyntaxError"]),
        ("x = 1\n", ["must define a function scenario(robot)"]),
        ("def scenario(robot):\n    return 5\n", ["returned int"]),
        (
            "def scenario(robot):\n    return Scenario(None)\n",
            ["line 4", "must be a simbridge.Trajectory"],
        ),
        ("def scenario(robot):\n    raise SystemExit(0)\n", ["line 4", "SystemExit"]),
    ],
)
def test_an_unusable_script_names_its_line(refused, written, body, parts):
    message = refused("run", f"./{written('mine.py', [SCRIPT + body])}")

    assert "mine.py" in message
    assert all(part in message for part in parts), message


@pytest.mark.parametrize("out", ["there", "file", "file/below", "/proc/below"])
def test_an_unusable_output_directory_is_refused(refused, tmp_path, line, out):
    (tmp_path / "there").mkdir()
    (tmp_path / "file").write_text("mine")

    message = refused("run", line, "--out", out)

    assert f"{out} cannot be written" in message
    assert "--out" in message
    assert (tmp_path / "file").read_text() == "mine"


@pytest.fixture
def damaged(line_run, tmp_path):
    """A finished run with one file replaced."""

    def make(name, content):
        run = shutil.copytree(line_run, tmp_path / "damaged")
        (run / name).write_bytes(content)
        return run

    return make


@pytest.mark.parametrize("name", ["settings.toml", "plan.npz", "log.mcap"])
@pytest.mark.parametrize("content", [b"", b"\xff\xfehello"], ids=["empty", "scribble"])
def test_a_broken_run_names_its_file(refused, damaged, name, content):
    run = damaged(name, content)

    assert name in refused("export", run, "--to", "csv")


@pytest.mark.parametrize("name", ["settings.toml", "plan.npz"])
def test_a_broken_plan_is_not_replayed(refused, damaged, line, name):
    assert name in refused("run", line, "--plan", damaged(name, b""))


def test_too_heavy_a_payload_stops_the_run(cli, line, tmp_path):
    answer = cli("run", line, "--unmodelled-payload", "200", "--out", tmp_path / "out", "--json")

    assert answer.status == 2
    assert "distance from the measured arm" in answer.message
    assert answer.message.endswith(f"What was recorded up to then is in {tmp_path / 'out'}")
    assert RunDirectory(tmp_path / "out").summary()["outcome"].startswith("GuardViolation")


def program(*arguments, largest_file=None, **options):
    """The program in a process of its own, its files at most so long, in bytes."""

    def limit():
        if largest_file is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (largest_file, largest_file))

    command = [sys.executable, "-m", "simbridge", *map(str, arguments)]
    checkout = Path(__file__).parents[2]
    environment = {**os.environ, "PYTHONPATH": str(checkout)}
    return subprocess.run(
        command, capture_output=True, text=True, preexec_fn=limit, env=environment, **options
    )


@pytest.mark.soak
def test_a_full_disk_keeps_the_log(square_run, tmp_path):
    # More than the plan takes, less than the log.
    plan, log = ((square_run / name).stat().st_size for name in ("plan.npz", "log.mcap"))
    largest = (plan + log) // 2

    assert plan < largest < log

    ended = program("run", "square_tracking", "--out", tmp_path / "out", largest_file=largest)
    assert ended.returncode == 2
    assert "Traceback" not in ended.stderr

    message = " ".join(ended.stderr.split())
    assert f"The log {tmp_path / 'out' / 'log.mcap'} cannot be written" in message
    assert "EFBIG" in message

    kept, whole = (read_log(run / "log.mcap") for run in (tmp_path / "out", square_run))
    assert not kept.complete
    # All but the chunk of a quarter of a second that no longer fitted, and the part of one before
    # it.
    assert 0.5 * largest / log * len(whole.stamp) < len(kept.stamp) < len(whole.stamp)
    assert kept.position.tobytes() == whole.position[: len(kept.stamp)].tobytes()

    summary = RunDirectory(tmp_path / "out").summary()
    assert summary["outcome"].startswith("LogWriteError")
    assert summary["samples"] == len(kept.stamp)


@pytest.mark.soak
def test_a_disk_full_before_names_the_file(line, tmp_path):
    ended = program("run", line, "--out", tmp_path / "out", largest_file=1000)

    assert ended.returncode == 2
    assert "Traceback" not in ended.stderr
    assert "settings.toml cannot be written: File too large" in " ".join(ended.stderr.split())


def test_the_program_ends_without_a_traceback(tmp_path):
    ended = program("export", "nowhere", "--to", "csv", cwd=tmp_path)

    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr.startswith("nowhere is not a run directory")
    assert "Traceback" not in ended.stderr


@pytest.mark.parametrize("command", ["inspect", "check"])
def test_a_run_in_place_of_a_file_is_answered_with_report(cli, line_run, command):
    answer = cli(command, line_run)

    assert answer.status == 2
    assert f"`simbridge report {line_run}` shows its result" in answer.message
