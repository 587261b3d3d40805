"""A URDF or xacro file as XML elements that know their lines and refuse what is wrong in them."""

from __future__ import annotations

import xml.parsers.expat
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn

import numpy as np

from simbridge.errors import InputFileError
from simbridge.files.reading import MIB, read_text
from simbridge.quoting import quoted
from simbridge.robot.packages import Packages
from simbridge.robot.pose import Array
from simbridge.robot.xacro_file import expand_xacro

# Largest URDF or xacro file, bytes.
MAX_URDF_BYTES = 4 * MIB


@dataclass(eq=False)
class Element:
    """An XML element.

    Attributes:
        path: The file that it is from.
        tag: Name of the element.
        attributes: Values of the element's attributes, by name.
        line: Line of its start tag; None in text that xacro expanded.
        parent: The element that it is in; None for the document.
        children: The elements in it, in the order of the file.
    """

    path: Path
    tag: str
    attributes: dict[str, str]
    line: int | None
    parent: Element | None = None
    children: list[Element] = field(default_factory=list)

    @property
    def name(self) -> str:
        """The attribute "name"; "" without one."""
        return self.attributes.get("name", "")

    def refuse(self, reason: str, name: str = "") -> NoReturn:
        """Refuse the element, or its attribute or child of a name.

        Args:
            reason: What is wrong, as a clause.
            name: Name of the attribute or child; "" for the element itself.

        Raises:
            InputFileError: Always; with the file, the line and the element.
        """
        label = self._label()
        if self.line is None and "name" not in self.attributes and self.parent is not None:
            # Without a line, only its place in the tree tells it from others.
            label = f"{self.parent._named_label()} {label}".strip()
        if name:
            label += f" {name}"
        raise InputFileError(self.path, reason, line=self.line, field=label)

    def _label(self) -> str:
        """Return the tag as messages show it, with the element's name if it has one."""
        name = self.attributes.get("name", "")
        return f"<{self.tag} name={name!r}>" if name else f"<{self.tag}>"

    def _named_label(self) -> str:
        """Return the label of the nearest element with a name: this one, or one around it."""
        element: Element | None = self
        while element is not None and "name" not in element.attributes:
            element = element.parent
        return "" if element is None else element._label()

    def find_all(self, tag: str) -> Iterator[Element]:
        """Iterate over the children of a name."""
        return (child for child in self.children if child.tag == tag)

    def find(self, tag: str) -> Element | None:
        """Return the first child of a name; None without one."""
        return next(self.find_all(tag), None)

    def require(self, tag: str, purpose: str = "") -> Element:
        """Return the first child of a name; refuse an element without one.

        Args:
            tag: The name.
            purpose: What the child must hold, for the message.
        """
        child = self.find(tag)
        if child is None:
            self.refuse(f"<{tag}> is missing{f', {purpose}' if purpose else ''}")
        return child

    def text(self, name: str) -> str:
        """Return an attribute; refuse one that is missing or empty."""
        value = self.attributes.get(name)
        if value is None:
            self.refuse("the attribute is missing", name)
        if not value.strip():
            self.refuse("the attribute is empty", name)
        return value

    def numbers(self, name: str, count: int, default: Sequence[float] | None = None) -> Array:
        """Return an attribute (count,) of finite numbers; refuse any other.

        Args:
            name: Name of the attribute.
            count: Required number of values.
            default: The numbers of an attribute that is missing; None: it is required.
        """
        if name not in self.attributes and default is not None:
            return np.array(default, dtype=float)

        text = self.text(name)
        try:
            values = np.array([float(word) for word in text.split()])
        except ValueError:
            values = np.array([])
        if len(values) != count or not np.all(np.isfinite(values)):
            needed = f"{count} finite numbers" if count > 1 else "a finite number"
            self.refuse(f"{quoted(text)} is not {needed}", name)
        return values

    def number(self, name: str, default: float | None = None) -> float:
        """Return an attribute that is one finite number; refuse any other."""
        defaults = None if default is None else (default,)
        return float(self.numbers(name, 1, defaults)[0])

    def positive(self, name: str) -> float:
        """Return an attribute that is one positive number; refuse any other."""
        value = self.number(name)
        if value <= 0.0:
            self.refuse(f"this must be positive, not {value}", name)
        return value


def read_xml(path: Path, packages: Packages, arguments: Mapping[str, str] | None = None) -> Element:
    """Read an XML file; a xacro file is expanded first, and its elements have no lines.

    Args:
        path: The file.
        packages: Directories in which a xacro file's packages are looked up.
        arguments: Values of a xacro file's arguments, by name; the others have their defaults.

    Returns:
        The root element.

    Raises:
        InputFileError: The file cannot be read or expanded, or is not well-formed.
    """
    text = read_text(path, MAX_URDF_BYTES)
    is_xacro = path.suffix.lower() == ".xacro" or "<xacro:" in text
    if is_xacro:
        text = expand_xacro(path, text, packages, arguments)
    elif arguments:
        flags = " ".join(f"--xacro-arg {name}={value}" for name, value in arguments.items())
        reason = f"this is a URDF, not a xacro file, so it has no arguments: omit {flags}"
        raise InputFileError(path, reason)

    parser = xml.parsers.expat.ParserCreate()
    document = Element(path, "", {}, 0)
    # The elements that are open, from the outermost one.
    open_elements = [document]

    def line() -> int | None:
        return None if is_xacro else parser.CurrentLineNumber

    def start(tag: str, attributes: dict[str, str]) -> None:
        element = Element(path, tag, attributes, line(), open_elements[-1])
        open_elements[-1].children.append(element)
        open_elements.append(element)

    def end(_tag: str) -> None:
        open_elements.pop()

    def refuse_entity(name: str, *_declaration: object) -> None:
        # Nested entities make gigabytes of text from a short file (the "billion laughs" attack).
        reason = f"entities are not read; write out what &{name}; stands for"
        raise InputFileError(path, reason, line=line())

    parser.StartElementHandler = start
    parser.EndElementHandler = end
    parser.EntityDeclHandler = refuse_entity
    try:
        parser.Parse(text, True)
    except xml.parsers.expat.ExpatError as error:
        reason = f"this is not well-formed XML: {xml.parsers.expat.ErrorString(error.code)}"
        raise InputFileError(path, reason, line=error.lineno) from None
    return document.children[0]
