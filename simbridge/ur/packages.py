"""The framing that RTDE and the primary interface share: a package is its size, its type and its content."""

from __future__ import annotations

import struct

from simbridge.errors import SimbridgeError


class MalformedPackage(SimbridgeError, ValueError):
    """Bytes that cannot come from a controller; the reason is a clause."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(f"This is not what a UR controller sends: {reason}.")


class MalformedNumber(MalformedPackage):
    """A variable (field) with a value, as text, that is no number or larger than any quantity of an arm."""

    def __init__(self, field: str, value: str) -> None:
        self.field = field
        self.value = value
        super().__init__(f"{field} is {value}")


class PackageBuffer:
    """Bytes in, complete packages out; no I/O.

    Args:
        header: Size, in bytes and with the header itself, and type.
        largest: Size that no package exceeds, bytes.
    """

    def __init__(self, header: struct.Struct, largest: int) -> None:
        self._header, self._largest = header, largest
        self.pending = b""

    def feed(self, data: bytes) -> list[tuple[int, bytes]]:
        """Type and content of each package that the next bytes complete; the rest is `pending`.

        Raises:
            MalformedPackage: A package claims an impossible size.
        """
        self.pending += data
        packages, at = [], 0
        while len(self.pending) - at >= self._header.size:
            size, kind = self._header.unpack_from(self.pending, at)
            if not self._header.size <= size <= self._largest:
                raise MalformedPackage(f"a package claims to have {size} bytes")
            if len(self.pending) - at < size:
                break
            packages.append((kind, self.pending[at + self._header.size : at + size]))
            at += size
        self.pending = self.pending[at:]
        return packages
