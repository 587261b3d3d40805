"""One RTDE connection as a pure state machine: bytes in, bytes out. No sockets, no clocks.

Source: Universal Robots, "Real-Time Data Exchange (RTDE) Guide", section on the protocol, versions 1 and 2.
"""

from __future__ import annotations

import math
import struct

from simbridge.emulator.commands import Machine
from simbridge.emulator.errors import ProtocolViolation
from simbridge.emulator.rtde_recipes import DATA_PACKAGE, InputRecipe, OutputRecipe, Registry

HEADER = struct.Struct(">HB")
REQUEST_PROTOCOL_VERSION = 86  # V
GET_URCONTROL_VERSION = 118  # v
TEXT_MESSAGE = 77  # M
SETUP_OUTPUTS = 79  # O
SETUP_INPUTS = 73  # I
START = 83  # S
PAUSE = 80  # P
MAX_FRAME = 65535
MAX_INPUT_RECIPES = 255  # their number is a byte, and zero means "not set up"


def frame(kind: int, payload: bytes = b"") -> bytes:
    """A package with its header.

    Raises:
        ProtocolViolation: It would be longer than a frame can be: a request with thousands of names was to be answered.
    """
    size = HEADER.size + len(payload)
    if size > MAX_FRAME:
        raise ProtocolViolation("RTDE", f"its request needs an answer of {size} bytes, a frame holds {MAX_FRAME}")
    return HEADER.pack(size, kind) + payload


class RtdeConnection:
    """What a controller says to one RTDE client.

    Args:
        machine: The controller.
        registry: Shared by all connections of this controller.
    """

    finished = False

    def __init__(self, machine: Machine, registry: Registry) -> None:
        self._machine = machine
        self._registry = registry
        self._buffer = bytearray()
        self._version = 1  # until the client asks for another
        self._outputs: OutputRecipe | None = None
        self._every = 1
        self._invalid = False
        self._inputs: dict[int, InputRecipe] = {}
        self._started = False
        self._handlers = {
            REQUEST_PROTOCOL_VERSION: self._protocol_version,
            GET_URCONTROL_VERSION: self._controller_version,
            TEXT_MESSAGE: self._text,
            SETUP_OUTPUTS: self._setup_outputs,
            SETUP_INPUTS: self._setup_inputs,
            START: self._start,
            PAUSE: self._pause,
            DATA_PACKAGE: self._data,
        }

    def receive(self, data: bytes) -> bytes:
        """The replies to what came in; an incomplete frame waits for its rest (at most 64 KiB).

        Raises:
            ProtocolViolation: The client must be disconnected.
        """
        self._buffer += data
        replies = []
        while len(self._buffer) >= HEADER.size:
            size, kind = HEADER.unpack_from(self._buffer)
            if size < HEADER.size:
                raise ProtocolViolation("RTDE", f"a frame claims to be {size} bytes long")
            if kind not in self._handlers:
                raise ProtocolViolation("RTDE", f"there is no package type {kind}")
            if len(self._buffer) < size:
                break
            payload = bytes(self._buffer[HEADER.size : size])
            del self._buffer[:size]
            replies.append(self._handlers[kind](payload))
        return b"".join(replies)

    def output(self, tick: int) -> bytes:
        """The data package that is due in this tick, or nothing."""
        if not self._started or self._outputs is None or tick % self._every:
            return b""
        return self._outputs.package(self._machine, tick)

    def close(self) -> None:
        """The client is gone: what it wrote may be written by others."""
        self._started = False
        self._registry.release(self)

    def _protocol_version(self, payload: bytes) -> bytes:
        if len(payload) != 2:
            raise ProtocolViolation("RTDE", f"a request for a protocol version has {len(payload)} bytes instead of 2")
        version = int.from_bytes(payload, "big")
        accepted = version in (1, 2)
        if accepted:
            self._version = version
        return frame(REQUEST_PROTOCOL_VERSION, bytes([accepted]))

    def _controller_version(self, payload: bytes) -> bytes:
        return frame(GET_URCONTROL_VERSION, struct.pack(">4I", *self._machine.profile.version))

    def _text(self, payload: bytes) -> bytes:
        return b""

    def _setup_outputs(self, payload: bytes) -> bytes:
        self._every = 1
        recipe_id = None
        if self._version == 2:
            if len(payload) < 8:
                raise ProtocolViolation("RTDE", "an output recipe came without its frequency")
            (frequency,) = struct.unpack_from(">d", payload)
            payload = payload[8:]
            self._every = _divider(1.0 / self._machine.profile.period, frequency)
            recipe_id = 1
        types, self._outputs = self._registry.output_recipe(_names(payload), recipe_id)
        self._invalid = self._outputs is None
        answer = ",".join(types).encode("ascii")
        if recipe_id is not None:
            answer = bytes([0 if self._invalid else recipe_id]) + answer
        return frame(SETUP_OUTPUTS, answer)

    def _setup_inputs(self, payload: bytes) -> bytes:
        types, recipe = self._registry.input_recipe(_names(payload), self)
        number = 0
        if recipe is not None:
            number = len(self._inputs) + 1
            if number > MAX_INPUT_RECIPES:
                raise ProtocolViolation("RTDE", f"it set up more than {MAX_INPUT_RECIPES} input recipes")
            self._inputs[number] = recipe
        return frame(SETUP_INPUTS, bytes([number]) + ",".join(types).encode("ascii"))

    def _start(self, payload: bytes) -> bytes:
        # A client that only writes may start too; one whose outputs were refused may not.
        self._started = not self._invalid
        return frame(START, bytes([self._started]))

    def _pause(self, payload: bytes) -> bytes:
        self._started = False
        return frame(PAUSE, b"\x01")

    def _data(self, payload: bytes) -> bytes:
        # On a reconnect data may come before its recipe; a controller ignores it.
        recipe = self._inputs.get(payload[0]) if payload else None
        if recipe is not None:
            recipe.apply(self._machine, self._registry.inputs, payload[1:])
        return b""


def _names(payload: bytes) -> tuple[str, ...]:
    """Comma-separated names; one more comma may follow the last."""
    text = payload.decode("ascii", errors="replace").strip().rstrip("\x00").removesuffix(",")
    return tuple(name.strip() for name in text.split(",")) if text else ()


def _divider(rate: float, frequency: float) -> int:
    """Ticks between packages: floor(rate / frequency), with the frequency held within 1 Hz and the rate."""
    if not math.isfinite(frequency):
        return 1
    return int(rate / min(max(frequency, 1.0), rate) + 1e-9)
