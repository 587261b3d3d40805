"""XML elements that remember their line, so that a complaint about a URDF can say where."""

from __future__ import annotations

import xml.parsers.expat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn

import numpy as np
from numpy.typing import NDArray

from simbridge.errors import InputFileError
from simbridge.robot.load import read_text


@dataclass(eq=False)
class Element:
    """An XML element.

    Attributes:
        path: The file it is in.
        tag: Its name.
        attributes: As written.
        line: Where its start tag begins, from 1.
        children: The elements in it, in order.
    """

    path: Path
    tag: str
    attributes: dict[str, str]
    line: int
    children: list[Element] = field(default_factory=list)

    def refuse(self, reason: str, name: str = "") -> NoReturn:
        """Refuse the element, or what it holds under `name`."""
        owner = self.attributes.get("name", "")
        where = f"<{self.tag}{f' name={owner!r}' if owner else ''}>" + (f" {name}" if name else "")
        raise InputFileError(self.path, reason, line=self.line, field=where)

    def all(self, tag: str) -> Iterator[Element]:
        """The children of that name."""
        return (child for child in self.children if child.tag == tag)

    def first(self, tag: str) -> Element | None:
        """The first child of that name."""
        return next(self.all(tag), None)

    def need(self, tag: str, purpose: str = "") -> Element:
        """The first child of that name, which must be there."""
        return self.first(tag) or self.refuse(f"it lacks <{tag}>{f', {purpose}' if purpose else ''}")

    def text(self, name: str) -> str:
        """An attribute, which must be there and not empty."""
        value = self.attributes.get(name)
        if value is None:
            self.refuse("it lacks this attribute", name)
        return value if value.strip() else self.refuse("this attribute is empty", name)

    def numbers(self, name: str, count: int, default: Sequence[float] | None = None) -> NDArray[np.float64]:
        """An attribute of `count` finite numbers."""
        if name not in self.attributes and default is not None:
            return np.array(default, dtype=float)
        text = self.text(name)
        try:
            values = np.array([float(word) for word in text.split()])
        except ValueError:
            values = np.array([])
        if len(values) != count or not np.all(np.isfinite(values)):
            self.refuse(f"'{text}' is not {f'{count} finite numbers' if count > 1 else 'a finite number'}", name)
        return values

    def number(self, name: str) -> float:
        """An attribute of one finite number."""
        return float(self.numbers(name, 1)[0])

    def positive(self, name: str) -> float:
        """An attribute of one positive number."""
        value = self.number(name)
        return value if value > 0.0 else self.refuse(f"this must be positive, not {value}", name)


def read_xml(path: Path) -> Element:
    """The root element of an XML file.

    Raises:
        InputFileError: It cannot be read or is not well-formed; names the line.
    """
    parser = xml.parsers.expat.ParserCreate()
    top = Element(path, "", {}, 0)
    stack = [top]

    def start(tag: str, attributes: dict[str, str]) -> None:
        element = Element(path, tag, attributes, parser.CurrentLineNumber)
        stack[-1].children.append(element)
        stack.append(element)

    parser.StartElementHandler = start
    parser.EndElementHandler = lambda _tag: stack.pop()
    try:
        parser.Parse(read_text(path), True)
    except xml.parsers.expat.ExpatError as error:
        reason = xml.parsers.expat.ErrorString(error.code)
        raise InputFileError(path, f"this is not well-formed XML: {reason}", line=error.lineno) from None
    return top.children[0]
