"""Scripts as they arrive on the primary, secondary and real-time ports: text without a length, cut into programs."""

from __future__ import annotations

import re

from simbridge.emulator.errors import ProtocolViolation

MAX_SCRIPT = 1 << 20
# What may hide a keyword, then what opens a block and what closes one.
_TOKENS = re.compile(r'"[^"]*"?|#.*|\b(?P<opens>(?:def|sec|thread)(?=\s+\w)|(?:if|while)\b)|\b(?P<ends>end)\b')
_SECONDARY = re.compile(r"(?:\s|;|[#$].*\n)*sec\s+\w")


def is_secondary(program: str) -> bool:
    """Whether a program is a secondary one, which runs beside the arm's program: its first word is `sec`."""
    return _SECONDARY.match(program) is not None


class ScriptBuffer:
    """Cuts a stream of text into programs: a block from `def` or `sec` to its `end`, or a line of its own.

    A program counts as received when its last line has ended with a newline, as on a controller.
    """

    def __init__(self) -> None:
        self._rest = bytearray()
        self._lines: list[str] = []
        self._size = 0
        self._depth = 0

    def receive(self, data: bytes) -> list[str]:
        """The programs that are now complete.

        Raises:
            ProtocolViolation: A program is longer than 1 MiB.
        """
        programs = []
        searched = len(self._rest)
        self._rest += data
        end = self._rest.rfind(b"\n", searched)
        if end >= 0:
            complete = self._rest[: end + 1].decode("utf-8", errors="replace")
            del self._rest[: end + 1]
            for line in complete[:-1].split("\n"):
                program = self._take(line.rstrip("\r"))
                if program:
                    programs.append(program)
        size = self._size + len(self._rest)
        if size > MAX_SCRIPT:
            raise ProtocolViolation("script", f"it sent a program of more than {MAX_SCRIPT} bytes without its end")
        return programs

    def _take(self, line: str) -> str:
        self._lines.append(line)
        self._size += len(line) + 1
        for token in _TOKENS.finditer(line):
            if token["opens"]:
                self._depth += 1
            elif token["ends"]:
                self._depth -= 1
        if self._depth > 0:
            return ""
        program = "\n".join(self._lines) + "\n"
        meaningful = any(text.strip() and not text.strip().startswith("#") for text in self._lines)
        self._lines, self._size, self._depth = [], 0, 0
        return program if meaningful else ""
