"""Scripts as clients send them: a stream of text, cut into programs."""

from __future__ import annotations

import re

from simbridge.emulator.errors import ProtocolViolation

# Largest program, bytes.
MAX_SCRIPT = 1 << 20

# Texts and comments, in which keywords do not count; then the words that open and close a block.
_TOKENS = re.compile(
    r'"[^"]*"?|#.*|\b(?P<opens>(?:def|sec|thread)(?=\s+\w)|(?:if|while)\b)|\b(?P<ends>end)\b'
)
# The beginning of a program, after what the language skips.
_SECONDARY = re.compile(r"(?:\s|;|[#$].*\n)*sec\s+\w")
_NAME = re.compile(r"(?:\s|;|[#$].*\n)*(?:def|sec)\s+(\w+)")


def is_secondary(program: str) -> bool:
    """Return whether a program is a secondary one: its first word is `sec`."""
    return _SECONDARY.match(program) is not None


def program_name(program: str) -> str:
    """Return the name of a program's first function.

    It is "move" for `def move(): ... end`, and "" for loose statements.
    """
    first = _NAME.match(program)
    return first[1] if first else ""


class ScriptBuffer:
    """Cuts a stream of text into programs: a block from `def` or `sec` to its `end`, or a line.

    A program is complete when its last line has ended with a newline, as on a controller.
    """

    def __init__(self) -> None:
        # The received part of a line that is not complete.
        self._rest = bytearray()
        # The complete lines of a program that is not complete, and the number of their characters.
        self._lines: list[str] = []
        self._size = 0
        # The number of blocks that these lines leave open.
        self._depth = 0

    def receive(self, data: bytes) -> list[str]:
        """Return the programs that are now complete.

        Raises:
            ProtocolViolation: A program is longer than 1 MiB.
        """
        # The rest so far is known to have no newline: only the new bytes are searched.
        searched = len(self._rest)
        self._rest += data
        programs = []

        last_newline = self._rest.rfind(b"\n", searched)
        if last_newline >= 0:
            complete = self._rest[:last_newline].decode("utf-8", errors="replace")
            del self._rest[: last_newline + 1]
            for line in complete.split("\n"):
                program = self._add_line(line.rstrip("\r"))
                if program:
                    programs.append(program)

        if self._size + len(self._rest) > MAX_SCRIPT:
            reason = f"it sent a program of more than {MAX_SCRIPT} bytes without its end"
            raise ProtocolViolation("script", reason)
        return programs

    @property
    def rest(self) -> bytes:
        """The received part of a program that is not complete yet."""
        return "".join(f"{line}\n" for line in self._lines).encode() + self._rest

    def _add_line(self, line: str) -> str:
        """Return the program that this line completes, or ""."""
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
        texts = [complete_line.strip() for complete_line in self._lines]
        has_code = any(text and not text.startswith("#") for text in texts)

        self._lines = []
        self._size = 0
        self._depth = 0
        return program if has_code else ""
