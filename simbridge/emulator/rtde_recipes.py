"""Recipes of the real-time data exchange (RTDE), and what all its clients share.

A recipe is the list of variables that a package holds, compiled so that packing one costs a few
microseconds.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from itertools import islice
from typing import Any
from weakref import WeakValueDictionary

from simbridge.emulator.emulated_controller import EmulatedController
from simbridge.emulator.errors import ProtocolViolation
from simbridge.emulator.rtde_variables import (
    Read,
    Variable,
    Write,
    input_variables,
    output_variables,
)
from simbridge.emulator.state import ControllerEvent
from simbridge.ur.tables import RTDE_FORMATS, RtdePackage

# The largest data package, bytes. All variables together are less than half of it: only a recipe
# that repeats itself comes near.
MAX_PACKAGE = 8192


class OutputRecipe:
    """Packs a fixed list of variables, once a tick, however many clients share the recipe.

    Args:
        variables: Variables in the order of the package.
        recipe_id: Number in the package's header; None for protocol version 1, whose packages carry
            none.

    Attributes:
        size: Size of a package with its header, bytes.
    """

    def __init__(self, variables: list[Variable[Read]], recipe_id: int | None) -> None:
        # Size and type of the package, and the recipe.
        header_format = "HB" if recipe_id is None else "HBB"
        formats = "".join(RTDE_FORMATS[variable.type] for variable in variables)
        self._struct = struct.Struct(f">{header_format}{formats}")
        self.size = self._struct.size

        self._header = [self.size, RtdePackage.DATA]
        if recipe_id is not None:
            self._header.append(recipe_id)
        # The function that reads each variable; True where it returns a list of numbers.
        self._readers = [
            (variable.access, variable.type.startswith("VECTOR")) for variable in variables
        ]

        # The tick that was packed last, and its package.
        self._tick = -1
        self._package = b""

    def package(self, controller: EmulatedController, tick: int) -> bytes:
        """Return the data package of this tick, header included."""
        if tick != self._tick:
            values = list(self._header)
            for read, is_vector in self._readers:
                if is_vector:
                    values += read(controller.state)
                else:
                    values.append(read(controller.state))
            self._package = self._struct.pack(*values)
            self._tick = tick
        return self._package


class InputRecipe:
    """Unpacks a client's data package and applies it.

    Args:
        variables: Variables in the order of the package.

    Attributes:
        names: Names of the variables.
    """

    def __init__(self, variables: list[Variable[Write]]) -> None:
        self.names = tuple(variable.name for variable in variables)
        self._variables = variables
        formats = [RTDE_FORMATS[variable.type] for variable in variables]
        self._struct = struct.Struct(">" + "".join(formats))
        # The count of numbers of each variable: the format of a vector of six is "6d".
        self._counts = [int(code[:-1] or 1) for code in formats]

    def apply(self, controller: EmulatedController, inputs: dict[str, Any], payload: bytes) -> None:
        """Write the values of a package into the controller.

        One of another length than the recipe is ignored: UR does not document what a controller
        does with it, and ur_rtde sends some (`setExternalForceTorque`).

        Args:
            controller: The controller into which the values are written.
            inputs: The last values of all inputs; they are updated.
            payload: The package without its header and the number of the recipe.
        """
        if len(payload) != self._struct.size:
            text = (
                f"RTDE: an input package of {len(payload)} bytes is ignored, "
                f"for its recipe has {self._struct.size} ({', '.join(self.names)})"
            )
            controller.on_event(ControllerEvent("unknown", text, data=payload))
            return

        values = list(self._values(payload))
        # Masks first: they apply to the values in the same package, whatever the order.
        inputs.update(zip(self.names, values, strict=True))
        for variable, value in zip(self._variables, values, strict=True):
            variable.access(controller.state, value, inputs)
        controller.record_input(self.names, tuple(values))

    def _values(self, payload: bytes) -> Iterator[Any]:
        """Yield the value of each variable: a number, or a tuple of them."""
        numbers = iter(self._struct.unpack(payload))
        for count in self._counts:
            yield next(numbers) if count == 1 else tuple(islice(numbers, count))


class RtdeRegistry:
    """The data that the RTDE clients of a controller share: recipes, inputs and their writers.

    Attributes:
        controller: The controller.
        inputs: The last value of every input written so far, by name.
    """

    def __init__(self, controller: EmulatedController) -> None:
        self.controller = controller
        self.inputs: dict[str, Any] = {}
        # The client that writes each input, by the input's name.
        self._writers: dict[str, object] = {}
        # The output recipes in use, by their variables and their number.
        self._recipes: WeakValueDictionary[tuple[tuple[str, ...], int | None], OutputRecipe] = (
            WeakValueDictionary()
        )

    def output_recipe(
        self, names: tuple[str, ...], recipe_id: int | None
    ) -> tuple[list[str], OutputRecipe | None]:
        """Return the type of each output, and their recipe.

        Args:
            names: The variables.
            recipe_id: Number of the recipe: see `OutputRecipe`.

        Returns:
            The types ("NOT_FOUND" of unknown names), and the recipe when all are known.

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
                reason = (
                    f"its output recipe makes packages of {recipe.size} bytes, at most "
                    f"{MAX_PACKAGE} bytes are sent"
                )
                raise ProtocolViolation("RTDE", reason)
            self._recipes[names, recipe_id] = recipe
        return types, recipe

    def input_recipe(
        self, names: tuple[str, ...], writer: object
    ) -> tuple[list[str], InputRecipe | None]:
        """Claim inputs for a client, all or none.

        Args:
            names: The variables.
            writer: Who will write them.

        Returns:
            The types ("NOT_FOUND" of unknown names, "IN_USE" of those that another client writes),
            and the recipe when all could be claimed.
        """
        known = input_variables(self.controller.profile)
        types = []
        for name in names:
            if self._writers.get(name, writer) is not writer:
                types.append("IN_USE")
            else:
                types.append(known[name].type if name in known else "NOT_FOUND")
        if not names or "IN_USE" in types or "NOT_FOUND" in types:
            return types, None

        self._writers.update((name, writer) for name in names)
        return types, InputRecipe([known[name] for name in names])

    def release(self, writer: object) -> None:
        """Let others write this client's inputs."""
        self._writers = {
            name: current for name, current in self._writers.items() if current is not writer
        }
