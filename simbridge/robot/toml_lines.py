"""On which line a TOML document gives which field: parsers keep the values and forget where they stood."""

from __future__ import annotations

import re
from collections.abc import Iterator

FieldPath = tuple[str | int, ...]

# Longest first: a multi-line string begins like an empty short one.
_TOKEN = re.compile(
    r"""(?P<skip>[ \t\r]+|\#[^\n]*)
      | (?P<text>\"{3}(?:\\.|[^\\])*?\"{3,5}|'{3}.*?'{3,5}|"(?:\\.|[^"\\\n])*"|'[^'\n]*')
      | (?P<mark>[\[\]{},=\n])
      | (?P<bare>[^\s\[\]{},=#"']+)""",
    re.VERBOSE | re.DOTALL,
)


def field_lines(text: str) -> dict[FieldPath, int]:
    """The line, from 1, of every table, key and array element of a valid TOML document.

    A field is named by its path: `("links", 2, "mass")` is the key `mass` of the third table of `links`.
    """
    return _Scanner(text).lines


class _Scanner:
    def __init__(self, text: str) -> None:
        self.lines: dict[FieldPath, int] = {}
        self._arrays: dict[FieldPath, int] = {}
        self._tokens = list(_tokens(text))
        self._next = 0
        table: FieldPath = ()
        while self._next < len(self._tokens):
            if self._token == "\n":
                self._next += 1
            elif self._token == "[":
                table = self._header()
            else:
                self._pair(table)

    @property
    def _token(self) -> str:
        return self._tokens[self._next][0] if self._next < len(self._tokens) else "\n"

    @property
    def _line(self) -> int:
        return self._tokens[min(self._next, len(self._tokens) - 1)][1]

    def _key(self, end: str) -> list[str]:
        parts: list[str] = []
        while self._token != end:
            token = self._token
            parts += [token[1:-1]] if token[0] in "\"'" else [part for part in token.split(".") if part]
            self._next += 1
        return parts

    def _header(self) -> FieldPath:
        line, many = self._line, self._tokens[self._next + 1][0] == "["
        self._next += 2 if many else 1
        path: FieldPath = ()
        names = self._key("]")
        self._next += 2 if many else 1
        for depth, name in enumerate(names):
            path = (*path, name)
            if many and depth == len(names) - 1:
                self._arrays[path] = self._arrays.get(path, -1) + 1
            if path in self._arrays:
                # A header below an array of tables means the array's last table.
                self.lines.setdefault(path, line)
                path = (*path, self._arrays[path])
            self.lines.setdefault(path, line)
        return path

    def _pair(self, table: FieldPath) -> None:
        line, path = self._line, table
        for name in self._key("="):
            path = (*path, name)
            self.lines.setdefault(path, line)
        self._next += 1
        self._value(path)

    def _value(self, path: FieldPath) -> None:
        if self._token in "[{":
            close = "]" if self._token == "[" else "}"
            self._next += 1
            index = 0
            while self._token != close:
                if self._token in ",\n":
                    self._next += 1
                elif close == "}":
                    self._pair(path)
                else:
                    element = (*path, index)
                    self.lines[element] = self._line
                    self._value(element)
                    index += 1
            self._next += 1
        else:
            # A date with a time is two words.
            while self._token not in ",]}\n":
                self._next += 1


def _tokens(text: str) -> Iterator[tuple[str, int]]:
    line = 1
    for match in _TOKEN.finditer(text):
        if match.lastgroup != "skip":
            yield match[0], line
        line += match[0].count("\n")
