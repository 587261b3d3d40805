"""The framing that RTDE and the primary interface share: size, type and content of a package."""

from __future__ import annotations

import struct

from simbridge.errors import SimbridgeError


class MalformedPackage(SimbridgeError, ValueError):
    """Bytes that cannot come from a controller.

    Attributes:
        reason: Why not, as a clause.
    """

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(f"This is not what a UR controller sends: {reason}.")


class MalformedNumber(MalformedPackage):
    """A variable that is not a number, or is larger than any quantity of an arm.

    Attributes:
        field: Name of the variable.
        value: Value of the variable, as text.
    """

    def __init__(self, field: str, value: str) -> None:
        self.field = field
        self.value = value
        super().__init__(f"{field} is {value}")


class PackageBuffer:
    """Bytes in, complete packages out; no I/O.

    Args:
        header: Size, in bytes and with the header itself, and type.
        max_size: Size that no package exceeds, bytes.

    Attributes:
        pending: The beginning of a package that is not complete.
    """

    def __init__(self, header: struct.Struct, max_size: int) -> None:
        self._header = header
        self._max_size = max_size
        self.pending = b""

    def feed(self, data: bytes) -> list[tuple[int, bytes]]:
        """Return type and content of each package that the next bytes complete.

        The rest is `pending`.

        Raises:
            MalformedPackage: A package claims an impossible size.
        """
        self.pending += data
        packages = []
        begin = 0
        while len(self.pending) - begin >= self._header.size:
            size, kind = self._header.unpack_from(self.pending, begin)
            if not self._header.size <= size <= self._max_size:
                raise MalformedPackage(f"a package claims to have {size} bytes")
            if len(self.pending) - begin < size:
                break
            content = self.pending[begin + self._header.size : begin + size]
            packages.append((kind, content))
            begin += size
        self.pending = self.pending[begin:]
        return packages
