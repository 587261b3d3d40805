"""EtherNet/IP data of programs: labels in memory, without a fieldbus; what is read is zero."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, NamedTuple

from simbridge.emulator.errors import RuntimeFault
from simbridge.emulator.urscript.arguments import text_of
from simbridge.emulator.urscript.values import COPY_COST_SHIFT, Struct, short, to_text
from simbridge.errors import InvalidParameter

# The zero of each type that a label may have.
ZEROS: dict[str, Any] = {
    "bit": False,
    "uint8": 0,
    "uint16": 0,
    "int16": 0,
    "int32": 0,
    "float32": 0.0,
    "string": "",
}
MAX_LABELS = 1000
# Cost of reading a label, in units of a tick's budget.
READ_COST = 10
# Methods without an effect here.
IGNORED_METHODS = ("clear", "set_watchdog", "start_watchdog", "stop_watchdog", "close")


class Label(NamedTuple):
    """A label of the data.

    Attributes:
        zero: The value of the label, or of each element.
        length: Number of elements if it is an array; else None.
    """

    zero: Any
    length: int | None


class Assembly:
    """An instance of EtherNet/IP: its methods define labels of the data, read and write them.

    Args:
        name: Name of the instance.
        size: Size of its data, bytes.

    Attributes:
        kind: Kind of this value, for messages to programs.
        name: Name of the instance.
    """

    kind = "an EtherNet/IP handle"

    def __init__(self, name: str, size: int) -> None:
        self.name = name
        self._size = size
        self._labels: dict[str, Label] = {}

    def call(
        self, thread: Any, name: str, arguments: tuple[Any, ...]
    ) -> Generator[None, None, Any]:
        """Call a method: define_TYPE, define_TYPE_array, read, write, or one without effect.

        Args:
            thread: The thread that calls, which is charged for the work.
            name: Name of the method.
            arguments: Values of URScript.

        Raises:
            RuntimeFault: There is no such method, or no such label; or there are too many labels.
            InvalidParameter: The length of an array is not possible.
        """
        # A generator like the calls of other handles, but one that yields nothing.
        yield from ()

        verb, _, label_type = name.partition("_")
        is_known = label_type.removesuffix("_array") in ZEROS
        if verb == "define" and is_known and len(arguments) >= 2:
            self._define(thread, label_type, arguments)
            return None
        if name == "read" and len(arguments) == 1:
            return self._read(thread, arguments[0])
        if name == "write" and len(arguments) == 1 and isinstance(arguments[0], Struct):
            for label in arguments[0].members:
                self._value(thread, label)
            return None
        if name not in IGNORED_METHODS:
            raise RuntimeFault(
                f"There is no method '{name}' of an EtherNet/IP handle with these arguments."
            )
        return None

    def _define(self, thread: Any, label_type: str, arguments: tuple[Any, ...]) -> None:
        """Define a label.

        Args:
            thread: The calling thread, which is charged for the work.
            label_type: A key of `ZEROS`; of an array, with "_array" behind it.
            arguments: The label's offset; the number of a bit, or the length of an array; its name.
        """
        # The name comes second, or third behind a bit's number or an array's length.
        name = arguments[1 if len(arguments) == 2 else 2]
        if len(self._labels) >= MAX_LABELS:
            raise RuntimeFault(f"An EtherNet/IP instance has at most {MAX_LABELS} labels.")

        length = None
        if label_type.endswith("_array"):
            length = arguments[1]
            if not isinstance(length, int) or not 0 <= length <= self._size:
                needed = f"a whole number from 0 to {self._size}, the size of the data"
                raise InvalidParameter("length of the array", short(length), needed)

        zero = ZEROS[label_type.removesuffix("_array")]
        self._labels[text_of(thread, name)] = Label(zero, length)

    def _read(self, thread: Any, labels: Any) -> Any:
        """Return the value of a label, or a struct of the values of several."""
        if not isinstance(labels, tuple):
            return self._value(thread, labels)
        return Struct({to_text(label): self._value(thread, label) for label in labels})

    def _value(self, thread: Any, name: Any) -> Any:
        """Return the value of a label, and charge the thread for it."""
        thread.charge(READ_COST)
        if name not in self._labels:
            raise RuntimeFault(
                f"The EtherNet/IP instance {self.name} has no label '{short(name)}'."
            )

        label = self._labels[name]
        if label.length is None:
            return label.zero
        thread.charge(label.length >> COPY_COST_SHIFT)
        return (label.zero,) * label.length
