"""`simbridge teleop` as its users see it: refusals, the first screen, the state, the end."""

from __future__ import annotations

import io
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple, get_args

import numpy as np
import pytest
from rich.console import Console
from rich.live import Live

from simbridge.cli.status_line import StatusLine, ToolMotion, ToolMotionWatch, status_text
from simbridge.console import Terminal
from simbridge.planning.options import Options
from simbridge.sessions.causes import LiveCause
from simbridge.sessions.options import LIVE, LiveOptions
from simbridge.teleop import DEVICES, spacemouse
from simbridge.teleop.network_messages import MAX_DATAGRAM_BYTES, AnyMessage
from simbridge.teleop.options import PORT, TeleopOptions
from tests.patience import PATIENCE
from tests.properties import variants
from tests.teleop.fake_session import Clock, FakeStatus
from tests.teleop.test_spacemouse import FakeHid
from tests.terminals import KITTY, ORDINARY

SOAK = pytest.mark.soak
# The tests of what one teleoperation did run on one worker.
SHARES_SERVICE = pytest.mark.shares_setup

UPWARDS = [0.0, 0.0, 0.02, 0.0, 0.0, 0.0]

# The first word of the line, in its colour.
ENGAGED = b"\x1b[1;32mengaged"

# The program, with a session that only remembers, and slows down with its first motion.
# Arguments: the file of its calls, whether engaging fails, and the words of the command.
PROGRAM = """
import json, sys, types
import numpy as np
from simbridge.errors import SimbridgeError
from simbridge.sessions.causes import LiveCause
from simbridge.teleop import key_terminal
from tests.patience import PATIENCE
from tests.teleop.fake_session import FakeSession

# Each terminal of these tests answers.
key_terminal.MAX_ANSWER_S = PATIENCE

class Session(FakeSession):
    def pose(self, target, *, relative=False):
        super().pose(target, relative=relative)
        self.status.causes = (LiveCause.of("joint_velocity", "wrist_3_joint", 0.93),)
        self.status.speed_factor = 0.4

def live(backend, **choices):
    ask = choices.pop("ask")
    session.calls.append(("live", backend, choices))

    def engage_real_arm():
        session.calls.append(("engage", ask((("arm", "ur10e"),), "Engage?")))
        session.status.state = "engaged"

    if backend == "real":
        session.engage = engage_real_arm
    return session

session = Session(refuses=SimbridgeError("The arm is not powered on.") if sys.argv[2] else None)
sys.modules["simbridge.sessions.setup"] = module = types.ModuleType("live_setup")
module.live = live
from simbridge.cli.command_line import main
try:
    sys.exit(main(["teleop", *sys.argv[3:]]))
finally:
    calls = []
    for call in session.calls:
        calls.append([str(part) if isinstance(part, (dict, np.ndarray)) else part for part in call])
    json.dump(calls, open(sys.argv[1], "w"), default=str)
"""


class Program:
    """`simbridge teleop` in a terminal."""

    def __init__(self, console, file, *words, fails=False, launcher=()):
        self.console = console
        self.file = file
        environment = {**os.environ, "TERM": "xterm", "PYTHONUTF8": "1"}
        environment.pop("COLUMNS", None)
        environment.pop("LINES", None)
        self.process = subprocess.Popen(
            [*launcher, sys.executable, "-c", PROGRAM, file, "fails" if fails else "", *words],
            stdin=console.theirs,
            stdout=console.theirs,
            stderr=console.theirs,
            env=environment,
            start_new_session=True,
        )

    def type(self, keys: bytes) -> None:
        os.write(self.console.ours, keys)

    def ended(self):
        """The exit status, and the calls of the session."""
        status = self.process.wait(PATIENCE)
        return status, json.loads(self.file.read_text())


@pytest.fixture
def start(terminal, tmp_path):
    started = []

    def call(*words, answer=ORDINARY, fails=False, launcher=(), **size):
        console = terminal(answer, **size)
        file = tmp_path / "calls.json"
        started.append(Program(console, file, *words, fails=fails, launcher=launcher))
        return started[-1]

    yield call
    for program in started:
        if program.process.poll() is None:
            program.process.kill()
            program.process.wait()


def plain(seen: bytes) -> str:
    """Return terminal output as one line without colours and movements of the cursor."""
    return " ".join(re.sub(r"\x1b\[[0-9;?<>]*[a-zA-Z]", "", seen.decode()).split())


def test_the_keyboard_engages_steps_and_ends(start):
    program = start(
        "keyboard",
        "--backend",
        "ursim",
        "--step",
        "10",
        "--solver",
        "constrained",
        "--host",
        "127.0.0.7",
    )
    before = program.console.modes
    program.console.wait_for(b"not engaged")

    assert "each press is one step of 10 mm or 2 degrees." in plain(program.console.seen)

    program.type(b"\r")
    program.console.wait_for(ENGAGED)
    program.type(b"w")
    # A slow-down is seen.
    program.console.wait_for(b"joint_velocity wrist_3 0.93")

    assert "speed 40 %" in plain(program.console.seen)

    program.type(b"q")
    status, calls = program.ended()
    program.console.wait_for(b"the report is written")

    assert status == 0
    assert program.console.modes == before
    assert "ending: the arm brakes, then the report is written" in plain(program.console.seen)
    assert calls[0][:2] == ["live", "ursim"]
    assert "'solver': 'constrained'" in calls[0][2]
    assert "'127.0.0.7'" in calls[0][2]

    names = [call[0] for call in calls]
    assert names[1] == "engage"
    assert set(names[2:-1]) == {"pose"}
    assert names[-1] == "closed"


def test_the_terminal_asks_about_a_real_arm(start):
    program = start("keyboard", "--backend", "real", answer=KITTY)
    program.console.wait_for(b"a held key moves")
    program.console.wait_for(b"\x1b[>11u")
    program.type(b"\x1b[13u")
    program.console.wait_for(b"Type yes to confirm:")
    # Echoed, with lines: no key of the protocol.
    program.type(b"yes\n")
    program.console.wait_for(ENGAGED)

    assert "Type yes to confirm: yes" in plain(program.console.seen)

    program.type(b"\x1b[113u")
    status, calls = program.ended()

    assert status == 0
    assert ["engage", True] in calls


# A background job is sent SIGINT below.
@pytest.mark.parametrize(
    "signal_number",
    variants([signal.SIGINT, signal.SIGTERM, signal.SIGTSTP], signal.SIGTERM, signal.SIGTSTP),
)
def test_after_a_signal_the_terminal_is_as_before(start, signal_number):
    program = start("keyboard", answer=KITTY)
    before = program.console.modes
    program.console.wait_for(b"not engaged")
    program.process.send_signal(signal_number)
    status, calls = program.ended()

    # Ctrl-C is how it is meant to end.
    assert status == {signal.SIGINT: 0, signal.SIGTERM: 143, signal.SIGTSTP: 148}[signal_number]
    assert calls[-1] == ["closed"]
    assert program.console.modes == before

    program.console.wait_for(b"\x1b[<u")


def test_a_background_job_ends_with_ctrl_c(start):
    # As a shell starts it: with SIGINT ignored.
    program = start("keyboard", launcher=("sh", "-c", 'trap "" INT; exec "$@"', "sh"))
    before = program.console.modes
    program.console.wait_for(b"not engaged")
    program.process.send_signal(signal.SIGINT)
    status, calls = program.ended()

    assert status == 0
    assert calls[-1] == ["closed"]
    assert program.console.modes == before


# test_the_line_is_cut_where_the_terminal_ends shows a narrow one; here the size is unknown.
@pytest.mark.parametrize(
    ("rows", "columns"),
    [pytest.param(2, 12, marks=SOAK), pytest.param(1, 1, marks=SOAK), (0, 0)],
)
def test_a_small_terminal_does_not_break_it(start, rows, columns):
    program = start("keyboard", rows=rows, columns=columns)
    program.console.wait_for(b"\x1b[?25l")
    program.type(b"\r")
    program.type(b"w")
    program.type(b"q")
    status, calls = program.ended()

    assert status == 0
    assert ["engage"] in calls


def test_a_failed_engagement_is_a_note(start):
    program = start("keyboard", fails=True)
    program.console.wait_for(b"not engaged")
    program.type(b"\r")
    program.console.wait_for(b"Note: The arm is not powered on.")
    program.type(b"q")

    assert program.ended()[0] == 0


# The program with a page of one word: the drawings take a second, and nobody looks at them.
SHORT_PAGE = """
import sys
from simbridge.__main__ import main
from simbridge.running import run_ending
run_ending.write_report = lambda evaluation, *_: evaluation.directory.write_report("page")
sys.exit(main())
"""


class Teleoperation:
    """`simbridge teleop network` without a terminal: it drives the simulated arm.

    Args:
        out: The directory of its run.

    Attributes:
        out: The directory of its run.
        process: Its process.
        first_line: The first line that it printed.
        address: Host and port where it listens.
    """

    def __init__(self, out):
        self.out = out
        arguments = ["teleop", "network", "--port", "0", "--out", str(out)]
        command = [sys.executable, "-c", SHORT_PAGE, *arguments]
        pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        self.process = subprocess.Popen(command, **pipes, text=True)
        self.first_line = self.process.stderr.readline()
        self.address = ("127.0.0.1", int(re.search(r"127\.0\.0\.1:(\d+)", self.first_line)[1]))
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.settimeout(PATIENCE)
        self.socket.connect(self.address)
        self.seq = 0

    def __enter__(self):
        return self

    def __exit__(self, *_error):
        self.socket.close()
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate()

    def answer(self, **datagram):
        self.seq += 1
        self.socket.send(json.dumps({"client": "test", "seq": self.seq, **datagram}).encode())
        return json.loads(self.socket.recv(4096))

    def drive(self):
        engagement = self.answer(type="engage")["engagement"]
        for _ in range(5):
            assert self.answer(type="twist", engagement=engagement, values=UPWARDS)["ok"]
        return engagement


class Service(NamedTuple):
    """What was seen of a teleoperation that ended with two Ctrl-C, the second as it evaluated.

    Attributes:
        out: The directory of its run.
        notices: What it printed to stderr.
        shown: What it printed to stdout.
        status: Its exit status.
        refused: Its answer to a huge number.
        after: Its answer to the next input.
        port_was_free: Whether another program could listen at its port while it evaluated.
    """

    out: Path
    notices: str
    shown: str
    status: int
    refused: dict
    after: dict
    port_was_free: bool


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    """A teleoperation with its real session, from its first line to its last."""
    out = tmp_path_factory.mktemp("service") / "run"
    with Teleoperation(out) as teleoperation:
        twist = {"type": "twist", "engagement": teleoperation.drive()}
        refused = teleoperation.answer(**twist, values=[1e300, 0.0, 0.0, 0.0, 0.0, 0.0])
        after = teleoperation.answer(**twist, values=UPWARDS)
        # The loop takes an input only after the reply to it.
        deadline = time.monotonic() + PATIENCE
        while after["ok"] and after["state"] != "tracking" and time.monotonic() < deadline:
            after = teleoperation.answer(**twist, values=UPWARDS)

        process = teleoperation.process
        process.send_signal(signal.SIGINT)
        # As soon as the first has had its effect.
        notices = [teleoperation.first_line]
        while not notices[-1].startswith("Evaluating"):
            notices.append(process.stderr.readline())
            # It is empty if the process has ended.
            assert notices[-1], "".join(notices)
        port_was_free = can_listen(teleoperation.address)
        process.send_signal(signal.SIGINT)

        # Not `communicate`: it would lose the lines that came together with the first ones.
        notices.append(process.stderr.read())
        shown = process.stdout.read()
        status = process.wait(PATIENCE)
    return Service(out, "".join(notices), shown, status, refused, after, port_was_free)


def can_listen(address):
    """Return whether nobody listens at an address."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as listener:
        try:
            listener.bind(address)
        except OSError:
            return False
    return True


@SHARES_SERVICE
def test_without_a_terminal_nothing_is_drawn(service):
    """Its guide and its end are printed, and no line more."""
    # A kernel may have to be compiled first.
    lines = [
        line for line in service.notices.splitlines() if not line.startswith("Note: Compiling")
    ]
    # Lines are wrapped at the width of a terminal, if there is none, too.
    guide = " ".join(" ".join(lines).split()).partition("(docs/teleop.md). ")[2]

    assert service.notices.startswith("Network: UDP datagrams of JSON at 127.0.0.1:")
    assert guide == (
        "A client engages and then drives; any client can stop the arm. Press Ctrl-C to stop. "
        "The servo law at gain 2000 is extrapolated from gains 300 and 100. "
        "Evaluating the session and writing its report."
    )
    assert "\x1b" not in service.notices
    assert service.shown.splitlines()[0] == f"Run:    {service.out}"


@SHARES_SERVICE
def test_two_ctrl_c_complete_it(service):
    summary = json.loads((service.out / "summary.json").read_text())

    assert service.status == 0
    assert summary["inputs"]["accepted"] > 0
    assert summary["ended_by"]["cause"] == "completed"
    assert (service.out / "report.html").is_file()
    assert str(service.out) in service.shown


@SHARES_SERVICE
def test_the_port_is_freed_before_the_report(service):
    assert service.port_was_free


@SHARES_SERVICE
def test_after_a_huge_number_it_goes_on(service):
    assert not service.refused["ok"]
    assert "none larger than 1e+06" in service.refused["error"]
    assert service.after["ok"]
    assert service.after["state"] == "tracking"


# With a second one test_two_ctrl_c_complete_it; alone it ends a session that only remembers in
# test_after_a_signal_the_terminal_is_as_before.
@SOAK
def test_one_ctrl_c_completes_it(tmp_path):
    with Teleoperation(tmp_path / "run") as teleoperation:
        teleoperation.drive()

        teleoperation.process.send_signal(signal.SIGINT)
        teleoperation.process.communicate(timeout=PATIENCE)

    summary = json.loads((tmp_path / "run" / "summary.json").read_text())
    assert teleoperation.process.returncode == 0
    assert summary["ended_by"]["cause"] == "completed"
    assert summary["inputs"]["accepted"] > 0


# test_after_a_signal_the_terminal_is_as_before shows the exit status, of a session that only
# remembers; test_a_signal_that_ends_a_session_names_its_directory of test_session_faults shows how
# a signal ends a real one.
@SOAK
@pytest.mark.parametrize(
    ("number", "status", "cause"),
    [(signal.SIGTERM, 143, "terminated"), (signal.SIGTSTP, 148, "interrupted")],
)
def test_another_signal_ends_it_with_its_number(tmp_path, number, status, cause):
    with Teleoperation(tmp_path / "run") as teleoperation:
        teleoperation.drive()

        teleoperation.process.send_signal(number)
        _, printed = teleoperation.process.communicate(timeout=PATIENCE)

    summary = json.loads((tmp_path / "run" / "summary.json").read_text())
    assert teleoperation.process.returncode == status
    assert f"What was recorded up to then is in {tmp_path / 'run'}" in " ".join(printed.split())
    assert summary["ended_by"]["cause"] == cause
    assert summary["inputs"]["accepted"] > 0


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["mouse"], "There is no device 'mouse'. Did you mean 'spacemouse'?"),
        (["keyboard"], "keyboard: it is read from a terminal"),
        (["keyboard", "--lock", "w"], "There is no axis 'w'."),
        (["keyboard", "--step", "80"], "got 0.08"),
        (
            ["keyboard", "--on-button", "grip"],
            "The button function must be module:function",
        ),
        (["keyboard", "--on-button", "json:grip"], "There is no function 'grip' in json."),
        (["keyboard", "--max-tool-speed", "-1"], "got -1"),
        (["network", "--listen", "0.0.0.0"], "Write a token into a file"),
        (["network", "--token-file", "missing"], "missing: file not found"),
        (["spacemouse"], 'Install it with: pip install "simbridge[teleop]"'),
        (["gamepad"], 'Install it with: pip install "simbridge[teleop]"'),
    ],
)
def test_a_refusal_is_one_sentence(cli, monkeypatch, words, message):
    monkeypatch.setitem(sys.modules, "hid", None)
    monkeypatch.setitem(sys.modules, "pygame", None)
    monkeypatch.setenv("SDL_VIDEODRIVER", "")

    answer = cli("teleop", *words)

    assert answer.status == 2
    assert message in answer.message


def test_a_wrong_frame_is_refused(cli):
    answer = cli("teleop", "keyboard", "--frame", "tcp")

    assert answer.status == 2
    assert "--frame" in answer.message


def test_a_missing_device_is_one_sentence(cli, monkeypatch):
    monkeypatch.setitem(sys.modules, "hid", FakeHid())

    answer = cli("teleop", "spacemouse")

    assert answer.status == 2
    assert answer.message.startswith("SpaceMouse: none is connected.")


def test_the_udev_rule_is_printed_as_it_is(cli, monkeypatch):
    monkeypatch.setitem(
        sys.modules, "hid", FakeHid(opens=False, vendor_id=spacemouse.VENDOR, product_id=0xC635)
    )

    answer = cli("teleop", "spacemouse")

    assert answer.status == 2
    assert answer.err.startswith(spacemouse.SPACEMOUSE_RULE + "\n")
    assert "put the lines above into /etc/udev/rules.d/" in answer.message


def test_every_option_has_a_flag(cli):
    assert set(LIVE) <= set(Options.__dataclass_fields__)

    shown = cli("teleop", "--help").out
    flags = {
        field.metadata.get("flag", name)
        for name, field in TeleopOptions.__dataclass_fields__.items()
    }

    for name in (*LIVE, *flags, *LiveOptions.__dataclass_fields__, *DEVICES):
        assert name.replace("_", "-") in shown


@pytest.mark.parametrize(
    ("status", "shown"),
    [
        (FakeStatus("idle"), "idle  not engaged"),
        (FakeStatus("engaged"), "engaged"),
        (
            FakeStatus(
                "tracking", (LiveCause.of("reach", "", 0.038), LiveCause.of("stale", "", 0.3)), 0.62
            ),
            "tracking  speed 62 %  reach 38 mm, stale 0.30 s",
        ),
    ],
)
def test_the_line_shows_state_and_causes(status, shown):
    assert status_text(status).plain == shown


def test_the_line_is_cut_where_the_terminal_ends():
    console = Console(
        width=20, height=2, file=io.StringIO(), force_terminal=True, color_system=None
    )
    with Live(
        status_text(FakeStatus("tracking", (LiveCause.of("reach", "", 0.038),), 0.62)),
        console=console,
    ):
        pass

    assert plain(console.file.getvalue().encode()).split("tracking")[-1] == " speed 62 …"


TOOL = ToolMotion(np.array([0.5, -0.1, 0.3]), 0.02)


@pytest.mark.parametrize(("columns", "shown"), [
    (80, "tracking  x 500 y -100 z 300 mm  20 mm/s  reach 38 mm"),
    (40, "tracking  20 mm/s  reach 38 mm"),
])  # fmt: skip
def test_the_line_shows_the_tool_where_it_fits(columns, shown):
    status = FakeStatus("tracking", (LiveCause.of("reach", "", 0.038),))

    assert status_text(status, TOOL, columns).plain == shown


def test_the_speed_is_measured_over_an_interval():
    clock = Clock()
    watch = ToolMotionWatch(clock)
    speeds = []
    for k in range(30):
        speeds.append(watch.look(np.array([0.002 * k, 0.0, 0.0])).speed)
        clock.sleep(0.02)

    assert speeds[0] == 0.0
    assert speeds[-1] == pytest.approx(0.1)


def test_in_a_pipe_a_line_comes_now_and_then():
    clock = Clock()
    shown = io.StringIO()
    line = StatusLine(Terminal(file=shown), None, clock)
    line.show(FakeStatus("idle"), TOOL)
    for _ in range(120):
        clock.sleep(0.1)
        line.show(FakeStatus("tracking"), TOOL)

    assert shown.getvalue().splitlines() == ["tracking  x 500 y -100 z 300 mm  20 mm/s"] * 2


POSE_FLAGS = {"hold", "max-jump", "filter", "filter-cutoff"}
DEVICE_FLAGS = {
    "spacemouse": {"dead-band", "translation-speed", "frame", "lock", "dead-man-button"},
    "gamepad": {"dead-band", "translation-speed", "frame", "lock", "engage-button"},
    "keyboard": {"step", "step-angle", "translation-speed", "frame", "lock"} | POSE_FLAGS,
    "network": {"listen", "port", "token-file"} | POSE_FLAGS,
}


@pytest.mark.parametrize("device", DEVICE_FLAGS)
def test_the_help_of_a_device_has_its_flags_only(cli, device):
    shown = set(re.findall(r"--([a-z-]+)", cli("teleop", device, "--help").out))
    others = set().union(*DEVICE_FLAGS.values()) - DEVICE_FLAGS[device]
    if device in ("spacemouse", "gamepad"):
        others -= {"dead-man-button", "engage-button"}

    assert shown >= DEVICE_FLAGS[device] | {"on-button", "robot", "timeout"}
    assert not shown & others


@pytest.mark.parametrize("device", ["spacemouse", "gamepad"])
@pytest.mark.parametrize("flag", sorted(POSE_FLAGS))
def test_velocities_have_no_flags_of_poses(cli, device, flag):
    answer = cli("teleop", device, f"--{flag}", "1")

    assert answer.status == 2
    assert "keyboard" in answer.message


def test_a_flag_of_another_device_is_refused(cli):
    answer = cli("teleop", "keyboard", "--port", "8321")

    assert answer.status == 2
    assert answer.message == "--port is an option of teleop network, not of keyboard."


def test_the_page_names_every_key_and_field():
    page = (Path(__file__).parents[2] / "docs/teleop.md").read_text(encoding="utf-8")

    assert f"```text\n{spacemouse.SPACEMOUSE_RULE}\n```" in page
    assert spacemouse.SPACEMOUSE_RULE_FILE in page
    for key in (*"wsadrfljikuoxq", "Enter", "Space"):
        assert f"`{key}`" in page or key in page.replace("`", "")
    for message in get_args(AnyMessage):
        assert f"`{message.__struct_config__.tag}`" in page
        assert all(f"`{name}`" in page for name in message.__struct_fields__)
    for number in (str(MAX_DATAGRAM_BYTES), str(PORT)):
        assert number in page
