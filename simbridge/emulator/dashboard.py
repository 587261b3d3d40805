"""The dashboard server: one line in, one line out.

Source: Universal Robots, "Dashboard Server, CB-Series" and "Dashboard Server, e-Series": the commands, their answers
and the version that introduced them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from simbridge.emulator.emulated_controller import Controller
from simbridge.emulator.errors import ProtocolViolation, UnknownNode
from simbridge.emulator.pendant_program import translate
from simbridge.emulator.state import Event, RobotMode, RuntimeState, SafetyMode

GREETING = "Connected: Universal Robots Dashboard Server"
NOT_ALLOWED = (
    "Command is not allowed due to safety reasons, "
    "please switch robot to Remote Control mode and reconnect to port 29999"
)
MAX_LINE = 4096
USER_ROLES = ("programmer", "operator", "none", "locked", "restricted")
_NOT_ON_CB3 = (4, 0)
_NOT_ON_E_SERIES = (6, 0)


@dataclass(frozen=True)
class Command:
    """A command: its answer to what follows its name, the first e-Series and the first CB3 version that has it, and
    whether it changes something, which an e-Series controller allows in remote control only."""

    answer: Callable[[str], str]
    since: tuple[tuple[int, int], tuple[int, int]] = ((5, 0), (3, 0))
    acts: bool = False


class Dashboard:
    """The dashboard's answers; shared by all connections of a controller.

    Attributes:
        loaded_program: Path of the program that `load` named, or "".
        caller: Whose line is answered.
    """

    def __init__(self, controller: Controller) -> None:
        self._controller = controller
        self.loaded_program = ""
        self.caller = DashboardConnection(self)
        self.user_role = "PROGRAMMER"
        self.operational_mode = "NONE"
        self._commands = self._table()
        # Longest name first: "close safety popup" before "close popup", "load installation" before "load".
        self._names = sorted(self._commands, key=len, reverse=True)

    def answer(self, line: str) -> str:
        """The answer to a line, both without their newlines."""
        line = line.strip()
        lower = line.lower()
        may_act = self._controller.profile.series == "CB3" or self._controller.remote_control
        for name in self._names:
            if lower == name or lower.startswith(name + " "):
                command = self._commands[name]
                if not self._controller.profile.at_least(*command.since):
                    break
                if command.acts and not may_act:
                    return NOT_ALLOWED
                return command.answer(line[len(name) :].strip())
        version = self._controller.profile.polyscope
        text = f"dashboard: PolyScope {version} is emulated without the command {line[:100]!r}"
        self._controller.on_event(Event("unknown", text, data=line.encode()))
        return f"could not understand: '{line}'"

    def _table(self) -> dict[str, Command]:
        c = self._controller
        version = ".".join(map(str, c.profile.version))
        return {
            "load": Command(self._load, acts=True),
            "load installation": Command(_load_installation, acts=True),
            "play": Command(lambda _: self._play(), acts=True),
            "stop": Command(lambda _: _answer_if(c.stop_program(), "Stopped", "stop"), acts=True),
            "pause": Command(
                lambda _: _answer_if(c.pause_program(), "Pausing program", "pause"), acts=True
            ),
            "quit": Command(lambda _: "Disconnected"),
            "shutdown": Command(lambda _: _do(c.power_off, "Shutting down"), acts=True),
            "running": Command(
                lambda _: (
                    f"Program running: {_lower(c.state.runtime_state == RuntimeState.PLAYING)}"
                )
            ),
            "robotmode": Command(lambda _: f"Robotmode: {RobotMode(c.state.robot_mode).name}"),
            "get loaded program": Command(lambda _: self._loaded()),
            "popup": Command(lambda text: _do(lambda: c.popup(text), "showing popup")),
            "close popup": Command(lambda _: _do(c.close_popup, "closing popup")),
            "addtolog": Command(
                lambda text: "Added log message" if text else "No log message to add"
            ),
            "isprogramsaved": Command(lambda _: f"{self._is_saved()} {self._program()}"),
            "programstate": Command(lambda _: f"{self._program_state()} {self._program()}"),
            "polyscopeversion": Command(lambda _: f"URSoftware {version} ({c.profile.date})"),
            "version": Command(lambda _: version, ((5, 0), _NOT_ON_CB3)),
            "setuserrole": Command(self._set_user_role, (_NOT_ON_E_SERIES, (3, 1))),
            "getuserrole": Command(lambda _: self.user_role, (_NOT_ON_E_SERIES, (3, 1))),
            "set operational mode": Command(
                self._set_operational_mode, ((5, 0), _NOT_ON_CB3), acts=True
            ),
            "get operational mode": Command(lambda _: self.operational_mode, ((5, 6), _NOT_ON_CB3)),
            "clear operational mode": Command(
                self._clear_operational_mode, ((5, 0), _NOT_ON_CB3), acts=True
            ),
            "power on": Command(lambda _: _do(c.power_on, "Powering on"), acts=True),
            "power off": Command(lambda _: _do(c.power_off, "Powering off"), acts=True),
            "brake release": Command(lambda _: _do(c.brake_release, "Brake releasing"), acts=True),
            "safetymode": Command(lambda _: f"Safetymode: {self._safety()}"),
            "safetystatus": Command(
                lambda _: f"Safetystatus: {self._safety()}", ((5, 4), _NOT_ON_CB3)
            ),
            "unlock protective stop": Command(
                lambda _: c.unlock_protective_stop(), ((5, 0), (3, 1)), acts=True
            ),
            "close safety popup": Command(lambda _: "closing safety popup", ((5, 0), (3, 1))),
            "restart safety": Command(lambda _: c.restart_safety(), ((5, 1), (3, 7)), acts=True),
            "is in remote control": Command(self._in_remote_control, ((5, 6), _NOT_ON_CB3)),
            "get serial number": Command(lambda _: c.serial_number, ((5, 6), (3, 12))),
            "get robot model": Command(lambda _: c.model_name, ((5, 6), (3, 12))),
            "generate flight report": Command(
                lambda kind: f"Flight Report generated with id: {kind or 'system'}-{c.state.tick}",
                ((5, 8), (3, 13)),
            ),
            "generate support file": Command(
                lambda path: f"Completed successfully: {path}", ((5, 8), (3, 13))
            ),
            "savelog": Command(lambda _: "Log saved to disk", ((5, 8), (3, 13))),
        }

    def _loaded(self) -> str:
        return (
            f"Loaded program: {self.loaded_program}" if self.loaded_program else "No program loaded"
        )

    def _is_saved(self) -> str:
        # CB3 capitalises it, as ur_rtde expects. The e-Series does not, and ur_rtde reads that as "not saved".
        saved = _lower(bool(self.loaded_program))
        return saved.capitalize() if self._controller.profile.series == "CB3" else saved

    def _program(self) -> str:
        return self.loaded_program.rpartition("/")[2] or "<unnamed>"

    def _file(self, name: str) -> Path | None:
        """The file of a program; its folder is known by three names."""
        folder = self._controller.programs
        inside = name.removeprefix("/ursim").removeprefix("/programs/")
        if folder is None or not name.endswith(".urp") or inside.startswith("/"):
            return None
        try:
            path = (folder / inside).resolve()
            return path if path.is_file() and path.is_relative_to(folder.resolve()) else None
        except (
            OSError,
            ValueError,
        ):  # a name that no file can have, or a folder that may not be read
            return None

    def _load(self, name: str) -> str:
        if self._file(name) is None:
            return f"File not found: {name}"
        self.loaded_program = name if name.startswith("/") else f"/programs/{name}"
        return f"Loading program: {self.loaded_program}"

    def _play(self) -> str:
        c = self._controller
        if c.play_program():
            return "Starting program"
        may = c.state.runtime_state == RuntimeState.STOPPED and self.caller.may_start
        path = self._file(self.loaded_program) if may else None
        if path is None:
            return "Failed to execute: play"
        self.caller.may_start = False
        try:
            c.load_script(translate(path))
        except (UnknownNode, OSError) as error:
            return f"Failed to execute: play. {error}"
        return _answer_if(c.state.runtime_state == RuntimeState.PLAYING, "Starting program", "play")

    def _program_state(self) -> str:
        state = self._controller.state.runtime_state
        if state in (RuntimeState.STOPPED, RuntimeState.STOPPING):
            return "STOPPED"
        return "PAUSED" if state == RuntimeState.PAUSED else "PLAYING"

    def _safety(self) -> str:
        # Mode and status have the same names, as far as emulated.
        return SafetyMode(self._controller.state.safety_mode).name

    def _set_user_role(self, role: str) -> str:
        if role.lower() not in USER_ROLES:
            return f"Failed setting user role: {role}"
        self.user_role = role.upper()
        return f"Setting user role: {role}"

    def _set_operational_mode(self, mode: str) -> str:
        if mode.lower() not in ("manual", "automatic"):
            return f"Failed setting operational mode: {mode}"
        self.operational_mode = mode.upper()
        self.caller.mode_was_cleared = False
        return f"Operational mode {self.operational_mode} is set"

    def _in_remote_control(self, _: str) -> str:
        # Not in UR's documents: its own tests expect false once a client has let go of the operational mode, and go on
        # sending commands. Nothing says that other clients see it, too.
        return _lower(self._controller.remote_control and not self.caller.mode_was_cleared)

    def _clear_operational_mode(self, _: str) -> str:
        was, self.operational_mode = self.operational_mode, "NONE"
        self.caller.mode_was_cleared = True
        return f"No longer controlling the operational mode. Current operational mode: '{was}'."


class DashboardConnection:
    """One client's connection.

    Attributes:
        may_start: Whether `play` may start the program: once for each piece that a client sends, for it takes a
            millisecond with the lock held.
        mode_was_cleared: Whether it has set and then cleared the operational mode.
        finished: The client has sent `quit`: send what `receive` returned, then close.
    """

    def __init__(self, dashboard: Dashboard) -> None:
        self._dashboard, self._buffer = dashboard, bytearray()
        self.may_start, self.mode_was_cleared, self.finished = True, False, False

    def receive(self, data: bytes) -> bytes:
        """The answers to the complete lines; an incomplete one waits for the rest.

        Raises:
            ProtocolViolation: A line is longer than 4096 bytes.
        """
        self._buffer += data
        *lines, rest = bytes(self._buffer).split(b"\n")
        self._buffer = bytearray(rest)
        answers = []
        self._dashboard.caller, self.may_start = self, True
        for line in lines:
            if self.finished:
                break
            if len(line) > MAX_LINE:
                raise ProtocolViolation(
                    "dashboard", f"its line has {len(line)} bytes, at most {MAX_LINE} are read"
                )
            text = line.decode("utf-8", errors="replace").strip()
            if text:
                answers.append(self._dashboard.answer(text))
                self.finished = text.lower() == "quit"
        if len(rest) > MAX_LINE:
            raise ProtocolViolation("dashboard", f"it sent {len(rest)} bytes without ending a line")
        return "".join(answer + "\n" for answer in answers).encode()

    def close(self) -> None:
        """An unfinished line is dropped."""


def _load_installation(name: str) -> str:
    return (
        f"Loading installation: {name}"
        if name.endswith(".installation")
        else f"File not found: {name}"
    )


def _do(action: Callable[[], None], answer: str) -> str:
    action()
    return answer


def _answer_if(done: bool, answer: str, command: str) -> str:
    return answer if done else f"Failed to execute: {command}"


def _lower(value: bool) -> str:
    return "true" if value else "false"
