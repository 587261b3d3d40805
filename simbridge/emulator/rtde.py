"""The RTDE server's protocol as a pure state controller: bytes in, bytes out. No sockets, no clocks.

A recipe is the list of variables that a package holds, compiled so that packing one costs a few microseconds.

Source: Universal Robots, "Real-Time Data Exchange (RTDE) Guide", section on the protocol, versions 1 and 2.
"""

from __future__ import annotations

import math
import struct
from itertools import islice
from typing import Any
from weakref import WeakValueDictionary

from simbridge.emulator.emulated_controller import Controller
from simbridge.emulator.errors import ProtocolViolation
from simbridge.emulator.rtde_variables import (
    Read,
    Variable,
    Write,
    input_variables,
    output_variables,
)
from simbridge.emulator.state import Event
from simbridge.ur.tables import RTDE_FORMATS, RTDE_HEADER, RtdePackage

MAX_FRAME = 65535
MAX_INPUT_RECIPES = 255  # their number is a byte, and zero means "not set up"
# All variables together are less than half of it: only a recipe that repeats itself comes near.
MAX_PACKAGE = 8192


class OutputRecipe:
    """Packs a fixed list of variables, once a tick, however many clients share the recipe.

    Args:
        recipe_id: As in the package's header; None for protocol version 1, whose packages carry none.
    """

    def __init__(self, variables: list[Variable[Read]], recipe_id: int | None) -> None:
        head = "HB" if recipe_id is None else "HBB"
        self._struct = struct.Struct(
            ">" + head + "".join(RTDE_FORMATS[variable.type] for variable in variables)
        )
        self.size = self._struct.size
        self._head = [self.size, RtdePackage.DATA] + ([] if recipe_id is None else [recipe_id])
        self._readers = [
            (variable.access, variable.type.startswith("VECTOR")) for variable in variables
        ]
        self._tick = -1
        self._package = b""

    def package(self, controller: Controller, tick: int) -> bytes:
        """The data package of this tick, frame header included."""
        if tick != self._tick:
            values = list(self._head)
            for read, vector in self._readers:
                if vector:
                    values += read(controller.state)
                else:
                    values.append(read(controller.state))
            self._package, self._tick = self._struct.pack(*values), tick
        return self._package


class InputRecipe:
    """Unpacks a client's data package and applies it."""

    def __init__(self, variables: list[Variable[Write]]) -> None:
        self.names = tuple(variable.name for variable in variables)
        self._variables = variables
        self._formats = [RTDE_FORMATS[variable.type] for variable in variables]
        self._struct = struct.Struct(">" + "".join(self._formats))

    def apply(self, controller: Controller, inputs: dict[str, Any], payload: bytes) -> None:
        """Write the values of a package into the controller.

        One of another length than the recipe is ignored: UR does not document what a controller does with it, and
        ur_rtde sends some (`setExternalForceTorque`).
        """
        if len(payload) != self._struct.size:
            text = f"RTDE: an input package of {len(payload)} bytes is ignored, for its recipe has {self._struct.size}"
            controller.on_event(Event("unknown", f"{text} ({', '.join(self.names)})", data=payload))
            return
        flat = iter(self._struct.unpack(payload))
        counts = [int(code[:-1] or 1) for code in self._formats]
        values = [next(flat) if count == 1 else tuple(islice(flat, count)) for count in counts]
        # Masks first: they apply to the values in the same package, whatever the order.
        inputs.update(zip(self.names, values, strict=True))
        for variable, value in zip(self._variables, values, strict=True):
            variable.access(controller.state, value, inputs)
        controller.record_input(self.names, tuple(values))


class Registry:
    """What the RTDE clients of a controller share: its variables, and which client writes which input.

    Attributes:
        inputs: The last value of every input written so far.
    """

    def __init__(self, controller: Controller) -> None:
        self.controller = controller
        self.inputs: dict[str, Any] = {}
        self._owners: dict[str, object] = {}
        self._recipes: WeakValueDictionary[tuple[tuple[str, ...], int | None], OutputRecipe] = (
            WeakValueDictionary()
        )

    def output_recipe(
        self, names: tuple[str, ...], recipe_id: int | None
    ) -> tuple[list[str], OutputRecipe | None]:
        """The type of each name ("NOT_FOUND" for unknown ones), and the recipe when all are known.

        Raises:
            ProtocolViolation: The package would be longer than 8 KiB.
        """
        known = output_variables(self.controller.profile)
        types = [known[name].type if name in known else "NOT_FOUND" for name in names]
        if not names or "NOT_FOUND" in types:
            return types, None
        recipe = self._recipes.get((names, recipe_id))
        if recipe is None:
            recipe = OutputRecipe([known[name] for name in names], recipe_id)
            if recipe.size > MAX_PACKAGE:
                reason = f"its output recipe makes packages of {recipe.size} bytes, at most {MAX_PACKAGE} are sent"
                raise ProtocolViolation("RTDE", reason)
            self._recipes[names, recipe_id] = recipe
        return types, recipe

    def input_recipe(
        self, names: tuple[str, ...], owner: object
    ) -> tuple[list[str], InputRecipe | None]:
        """The type of each name, or "NOT_FOUND", or "IN_USE" when another client writes it. Claims all or none."""
        known = input_variables(self.controller.profile)
        types = []
        for name in names:
            taken = self._owners.get(name, owner) is not owner
            types.append("IN_USE" if taken else known[name].type if name in known else "NOT_FOUND")
        if not names or "IN_USE" in types or "NOT_FOUND" in types:
            return types, None
        self._owners.update((name, owner) for name in names)
        return types, InputRecipe([known[name] for name in names])

    def release(self, owner: object) -> None:
        """Let others write this client's inputs."""
        self._owners = {name: by for name, by in self._owners.items() if by is not owner}


def frame(kind: int, payload: bytes = b"") -> bytes:
    """A package with its header.

    Raises:
        ProtocolViolation: The answer, to a request with thousands of names, does not fit into a frame.
    """
    size = RTDE_HEADER.size + len(payload)
    if size > MAX_FRAME:
        raise ProtocolViolation(
            "RTDE", f"its request needs an answer of {size} bytes, but a frame holds {MAX_FRAME}"
        )
    return RTDE_HEADER.pack(size, kind) + payload


class RtdeConnection:
    """One client's connection; the registry is shared by all of them."""

    finished = False

    def __init__(self, controller: Controller, registry: Registry) -> None:
        self._controller, self._registry, self._buffer = controller, registry, bytearray()
        self._version = 1  # until the client asks for another
        self._outputs: OutputRecipe | None = None
        self._every = 1
        self._invalid = False
        self._inputs: dict[int, InputRecipe] = {}
        self._started = False
        self._handlers = {
            RtdePackage.PROTOCOL_VERSION: self._protocol_version,
            RtdePackage.CONTROLLER_VERSION: self._controller_version,
            RtdePackage.TEXT: self._text,
            RtdePackage.OUTPUTS: self._setup_outputs,
            RtdePackage.INPUTS: self._setup_inputs,
            RtdePackage.START: self._start,
            RtdePackage.PAUSE: self._pause,
            RtdePackage.DATA: self._data,
        }

    def receive(self, data: bytes) -> bytes:
        """The replies to the bytes received; an incomplete frame waits for the rest (at most 64 KiB).

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

    def output(self, tick: int, passed: int = 1) -> bytes:
        """The data package of this tick, if one was due in it or in those passed since the last call; else nothing."""
        if not self._started or self._outputs is None or tick % self._every >= passed:
            return b""
        return self._outputs.package(self._controller, tick)

    def close(self) -> None:
        """The client has left: others may write its inputs."""
        self._started = False
        self._registry.release(self)

    def _protocol_version(self, payload: bytes) -> bytes:
        if len(payload) != 2:
            raise ProtocolViolation(
                "RTDE", f"a request for a protocol version has {len(payload)} bytes instead of 2"
            )
        version = int.from_bytes(payload, "big")
        if version not in (1, 2):
            self._unknown(f"version {version} of the protocol is refused", payload)
            return frame(RtdePackage.PROTOCOL_VERSION, b"\x00")
        self._version = version
        return frame(RtdePackage.PROTOCOL_VERSION, b"\x01")

    def _controller_version(self, payload: bytes) -> bytes:
        return frame(
            RtdePackage.CONTROLLER_VERSION, struct.pack(">4I", *self._controller.profile.version)
        )

    def _text(self, payload: bytes) -> bytes:
        self._unknown("a message of the client is not passed on", payload)
        return b""

    def _unknown(self, text: str, payload: bytes) -> None:
        self._controller.on_event(Event("unknown", f"RTDE: {text}", data=payload))

    def _report_missing(
        self, kind: str, names: tuple[str, ...], types: list[str], payload: bytes
    ) -> None:
        missing = [name for name, found in zip(names, types, strict=True) if found == "NOT_FOUND"]
        if missing:
            version = self._controller.profile.polyscope
            self._unknown(
                f"PolyScope {version} is emulated without the {kind} {', '.join(missing)}", payload
            )

    def _setup_outputs(self, payload: bytes) -> bytes:
        self._every = 1
        recipe_id = None
        if self._version == 2:
            if len(payload) < 8:
                raise ProtocolViolation("RTDE", "an output recipe came without its frequency")
            (frequency,) = struct.unpack_from(">d", payload)
            payload = payload[8:]
            self._every = _divider(1.0 / self._controller.profile.period, frequency)
            recipe_id = 1
        names = _names(payload)
        types, self._outputs = self._registry.output_recipe(names, recipe_id)
        self._report_missing("outputs", names, types, payload)
        self._invalid = self._outputs is None
        head = b"" if recipe_id is None else bytes([0 if self._invalid else recipe_id])
        return frame(RtdePackage.OUTPUTS, head + ",".join(types).encode("ascii"))

    def _setup_inputs(self, payload: bytes) -> bytes:
        names = _names(payload)
        types, recipe = self._registry.input_recipe(names, self)
        self._report_missing("inputs", names, types, payload)
        number = 0
        if recipe is not None:
            number = len(self._inputs) + 1
            if number > MAX_INPUT_RECIPES:
                raise ProtocolViolation(
                    "RTDE", f"it set up more than {MAX_INPUT_RECIPES} input recipes"
                )
            self._inputs[number] = recipe
        return frame(RtdePackage.INPUTS, bytes([number]) + ",".join(types).encode("ascii"))

    def _start(self, payload: bytes) -> bytes:
        # A client that only writes may start too, but not one whose outputs were refused.
        self._started = not self._invalid
        return frame(RtdePackage.START, bytes([self._started]))

    def _pause(self, payload: bytes) -> bytes:
        self._started = False
        return frame(RtdePackage.PAUSE, b"\x01")

    def _data(self, payload: bytes) -> bytes:
        if payload and payload[0] in self._inputs:
            self._inputs[payload[0]].apply(self._controller, self._registry.inputs, payload[1:])
        else:  # on a reconnect data may come before its recipe
            self._unknown("data for an input recipe that was not set up are ignored", payload)
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
