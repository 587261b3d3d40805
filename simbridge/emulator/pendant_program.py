"""Programs of the pendant (*.urp): a tree of nodes in compressed XML, translated into URScript.

UR does not document the format: it is known from files of PolyScope and of programs that write some. The nodes known
are those of `_NODES`; a program with another one, a URCap's for instance, is refused by that node's name.
"""

from __future__ import annotations

import gzip
import re
import zlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from xml.etree.ElementTree import Element, ParseError, TreeBuilder, XMLParser

from simbridge.emulator.errors import UnknownNode

_MAX_BYTES = (
    1 << 22
)  # of a file, unpacked: a MiB takes about 0.15 s, in which the controller's clock stands still
_MAX_DEPTH = 200  # elements in each other
_PIN = re.compile(r"digital_(?:in|out)\[(\d+)\]")
# motionParameters' speed and acceleration by motion type, and the function
_MOVES = {
    "MoveJ": ("movej", "joint"),
    "MoveL": ("movel", "cartesian"),
    "MoveP": ("movep", "cartesian"),
}

# That cannot be a program's name
_KEYWORDS = frozenset(
    {"and", "break", "continue", "def", "elif", "else", "end", "enter_critical", "exit_critical", "False", "global",
     "halt", "if", "join", "kill", "local", "not", "or", "pass", "return", "run", "sec", "thread", "True", "while",
     "xor"}
)  # fmt: skip

Lines = Iterator[str]


class _Builder(TreeBuilder):
    """Builds the tree of a program; refuses what can grow without limit: entities, which a document type declares, and
    depth."""

    def __init__(self) -> None:
        super().__init__()
        self._depth = 0

    def doctype(self, *_declaration: str | None) -> None:
        raise ValueError("it declares a document type")

    def start(self, tag: str, attributes: dict[str, str], /) -> Element:
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            raise ValueError(f"it is more than {_MAX_DEPTH} elements deep")
        return super().start(tag, attributes)

    def end(self, tag: str, /) -> Element:
        self._depth -= 1
        return super().end(tag)


def translate(path: Path) -> str:
    """The URScript of a program file.

    Raises:
        UnknownNode: It has a node that is not known, or is no program.
        OSError: It cannot be read.
    """
    try:
        with gzip.open(path) as file:
            parser = XMLParser(target=_Builder())
            content = file.read(_MAX_BYTES + 1)
            if len(content) > _MAX_BYTES:
                raise ValueError(f"it has more than {_MAX_BYTES >> 20} MiB, unpacked")
            parser.feed(content)
            root = parser.close()
        if root.find("children/MainProgram") is None:
            raise ValueError("it has no main program")
        name = re.sub(r"\W", "_", path.stem, flags=re.ASCII)
        lines = [
            f"def p_{name}():" if name[:1].isdigit() or name in _KEYWORDS else f"def {name}():"
        ]
        for node in root.findall("children/*"):
            lines += [f"  {line}" for line in _translated(node)]
    except UnknownNode as error:
        raise UnknownNode(path.name, error.node) from None
    except (gzip.BadGzipFile, EOFError, zlib.error, ParseError, ValueError) as error:
        raise UnknownNode(path.name, f"the file itself ({error})") from None
    return "\n".join([*lines, "end", ""])


def _translated(node: Element) -> Lines:
    known = _NODES.get(node.tag)
    if known is None:
        label = node.get("strategyProgramNodeType")
        cap = node.get("strategyURCapName")
        raise UnknownNode("", f"{label or node.tag}, of the URCap {cap}" if cap else node.tag)
    yield from known(node)


def _children(node: Element) -> Lines:
    for child in node.findall("children/*"):
        yield from _translated(child)


def _while(condition: str, body: Iterable[str] = ()) -> Lines:
    yield f"while {condition}:"
    yield from (f"  {line}" for line in body)
    yield "  sync()"
    yield "end"


def _variables(node: Element) -> Lines:
    """The variables' first values: how PolyScope writes them is not known, assignments are taken."""
    for part in node:
        if part.tag != "children":
            raise UnknownNode("", f"{node.tag} with {part.tag}")
    return _children(node)


def _main(node: Element) -> Lines:
    once = node.get("runOnlyOnce") == "true"
    return _children(node) if once else _while("True", _children(node))


def _expression(node: Element) -> str:
    return "".join(
        part.get("character", "") or part.get("token", "") for part in node.findall("expression/*")
    )


def _pin(node: Element) -> int:
    pin = node.find("pin")
    match = _PIN.fullmatch(pin.get("referencedName", "") if pin is not None else "")
    if match is None:
        raise UnknownNode("", f"{node.tag} of another pin than a digital one")
    return int(match[1])


def _wait(node: Element) -> Lines:
    kind = node.get("type")
    if kind == "Sleep":
        yield f"sleep({float(node.findtext('waitTime') or 0.0)})"
    elif kind == "DigitalInput":
        yield from _while(
            f"get_standard_digital_in({_pin(node)}) != {node.findtext('digitalValue') == '1'}"
        )
    elif kind == "Condition":
        yield from _while(f"not ({_expression(node)})")
    elif kind != "NoWait":
        raise UnknownNode("", f"Wait of the type {kind}")


def _script(node: Element) -> Lines:
    text = (
        _expression(node) if node.get("type") == "Line" else node.findtext("cachedContents") or ""
    )
    yield from text.splitlines()


def _set(node: Element) -> Lines:
    kind = node.get("type")
    if kind == "DigitalOutput":
        yield f"set_standard_digital_out({_pin(node)}, {node.findtext('digitalValue') == '1'})"
    elif kind != "NoAction":
        raise UnknownNode("", f"Set of the type {kind}")


def _assignment(node: Element) -> Lines:
    variable = node.find("variable")
    yield f"global {variable.get('name') if variable is not None else ''} = {_expression(node)}"


def _loop(node: Element) -> Lines:
    kind = node.get("type")
    if kind == "Always":
        return _while("True", _children(node))
    if kind == "Expression":
        return _while(_expression(node), _children(node))
    count = node.get("count") or node.findtext("count")
    variable = node.find("variable")
    if count is None or variable is None:
        raise UnknownNode("", f"Loop of the type {kind}")
    name = variable.get("name")
    body = [*_children(node), f"{name} = {name} + 1"]
    return iter([f"global {name} = 0", *_while(f"{name} < {int(count)}", body)])


def _move(node: Element) -> Lines:
    kind = node.get("motionType", "")
    if kind not in _MOVES:
        raise UnknownNode("", f"Move of the type {kind}")
    function, space = _MOVES[kind]
    for waypoint in node.findall("children/*"):
        angles, position = waypoint.find("position/JointAngles"), waypoint.find("position")
        joints = None if position is None else position.get("joints")
        if angles is not None:
            joints = angles.get("angles")
        if waypoint.tag != "Waypoint" or waypoint.get("type") != "Fixed" or joints is None:
            yield from _translated(waypoint)
            continue
        q = ", ".join(str(float(angle)) for angle in joints.split(","))
        parameters = waypoint.find("motionParameters")
        own = {} if parameters is None else parameters.attrib
        a = float(own.get(f"{space}Acceleration") or node.get("acceleration") or 1.2)
        v = float(own.get(f"{space}Speed") or node.get("speed") or 0.25)
        r = float(own.get("blendRadius") or 0.0)
        yield f"{function}([{q}], a={a}, v={v}{f', r={r}' if r else ''})"


def _popup(node: Element) -> Lines:
    message = node.get("message", "")
    if '"' in message or "\n" in message:
        raise UnknownNode(
            "", "Popup with a quotation mark or several lines, which no text of URScript has"
        )
    yield f'popup("{message}", blocking=True)'
    if node.get("haltProgram") == "true":
        yield "halt"


_NODES: dict[str, Callable[[Element], Lines]] = {
    "InitVariablesNode": _variables, "MainProgram": _main, "SpecialSequence": _children, "Folder": _children,
    "Comment": lambda node: iter(()), "Wait": _wait, "Script": _script, "Set": _set, "Assignment": _assignment,
    "Loop": _loop, "Move": _move, "Popup": _popup, "Halt": lambda node: iter(["halt"]),
}  # fmt: skip
