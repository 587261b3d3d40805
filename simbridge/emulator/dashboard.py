"""The dashboard server: one line in, one line out.

Source: Universal Robots, "Dashboard Server, CB-Series" and "Dashboard Server, e-Series": the
commands, their answers and the version that introduced them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from simbridge.emulator.emulated_controller import EmulatedController
from simbridge.emulator.errors import ProtocolViolation, UnknownNode
from simbridge.emulator.pendant_program import translate
from simbridge.emulator.state import ControllerEvent, RobotMode, RuntimeState, SafetyMode

GREETING = "Connected: Universal Robots Dashboard Server"
NOT_ALLOWED = (
    "Command is not allowed due to safety reasons, "
    "please switch robot to Remote Control mode and reconnect to port 29999"
)
# Longest line, bytes.
MAX_LINE = 4096
# Characters that the log shows of an unknown command.
MAX_SHOWN = 100
USER_ROLES = ("programmer", "operator", "none", "locked", "restricted")
OPERATIONAL_MODES = ("manual", "automatic")

# Versions that no CB3 and no e-Series controller has.
_NOT_ON_CB3 = (4, 0)
_NOT_ON_E_SERIES = (6, 0)


@dataclass(frozen=True)
class Command:
    """A command of the dashboard.

    Attributes:
        answer: Carries out the command; it gets the text after the name, and returns the answer.
        since: The first e-Series and the first CB3 version that has it.
        acts: Whether it changes something, which an e-Series controller allows in remote control
            only.
    """

    answer: Callable[[str], str]
    since: tuple[tuple[int, int], tuple[int, int]] = ((5, 0), (3, 0))
    acts: bool = False


class Dashboard:
    """The dashboard's answers; shared by all connections of a controller.

    Attributes:
        loaded_program: Path of the program that `load` named, or "".
        caller: The connection whose line is answered.
        user_role: User role of a CB3 controller, in capitals.
        operational_mode: Operational mode of an e-Series controller, in capitals.
    """

    def __init__(self, controller: EmulatedController) -> None:
        self._controller = controller
        self.loaded_program = ""
        self.caller = DashboardConnection(self)
        self.user_role = "PROGRAMMER"
        self.operational_mode = "NONE"

        self._commands = self._table()
        # Longest name first: "close safety popup" before "close popup", "load installation" before
        # "load".
        self._names = sorted(self._commands, key=len, reverse=True)

    def answer(self, line: str) -> str:
        """Return the answer to a line, both without their newlines."""
        line = line.strip()
        name = self._find_command(line.lower())
        if not name:
            return self._refuse_unknown(line)

        command = self._commands[name]
        if not self._controller.profile.at_least(*command.since):
            return self._refuse_unknown(line)
        may_act = self._controller.profile.series == "CB3" or self._controller.remote_control
        if command.acts and not may_act:
            return NOT_ALLOWED
        return command.answer(line[len(name) :].strip())

    def _find_command(self, line: str) -> str:
        """Return the name of the command that a line in lower case begins with, or ""."""
        for name in self._names:
            if line == name or line.startswith(name + " "):
                return name
        return ""

    def _refuse_unknown(self, line: str) -> str:
        """Return the answer to a command that this version does not have; log it."""
        version = self._controller.profile.polyscope
        text = (
            f"dashboard: PolyScope {version} is emulated without the command {line[:MAX_SHOWN]!r}"
        )
        self._controller.on_event(ControllerEvent("unknown", text, data=line.encode()))
        return f"could not understand: '{line}'"

    def _table(self) -> dict[str, Command]:
        """Return the commands, by their names in lower case.

        A pair of versions says since when a command exists: on an e-Series and on CB3.
        """
        return {
            # Programs
            "load": Command(self._load, acts=True),
            "load installation": Command(self._load_installation, acts=True),
            "play": Command(self._play, acts=True),
            "stop": Command(self._stop, acts=True),
            "pause": Command(self._pause, acts=True),
            "running": Command(self._running),
            "get loaded program": Command(self._loaded),
            "isprogramsaved": Command(self._is_program_saved),
            "programstate": Command(self._program_state),
            # Power and safety
            "power on": Command(self._power_on, acts=True),
            "power off": Command(self._power_off, acts=True),
            "brake release": Command(self._release_brakes, acts=True),
            "shutdown": Command(self._shut_down, acts=True),
            "robotmode": Command(self._robot_mode),
            "safetymode": Command(self._safety_mode),
            "safetystatus": Command(self._safety_status, ((5, 4), _NOT_ON_CB3)),
            "unlock protective stop": Command(
                self._unlock_protective_stop, ((5, 0), (3, 1)), acts=True
            ),
            "close safety popup": Command(_always("closing safety popup"), ((5, 0), (3, 1))),
            "restart safety": Command(self._restart_safety, ((5, 1), (3, 7)), acts=True),
            # Popups and the log
            "popup": Command(self._popup),
            "close popup": Command(self._close_popup),
            "addtolog": Command(self._add_to_log),
            # Who controls the robot
            "setuserrole": Command(self._set_user_role, (_NOT_ON_E_SERIES, (3, 1))),
            "getuserrole": Command(self._get_user_role, (_NOT_ON_E_SERIES, (3, 1))),
            "set operational mode": Command(
                self._set_operational_mode, ((5, 0), _NOT_ON_CB3), acts=True
            ),
            "get operational mode": Command(self._get_operational_mode, ((5, 6), _NOT_ON_CB3)),
            "clear operational mode": Command(
                self._clear_operational_mode, ((5, 0), _NOT_ON_CB3), acts=True
            ),
            "is in remote control": Command(self._is_in_remote_control, ((5, 6), _NOT_ON_CB3)),
            # The controller
            "polyscopeversion": Command(self._polyscope_version),
            "version": Command(self._version, ((5, 0), _NOT_ON_CB3)),
            "get serial number": Command(self._serial_number, ((5, 6), (3, 12))),
            "get robot model": Command(self._robot_model, ((5, 6), (3, 12))),
            "generate flight report": Command(self._generate_flight_report, ((5, 8), (3, 13))),
            "generate support file": Command(self._generate_support_file, ((5, 8), (3, 13))),
            "savelog": Command(_always("Log saved to disk"), ((5, 8), (3, 13))),
            "quit": Command(_always("Disconnected")),
        }

    # Each command gets what follows its name, and returns the answer.
    # Programs

    def _load(self, name: str) -> str:
        if self._find_program(name) is None:
            return f"File not found: {name}"
        self.loaded_program = name if name.startswith("/") else f"/programs/{name}"
        return f"Loading program: {self.loaded_program}"

    def _load_installation(self, name: str) -> str:
        if name.endswith(".installation"):
            return f"Loading installation: {name}"
        return f"File not found: {name}"

    def _play(self, _text: str) -> str:
        """Continue a paused program, or start the loaded one."""
        controller = self._controller
        if controller.play_program():
            return "Starting program"

        is_stopped = controller.state.runtime_state == RuntimeState.STOPPED
        may_start = is_stopped and self.caller.may_start
        path = self._find_program(self.loaded_program) if may_start else None
        if path is None:
            return "Failed to execute: play"

        self.caller.may_start = False
        try:
            controller.load_script(translate(path))
        except (UnknownNode, OSError) as error:
            return f"Failed to execute: play. {error}"
        plays = controller.state.runtime_state == RuntimeState.PLAYING
        return _answer_if(plays, "Starting program", "play")

    def _stop(self, _text: str) -> str:
        return _answer_if(self._controller.stop_program(), "Stopped", "stop")

    def _pause(self, _text: str) -> str:
        return _answer_if(self._controller.pause_program(), "Pausing program", "pause")

    def _running(self, _text: str) -> str:
        plays = self._controller.state.runtime_state == RuntimeState.PLAYING
        return f"Program running: {_lower(plays)}"

    def _loaded(self, _text: str) -> str:
        if self.loaded_program:
            return f"Loaded program: {self.loaded_program}"
        return "No program loaded"

    def _is_program_saved(self, _text: str) -> str:
        is_saved = _lower(bool(self.loaded_program))
        # CB3 capitalises it, as ur_rtde expects. The e-Series does not, and ur_rtde reads that as
        # "not saved".
        if self._controller.profile.series == "CB3":
            is_saved = is_saved.capitalize()
        return f"{is_saved} {self._program_name()}"

    def _program_state(self, _text: str) -> str:
        runtime_state = self._controller.state.runtime_state
        state = "PLAYING"
        if runtime_state in (RuntimeState.STOPPED, RuntimeState.STOPPING):
            state = "STOPPED"
        elif runtime_state == RuntimeState.PAUSED:
            state = "PAUSED"
        return f"{state} {self._program_name()}"

    def _program_name(self) -> str:
        """Return the name of the loaded program's file."""
        return self.loaded_program.rpartition("/")[2] or "<unnamed>"

    def _find_program(self, name: str) -> Path | None:
        """Return the file of a saved program, or None if the programs' folder has no such file.

        Args:
            name: The program's path: relative to the folder, or below /programs/ or
                /ursim/programs/, which stand for the folder.
        """
        folder = self._controller.programs
        relative = name.removeprefix("/ursim").removeprefix("/programs/")
        if folder is None or not name.endswith(".urp") or relative.startswith("/"):
            return None

        try:
            path = (folder / relative).resolve()
            is_in_folder = path.is_file() and path.is_relative_to(folder.resolve())
        except (OSError, ValueError):
            # No file can have this name, or the folder may not be read.
            return None
        return path if is_in_folder else None

    # Power and safety

    def _power_on(self, _text: str) -> str:
        self._controller.power_on()
        return "Powering on"

    def _power_off(self, _text: str) -> str:
        self._controller.power_off()
        return "Powering off"

    def _release_brakes(self, _text: str) -> str:
        self._controller.brake_release()
        return "Brake releasing"

    def _shut_down(self, _text: str) -> str:
        self._controller.power_off()
        return "Shutting down"

    def _robot_mode(self, _text: str) -> str:
        return f"Robotmode: {RobotMode(self._controller.state.robot_mode).name}"

    def _safety_mode(self, _text: str) -> str:
        return f"Safetymode: {SafetyMode(self._controller.state.safety_mode).name}"

    def _safety_status(self, _text: str) -> str:
        # Mode and status have the same names, as far as emulated.
        return f"Safetystatus: {SafetyMode(self._controller.state.safety_mode).name}"

    def _unlock_protective_stop(self, _text: str) -> str:
        return self._controller.unlock_protective_stop()

    def _restart_safety(self, _text: str) -> str:
        return self._controller.restart_safety()

    # Popups and the log

    def _popup(self, text: str) -> str:
        self._controller.popup(text)
        return "showing popup"

    def _close_popup(self, _text: str) -> str:
        self._controller.close_popup()
        return "closing popup"

    def _add_to_log(self, text: str) -> str:
        return "Added log message" if text else "No log message to add"

    # Who controls the robot

    def _set_user_role(self, role: str) -> str:
        if role.lower() not in USER_ROLES:
            return f"Failed setting user role: {role}"
        self.user_role = role.upper()
        return f"Setting user role: {role}"

    def _get_user_role(self, _text: str) -> str:
        return self.user_role

    def _set_operational_mode(self, mode: str) -> str:
        if mode.lower() not in OPERATIONAL_MODES:
            return f"Failed setting operational mode: {mode}"
        self.operational_mode = mode.upper()
        self.caller.mode_was_cleared = False
        return f"Operational mode {self.operational_mode} is set"

    def _get_operational_mode(self, _text: str) -> str:
        return self.operational_mode

    def _clear_operational_mode(self, _text: str) -> str:
        last_mode = self.operational_mode
        self.operational_mode = "NONE"
        self.caller.mode_was_cleared = True
        return (
            f"No longer controlling the operational mode. Current operational mode: '{last_mode}'."
        )

    def _is_in_remote_control(self, _text: str) -> str:
        # Not in UR's documents: its own tests expect false once a client has let go of the
        # operational mode, and go on sending commands. Nothing says that other clients see it, too.
        return _lower(self._controller.remote_control and not self.caller.mode_was_cleared)

    # The controller

    def _version(self, _text: str) -> str:
        return ".".join(map(str, self._controller.profile.version))

    def _polyscope_version(self, text: str) -> str:
        return f"URSoftware {self._version(text)} ({self._controller.profile.date})"

    def _serial_number(self, _text: str) -> str:
        return self._controller.serial_number

    def _robot_model(self, _text: str) -> str:
        return self._controller.model_name

    def _generate_flight_report(self, kind: str) -> str:
        number = self._controller.state.tick
        return f"Flight Report generated with id: {kind or 'system'}-{number}"

    def _generate_support_file(self, path: str) -> str:
        return f"Completed successfully: {path}"


class DashboardConnection:
    """One client's connection.

    Args:
        dashboard: Gives the answers.

    Attributes:
        may_start: Whether `play` may start the program: once for each piece that a client sends,
            because it takes a millisecond with the lock held.
        mode_was_cleared: Whether it has set and then cleared the operational mode.
        finished: The client has sent `quit`: send what `receive` returned, then close.
    """

    def __init__(self, dashboard: Dashboard) -> None:
        self._dashboard = dashboard
        # The received part of a line that is not complete.
        self._buffer = bytearray()
        self.may_start = True
        self.mode_was_cleared = False
        self.finished = False

    def receive(self, data: bytes) -> bytes:
        """Return the answers to the complete lines; an incomplete one waits for the rest.

        Raises:
            ProtocolViolation: A line is longer than 4096 bytes.
        """
        self._buffer += data
        *lines, rest = bytes(self._buffer).split(b"\n")
        self._buffer = bytearray(rest)

        self._dashboard.caller = self
        self.may_start = True
        answers = []
        for line in lines:
            if self.finished:
                break
            if len(line) > MAX_LINE:
                reason = f"its line has {len(line)} bytes; at most {MAX_LINE} are read"
                raise ProtocolViolation("dashboard", reason)

            text = line.decode("utf-8", errors="replace").strip()
            if text:
                answers.append(self._dashboard.answer(text))
                self.finished = text.lower() == "quit"

        if len(rest) > MAX_LINE:
            reason = f"it sent {len(rest)} bytes without ending a line"
            raise ProtocolViolation("dashboard", reason)
        return "".join(answer + "\n" for answer in answers).encode()

    def close(self) -> None:
        """Drop an unfinished line."""


def _always(answer: str) -> Callable[[str], str]:
    """Return a command that only answers."""
    return lambda _text: answer


def _answer_if(is_done: bool, answer: str, command: str) -> str:
    """Return the answer of a command that may fail."""
    return answer if is_done else f"Failed to execute: {command}"


def _lower(value: bool) -> str:
    return "true" if value else "false"
