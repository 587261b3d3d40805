"""A client of UR's Real-Time Data Exchange that also writes inputs, on the connection it reads.

The inputs are claimed before the stream of states begins. No other client can claim them until the
connection ends; they keep their values then.

Source: Universal Robots, "Real-Time Data Exchange (RTDE) Guide", protocol version 2.
"""

from __future__ import annotations

import contextlib
import socket
import struct
import time
from collections.abc import Sequence

from simbridge.ur.errors import RegistersInUse, UnsupportedController
from simbridge.ur.rtde import NO_SUCH_VARIABLE, RtdeReader, frame
from simbridge.ur.tables import RTDE_FORMATS, RtdePackage

# What the controller answers instead of the type of a variable that another client has claimed.
IN_USE = "IN_USE"
# How often inputs are claimed, and the time between two attempts, s: a controller notices only
# after a moment that the client before has left.
MAX_CLAIM_ATTEMPTS = 4
RELEASE_TIME_S = 0.25


class InputRecipe:
    """The layout of a package of inputs; no I/O.

    Args:
        number: The number by which the controller knows the recipe.
        types: Types of its variables, as the controller reports them; each is a single number.

    Raises:
        KeyError: A type is not one of RTDE's.
    """

    def __init__(self, number: int, types: Sequence[str]) -> None:
        formats = "".join(RTDE_FORMATS[type_name] for type_name in types)
        self._head = bytes([number])
        self._values = struct.Struct(f">{formats}")

    def package(self, values: Sequence[float]) -> bytes:
        """Return the package that writes the values, one for each variable.

        Raises:
            struct.error: There are more or fewer values, or one does not fit its type.
        """
        return frame(RtdePackage.DATA, self._head + self._values.pack(*values))


class RtdeWriter(RtdeReader):
    """A client that reads every state, and alone writes some inputs, until it is closed.

    Args:
        host: Address of the controller.
        outputs: Output variables; those that the version does not have are dropped.
        inputs: Input variables that are claimed, each a single number.
        frequency: States per second.

    Raises:
        ConnectionLost: Nothing listens, or no valid answer comes in time.
        RegistersInUse: Another client has claimed some of the inputs.
        UnsupportedController: The controller does not have some of them, or does not support
            version 2 of the protocol.
    """

    def __init__(
        self, host: str, outputs: Sequence[str], inputs: Sequence[str], frequency: float
    ) -> None:
        self._input_names = tuple(inputs)
        super().__init__(host, outputs, frequency)

    def _claim_inputs(self) -> None:
        """Claim the inputs, and keep the recipe by which they are written."""
        names = self._input_names
        number, types = self.request_inputs(names)
        attempts = 1
        while IN_USE in types and attempts < MAX_CLAIM_ATTEMPTS:
            time.sleep(RELEASE_TIME_S)
            number, types = self.request_inputs(names)
            attempts += 1

        # A controller that refuses one of the inputs grants none.
        occupied = _names_with(IN_USE, names, types)
        if occupied:
            raise RegistersInUse(self.host, occupied)
        missing = _names_with(NO_SUCH_VARIABLE, names, types)
        if missing:
            version = ".".join(map(str, self.version[:3]))
            reason = f"Its RTDE interface does not have {', '.join(missing)}; update PolyScope."
            raise UnsupportedController(self.host, version, reason)

        # A recipe that was refused has the number 0.
        is_refused = number == 0
        is_malformed = len(types) != len(names) or not set(types) <= set(RTDE_FORMATS)
        if is_refused or is_malformed:
            answer = f"recipe {number} of {','.join(types)[:200]}"
            raise self._lost(f"the answer to the list of inputs is {answer}")
        self._input_recipe = InputRecipe(number, types)

    def write(self, values: Sequence[float]) -> None:
        """Write the inputs, in one package; nothing is written after a package that failed.

        Args:
            values: One for each input, in the order in which they were claimed.

        Raises:
            ConnectionLost: The connection ended, or takes nothing more.
        """
        package = self._input_recipe.package(values)
        try:
            # A connection whose buffer is full leads nowhere: nothing waits for it.
            self._socket.settimeout(0.0)
            sent_bytes = self._socket.send(package)
        except BlockingIOError:
            sent_bytes = 0
        except OSError as error:
            raise self._lost(f"sending failed ({error.strerror or error})") from None
        if sent_bytes < len(package):
            # The controller would read the next package as the rest of this one.
            with contextlib.suppress(OSError):
                self._socket.shutdown(socket.SHUT_RDWR)
            raise self._lost("the controller takes no more commands")


def _names_with(answer: str, names: Sequence[str], types: Sequence[str]) -> tuple[str, ...]:
    """Return the names of the variables to which the controller gave an answer."""
    return tuple(name for name, kind in zip(names, types, strict=False) if kind == answer)
