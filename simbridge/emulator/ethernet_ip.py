"""URScript's handles for EtherNet/IP data: labels in memory, without a fieldbus. What is read is zero."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

from simbridge.emulator.errors import RuntimeFault
from simbridge.emulator.urscript.library import FunctionGroup
from simbridge.emulator.urscript.values import Struct, to_text

_ZEROS = {"bit": False, "uint8": 0, "uint16": 0, "int16": 0, "int32": 0, "float32": 0.0, "string": ""}
_OTHERS = ("clear", "set_watchdog", "start_watchdog", "stop_watchdog", "close")


class EthernetIpFunctions(FunctionGroup):
    """The factories of handles."""

    def do_eip_reader_factory(self, _thread: Any, instance_name: Any, data_size: int) -> Assembly:
        return Assembly(to_text(instance_name))

    do_eip_writer_factory = do_eip_reader_factory


class Assembly:
    """A handle: its methods define labels, read and write them.

    Args:
        name: The instance's name.
    """

    kind = "an EtherNet/IP handle"

    def __init__(self, name: str) -> None:
        self.name = name
        self._zeros: dict[str, Any] = {}

    def call(self, _thread: Any, name: str, arguments: tuple[Any, ...]) -> Generator[None, None, Any]:
        """A method of the handle.

        Raises:
            RuntimeFault: There is no such method or label.
        """
        yield from ()
        word, _, rest = name.partition("_")
        zero = rest.removesuffix("_array")
        if word == "define" and zero in _ZEROS and len(arguments) >= 2:
            is_array, label = rest.endswith("_array"), arguments[1 if len(arguments) == 2 else 2]
            self._zeros[to_text(label)] = (_ZEROS[zero],) * int(arguments[1]) if is_array else _ZEROS[zero]
            return None
        if name == "read" and len(arguments) == 1:
            names = arguments[0]
            if isinstance(names, tuple):
                return Struct({to_text(label): self._value(label) for label in names})
            return self._value(names)
        if name == "write" and len(arguments) == 1 and isinstance(arguments[0], Struct):
            for label in arguments[0].members:
                self._value(label)
            return None
        if name not in _OTHERS:
            raise RuntimeFault(f"There is no method '{name}' of an EtherNet/IP handle with these arguments.")
        return None

    def _value(self, label: Any) -> Any:
        if label not in self._zeros:
            raise RuntimeFault(f"The EtherNet/IP instance {self.name} has no label '{label}'.")
        return self._zeros[label]
