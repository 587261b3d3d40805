"""Recipes: which variables an RTDE package holds, compiled so that packing one costs a few microseconds."""

from __future__ import annotations

import struct
from typing import Any
from weakref import WeakValueDictionary

from simbridge.emulator.commands import Machine
from simbridge.emulator.errors import ProtocolViolation
from simbridge.emulator.rtde_variables import (
    FORMATS,
    InputVariable,
    OutputVariable,
    input_variables,
    output_variables,
)

DATA_PACKAGE = 85  # U
# All variables together are less than half of it: only a recipe that repeats itself comes near.
MAX_PACKAGE = 8192


class OutputRecipe:
    """Packs a fixed list of variables; the package of a tick is made once, however many clients share the recipe.

    Args:
        variables: In the client's order.
        recipe_id: As in the package's header; None for protocol version 1, whose packages carry none.
    """

    def __init__(self, variables: list[OutputVariable], recipe_id: int | None) -> None:
        self._formats = [FORMATS[variable.type] for variable in variables]
        head = "HB" if recipe_id is None else "HBB"
        self._struct = struct.Struct(">" + head + "".join(self._formats))
        self.size = self._struct.size
        self._head = [self.size, DATA_PACKAGE] + ([] if recipe_id is None else [recipe_id])
        self._readers = [(variable.read, variable.type.startswith("VECTOR")) for variable in variables]
        self._tick = -1
        self._package = b""

    def package(self, machine: Machine, tick: int) -> bytes:
        """The data package of this tick, frame header included."""
        if tick != self._tick:
            values = list(self._head)
            for read, vector in self._readers:
                if vector:
                    values += read(machine)
                else:
                    values.append(read(machine))
            try:
                self._package = self._struct.pack(*values)
            except struct.error:
                self._package = self._struct.pack(*self._fitted(values))
            self._tick = tick
        return self._package

    def _fitted(self, values: list[Any]) -> list[Any]:
        """A program may have put a number into a register that the register's type cannot hold: it wraps around."""
        letters = "".join(f[-1] * int(f[:-1] or 1) for f in self._formats)
        head = len(values) - len(letters)
        return values[:head] + [_fit(letter, value) for letter, value in zip(letters, values[head:], strict=True)]


def _fit(letter: str, value: Any) -> Any:
    if letter in "d?":
        return value
    bits = {"B": 8, "I": 32, "i": 32, "Q": 64}[letter]
    wrapped = int(value) & ((1 << bits) - 1)
    return wrapped - (1 << bits) if letter == "i" and wrapped >> (bits - 1) else wrapped


class InputRecipe:
    """Unpacks a client's data package and applies it."""

    def __init__(self, variables: list[InputVariable]) -> None:
        self.names = tuple(variable.name for variable in variables)
        self._variables = variables
        self._formats = [FORMATS[variable.type] for variable in variables]
        self._struct = struct.Struct(">" + "".join(self._formats))

    def apply(self, machine: Machine, inputs: dict[str, Any], payload: bytes) -> None:
        """Write the values of a package into the controller.

        Raises:
            ProtocolViolation: The package has another length than the recipe.
        """
        if len(payload) != self._struct.size:
            reason = f"an input package of {len(payload)} bytes came for a recipe of {self._struct.size}"
            raise ProtocolViolation("RTDE", reason)
        flat = self._struct.unpack(payload)
        values: list[Any] = []
        at = 0
        for form in self._formats:
            count = int(form[:-1] or 1)
            values.append(flat[at] if count == 1 else flat[at : at + count])
            at += count
        # Masks first: a value that follows in the same package is judged by them, whatever the order.
        inputs.update(zip(self.names, values, strict=True))
        for variable, value in zip(self._variables, values, strict=True):
            variable.write(machine, value, inputs)
        machine.record_input(self.names, tuple(values))


class Registry:
    """What the RTDE clients of a controller share: its variables, and who writes which input.

    Attributes:
        inputs: The last value of every input that was ever written.
    """

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.inputs: dict[str, Any] = {}
        self._owners: dict[str, object] = {}
        self._recipes: WeakValueDictionary[tuple[tuple[str, ...], int | None], OutputRecipe] = WeakValueDictionary()

    def output_recipe(self, names: tuple[str, ...], recipe_id: int | None) -> tuple[list[str], OutputRecipe | None]:
        """The type of each name ("NOT_FOUND" for unknown ones), and the recipe when all are known.

        Raises:
            ProtocolViolation: The package would be longer than 8 KiB.
        """
        known = output_variables(self.machine.profile)
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

    def input_recipe(self, names: tuple[str, ...], owner: object) -> tuple[list[str], InputRecipe | None]:
        """The type of each name, or "NOT_FOUND", or "IN_USE" when another client writes it; claims all or none."""
        known = input_variables(self.machine.profile)
        types = []
        for name in names:
            taken = self._owners.get(name, owner) is not owner
            types.append("IN_USE" if taken else known[name].type if name in known else "NOT_FOUND")
        if not names or "IN_USE" in types or "NOT_FOUND" in types:
            return types, None
        self._owners.update((name, owner) for name in names)
        return types, InputRecipe([known[name] for name in names])

    def release(self, owner: object) -> None:
        """Others may write this client's inputs from now on."""
        self._owners = {name: by for name, by in self._owners.items() if by is not owner}
