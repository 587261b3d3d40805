"""The server's side of the real-time data exchange (RTDE): bytes in, bytes out, without sockets.

Source: Universal Robots, "Real-Time Data Exchange (RTDE) Guide", section on the protocol, versions
1 and 2.
"""

from __future__ import annotations

import math
import struct

from simbridge.emulator.emulated_controller import EmulatedController
from simbridge.emulator.errors import ProtocolViolation
from simbridge.emulator.rtde_recipes import InputRecipe, OutputRecipe, RtdeRegistry
from simbridge.emulator.state import ControllerEvent
from simbridge.ur.tables import RTDE_HEADER, RtdePackage

# Largest package with its header, bytes: its size is sent as a 16-bit number.
MAX_FRAME = 65535
# Largest number of input recipes of a client: the number of a recipe is sent as one byte, and zero
# means "not set up".
MAX_INPUT_RECIPES = 255
# Rounding that is added to a quotient of two rates before it is rounded down.
DIVIDER_ROUNDING = 1e-9


def frame(kind: int, payload: bytes = b"") -> bytes:
    """Return a package with its header.

    Args:
        kind: A `RtdePackage`.
        payload: The content.

    Raises:
        ProtocolViolation: The answer, to a request with thousands of names, does not fit into a
            frame.
    """
    size = RTDE_HEADER.size + len(payload)
    if size > MAX_FRAME:
        reason = f"its request needs an answer of {size} bytes, but a frame holds {MAX_FRAME}"
        raise ProtocolViolation("RTDE", reason)
    return RTDE_HEADER.pack(size, kind) + payload


class RtdeConnection:
    """One client's connection.

    Args:
        controller: The controller.
        registry: Data that all connections share.

    Attributes:
        finished: Always false: no request ends the connection.
    """

    finished = False

    def __init__(self, controller: EmulatedController, registry: RtdeRegistry) -> None:
        self._controller = controller
        self._registry = registry

        # Received bytes of a frame that is not complete.
        self._buffer = bytearray()
        # Version of the protocol; the client may ask for another.
        self._version = 1

        # The output recipe of the client; None without one, and if its last one was refused.
        self._outputs: OutputRecipe | None = None
        # Ticks from one data package to the next.
        self._divider = 1
        # Input recipes of the client, by their number.
        self._inputs: dict[int, InputRecipe] = {}
        # True while data packages are sent.
        self._started = False

        self._handlers = {
            RtdePackage.PROTOCOL_VERSION: self._choose_version,
            RtdePackage.CONTROLLER_VERSION: self._report_controller,
            RtdePackage.TEXT: self._ignore_text,
            RtdePackage.OUTPUTS: self._setup_outputs,
            RtdePackage.INPUTS: self._setup_inputs,
            RtdePackage.START: self._start,
            RtdePackage.PAUSE: self._pause,
            RtdePackage.DATA: self._write_inputs,
        }

    def receive(self, data: bytes) -> bytes:
        """Return the replies to the bytes received.

        An incomplete frame waits for the rest (at most 64 KiB).

        Raises:
            ProtocolViolation: The client must be disconnected.
        """
        self._buffer += data
        replies = []
        while len(self._buffer) >= RTDE_HEADER.size:
            size, kind = RTDE_HEADER.unpack_from(self._buffer)
            if size < RTDE_HEADER.size:
                raise ProtocolViolation("RTDE", f"a frame claims to be {size} bytes long")
            if kind not in self._handlers:
                raise ProtocolViolation("RTDE", f"there is no package type {kind}")
            if len(self._buffer) < size:
                break

            payload = bytes(self._buffer[RTDE_HEADER.size : size])
            del self._buffer[:size]
            replies.append(self._handlers[kind](payload))
        return b"".join(replies)

    def output(self, tick: int, ticks_passed: int = 1) -> bytes:
        """Return the data package of this tick, if one is due; else nothing.

        Args:
            tick: Present tick of the controller.
            ticks_passed: Number of ticks since the last call. A package is due if it was due in any
                of them.
        """
        if not self._started or self._outputs is None or tick % self._divider >= ticks_passed:
            return b""
        return self._outputs.package(self._controller, tick)

    def close(self) -> None:
        """Let others write this client's inputs: it has left."""
        self._started = False
        self._registry.release(self)

    # Requests. Each method gets the content of a package, and returns the reply.

    def _choose_version(self, payload: bytes) -> bytes:
        if len(payload) != 2:
            reason = f"a request for a protocol version has {len(payload)} bytes instead of 2"
            raise ProtocolViolation("RTDE", reason)

        version = int.from_bytes(payload, "big")
        if version not in (1, 2):
            self._report_unknown(f"version {version} of the protocol is refused", payload)
            return frame(RtdePackage.PROTOCOL_VERSION, b"\x00")
        self._version = version
        return frame(RtdePackage.PROTOCOL_VERSION, b"\x01")

    def _report_controller(self, payload: bytes) -> bytes:
        version = struct.pack(">4I", *self._controller.profile.version)
        return frame(RtdePackage.CONTROLLER_VERSION, version)

    def _ignore_text(self, payload: bytes) -> bytes:
        self._report_unknown("a message of the client is not passed on", payload)
        return b""

    def _setup_outputs(self, payload: bytes) -> bytes:
        # Version 2 has a frequency before the names, and the number of the recipe in its answer.
        self._divider = 1
        recipe_id = None
        if self._version == 2:
            if len(payload) < 8:
                raise ProtocolViolation("RTDE", "an output recipe came without its frequency")
            (frequency,) = struct.unpack_from(">d", payload)
            payload = payload[8:]
            self._divider = _divider(1.0 / self._controller.profile.period, frequency)
            recipe_id = 1

        names = _names(payload)
        types, self._outputs = self._registry.output_recipe(names, recipe_id)
        self._report_missing("outputs", names, types, payload)

        answer = ",".join(types).encode("ascii")
        if recipe_id is not None:
            answer = bytes([0 if self._outputs is None else recipe_id]) + answer
        return frame(RtdePackage.OUTPUTS, answer)

    def _setup_inputs(self, payload: bytes) -> bytes:
        names = _names(payload)
        types, recipe = self._registry.input_recipe(names, self)
        self._report_missing("inputs", names, types, payload)

        number = 0
        if recipe is not None:
            number = len(self._inputs) + 1
            if number > MAX_INPUT_RECIPES:
                reason = f"it set up more than {MAX_INPUT_RECIPES} input recipes"
                raise ProtocolViolation("RTDE", reason)
            self._inputs[number] = recipe
        return frame(RtdePackage.INPUTS, bytes([number]) + ",".join(types).encode("ascii"))

    def _start(self, payload: bytes) -> bytes:
        # A real controller refuses a client without outputs, also one that only writes inputs:
        # issue 13 of UniversalRobots/RTDE_Python_Client_Library.
        self._started = self._outputs is not None
        if not self._started:
            self._report_unknown("no start without an accepted output recipe", payload)
        return frame(RtdePackage.START, bytes([self._started]))

    def _pause(self, payload: bytes) -> bytes:
        self._started = False
        return frame(RtdePackage.PAUSE, b"\x01")

    def _write_inputs(self, payload: bytes) -> bytes:
        if payload and payload[0] in self._inputs:
            recipe = self._inputs[payload[0]]
            recipe.apply(self._controller, self._registry.inputs, payload[1:])
        else:
            # After a reconnection, data may come before its recipe.
            self._report_unknown(
                "data for an input recipe that was not set up are ignored", payload
            )
        return b""

    # Entries of the log about requests that the emulator does not know

    def _report_missing(
        self, kind: str, names: tuple[str, ...], types: list[str], payload: bytes
    ) -> None:
        """Report the names that do not exist in this version, if there are any.

        Args:
            kind: "inputs" or "outputs".
            names: Names that the client asked for.
            types: The answer for each of them.
            payload: The request.
        """
        missing = [name for name, answer in zip(names, types, strict=True) if answer == "NOT_FOUND"]
        if missing:
            version = self._controller.profile.polyscope
            text = f"PolyScope {version} is emulated without the {kind} {', '.join(missing)}"
            self._report_unknown(text, payload)

    def _report_unknown(self, text: str, payload: bytes) -> None:
        """Report a request that the emulator does not know or carry out."""
        self._controller.on_event(ControllerEvent("unknown", f"RTDE: {text}", data=payload))


def _names(payload: bytes) -> tuple[str, ...]:
    """Return comma-separated names; one more comma may follow the last."""
    text = payload.decode("ascii", errors="replace").strip().rstrip("\x00").removesuffix(",")
    return tuple(name.strip() for name in text.split(",")) if text else ()


def _divider(rate: float, frequency: float) -> int:
    """Return the ticks between packages: floor(rate / frequency).

    Args:
        rate: Control rate of the controller, Hz.
        frequency: Rate that the client asks for, Hz; it is clamped to between 1 Hz and the rate.
    """
    if not math.isfinite(frequency):
        return 1
    clamped_frequency = min(max(frequency, 1.0), rate)
    return int(rate / clamped_frequency + DIVIDER_ROUNDING)
