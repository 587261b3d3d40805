"""Packages and sub-packages of the primary interface, cut out of a stream of bytes that comes in any pieces.

Source: Universal Robots, "Client Interfaces": a package is an int32 size, which counts these four bytes too, a type and
its content; a robot state's content is sub-packages made alike. Everything is big-endian.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

from simbridge.errors import SimbridgeError

ROBOT_STATE, ROBOT_MESSAGE = 16, 20

_HEADER = struct.Struct(">iB")
# A robot state has about 1.5 kB, the largest messages (a program's variables) some ten: more is no such interface.
_MAX_BYTES = 1 << 20


class MalformedPackage(SimbridgeError, ValueError):
    """Bytes that no primary interface sends.

    Attributes:
        reason: What is wrong with them, as a sentence.
    """

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(f"This is not UR's primary interface: {reason}.")


@dataclass(frozen=True)
class Package:
    """A package or a sub-package.

    Attributes:
        kind: Its type.
        content: What follows size and type.
    """

    kind: int
    content: bytes


class PackageReader:
    """Bytes in, packages out; it does no input or output of its own."""

    def __init__(self) -> None:
        self._pending = b""

    def receive(self, data: bytes) -> list[Package]:
        """The packages that the stream's next bytes complete.

        Raises:
            MalformedPackage: The stream cannot be the primary interface.
        """
        self._pending += data
        packages, at = [], 0
        while len(self._pending) - at >= _HEADER.size:
            size, kind = _HEADER.unpack_from(self._pending, at)
            if not _HEADER.size <= size <= _MAX_BYTES:
                raise MalformedPackage(f"a package claims to have {size} bytes")
            if len(self._pending) - at < size:
                break
            packages.append(Package(kind, self._pending[at + _HEADER.size : at + size]))
            at += size
        self._pending = self._pending[at:]
        return packages


def sub_packages(content: bytes) -> list[Package]:
    """The sub-packages of a robot state, those of unknown types too.

    Raises:
        MalformedPackage: One reaches beyond the end, or is shorter than its own header.
    """
    found, at = [], 0
    while at < len(content):
        left = len(content) - at
        size, kind = _HEADER.unpack_from(content, at) if left >= _HEADER.size else (0, 0)
        if not _HEADER.size <= size <= left:
            raise MalformedPackage(f"a sub-package claims to have {size} bytes, of which there are {left}")
        found.append(Package(kind, content[at + _HEADER.size : at + size]))
        at += size
    return found
