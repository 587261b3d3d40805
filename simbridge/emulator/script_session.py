"""Executes what clients send to ports 30001 to 30003: programs, or commands in their place."""

from __future__ import annotations

import re
from collections.abc import Callable

from simbridge.emulator.emulated_controller import EmulatedController
from simbridge.emulator.errors import ProtocolViolation
from simbridge.emulator.primary import read_only_message
from simbridge.emulator.scripts import ScriptBuffer, is_secondary
from simbridge.emulator.state import ControllerEvent

# The assignment by which urx sets an output, which UR does not document.
_SET_OUTPUT = re.compile(r"\Adigital_out\[(\d+)\]\s*=\s*(True|False)\s*\Z")
# The command that moves the speed slider, with the slider's new position from 0 to 1.
_SET_SPEED = re.compile(r"set speed (\d*\.?\d+)")
# Commands that end a program which came together with them, before it could run.
_ENDS_PROGRAM = ("stop program", "power off")


class ScriptSession:
    """The receiving side of a connection: programs are run, nothing is answered.

    An e-Series that is not in remote control ignores them; PolyScope X answers with an error, or
    also ignores them (`Settings.answer_in_local`).

    Args:
        controller: Runs the programs.

    Attributes:
        finished: Always false: no program ends the connection.
    """

    finished = False

    def __init__(self, controller: EmulatedController) -> None:
        self._controller = controller
        self._buffer = ScriptBuffer()
        # Commands in place of a program. UR does not document them; its own client library, and
        # others that control real arms ("set speed"), send them.
        self._commands: dict[str, Callable[[], object]] = {
            "power on": controller.power_on,
            "power off": controller.power_off,
            "set robotmode run": controller.brake_release,
            "set unlock protective stop": controller.release_protective_stop,
            "stop program": controller.stop_program,
        }

    def receive(self, data: bytes) -> bytes:
        """Run the programs that are complete now.

        Returns:
            The answer: nothing, or PolyScope X's error about programs in local control.

        Raises:
            ProtocolViolation: A program is too long.
        """
        try:
            programs = self._buffer.receive(data)
        except ProtocolViolation:
            # The log says so once: `close` finds nothing unfinished.
            self._buffer = ScriptBuffer()
            raise

        if self._controller.profile.series == "CB3" or self._controller.remote_control:
            self._run(programs)
        elif programs:
            self._report_ignored("the robot is not in remote control", data)
            is_answered = self._controller.settings.answer_in_local == "C210"
            if self._controller.profile.is_polyscope_x and is_answered:
                return read_only_message(self._controller)
        return b""

    def _run(self, programs: list[str]) -> None:
        """Carry out commands and programs.

        Of several main programs only the last one is loaded. The earlier ones are replaced or
        stopped before they could run a tick, and compiling them would cost time with the lock held.

        Args:
            programs: Texts in the order in which they came: each is a program, or one of the
                commands that may be sent in place of a program.
        """
        # The last main program that no later command ends; "" for none.
        main_program = ""
        for program in programs:
            text = program.strip()
            command = self._commands.get(text)
            slider_command = _SET_SPEED.fullmatch(text)

            if command:
                if text in _ENDS_PROGRAM:
                    main_program = ""
                command()
            elif slider_command:
                slider = float(slider_command[1])
                self._controller.set_speed_slider(slider)
            elif is_secondary(program):
                # A secondary program runs beside the main one.
                self._load(program)
            else:
                main_program = program

        if main_program:
            self._load(main_program)

    def _load(self, program: str) -> None:
        """Have the controller compile and run a program."""
        self._controller.load_script(_SET_OUTPUT.sub(r"set_digital_out(\1, \2)", program))

    def close(self) -> None:
        """Drop an unfinished program: the client has left."""
        rest = self._buffer.rest.strip()
        if rest:
            self._report_ignored(
                "the client left before its end (a line end, or the `end` of a block, is missing)",
                rest,
            )

    def _report_ignored(self, reason: str, data: bytes) -> None:
        """Report that a program is not run."""
        text = f"script: a program is ignored: {reason}"
        self._controller.on_event(ControllerEvent("unknown", text, data=data))
