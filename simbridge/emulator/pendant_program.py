"""Programs of the pendant (*.urp): a tree of nodes in compressed XML, translated into URScript.

UR does not document the format: it is known from files of PolyScope and of programs that write
some. The nodes known are those of `TRANSLATORS`; a program with another one, a URCap's for
instance, is refused by that node's name.
"""

from __future__ import annotations

import gzip
import re
import zlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple
from xml.etree.ElementTree import Element, ParseError, TreeBuilder, XMLParser

from simbridge.emulator.errors import UnknownNode

# Largest file, unpacked, bytes: a MiB takes about 0.15 s, in which the controller's clock stands
# still.
MAX_BYTES = 1 << 22
# Depth to which elements may be nested.
MAX_DEPTH = 200
DIGITAL_PIN = re.compile(r"digital_(?:in|out)\[(\d+)\]")
# Acceleration, m/s^2 or rad/s^2, and speed, m/s or rad/s, where neither the waypoint nor its Move
# has them.
DEFAULT_ACCELERATION = 1.2
DEFAULT_SPEED = 0.25


class MoveType(NamedTuple):
    """A type of motion.

    Attributes:
        function: URScript's function for it.
        space: First word of the names of its acceleration and its speed.
    """

    function: str
    space: str


MOVE_TYPES = {
    "MoveJ": MoveType("movej", "joint"),
    "MoveL": MoveType("movel", "cartesian"),
    "MoveP": MoveType("movep", "cartesian"),
}

# Words that cannot be the name of a program.
KEYWORDS = frozenset(
    {
        "and",
        "break",
        "continue",
        "def",
        "elif",
        "else",
        "end",
        "enter_critical",
        "exit_critical",
        "False",
        "global",
        "halt",
        "if",
        "join",
        "kill",
        "local",
        "not",
        "or",
        "pass",
        "return",
        "run",
        "sec",
        "thread",
        "True",
        "while",
        "xor",
    }
)

# Lines of URScript.
Lines = Iterator[str]


class LimitedTreeBuilder(TreeBuilder):
    """Builds the tree of a program, and refuses what could grow without limit.

    These are document types, which can declare entities, and deep nesting.
    """

    def __init__(self) -> None:
        super().__init__()
        # Elements that have begun and not ended.
        self._depth = 0

    def doctype(self, *_declaration: str | None) -> None:
        """Refuse a document type by a ValueError."""
        raise ValueError("it declares a document type")

    def start(self, tag: str, attributes: dict[str, str], /) -> Element:
        """Begin an element; a ValueError refuses too great a depth."""
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise ValueError(f"it is more than {MAX_DEPTH} elements deep")
        return super().start(tag, attributes)

    def end(self, tag: str, /) -> Element:
        """End an element."""
        self._depth -= 1
        return super().end(tag)


def translate(path: Path) -> str:
    """Return the URScript of a program file.

    Raises:
        UnknownNode: The program has a node that is not known, or the file is not a program.
        OSError: The file cannot be read.
    """
    try:
        root = _read_tree(path)
        lines = [f"def {_script_name(path)}():"]
        for node in root.findall("children/*"):
            lines += [f"  {line}" for line in _translate_node(node)]
    except UnknownNode as error:
        raise UnknownNode(error.node, file=path.name) from None
    except (gzip.BadGzipFile, EOFError, zlib.error, ParseError, ValueError) as error:
        raise UnknownNode(f"the file itself ({error})", file=path.name) from None
    return "\n".join([*lines, "end", ""])


def _read_tree(path: Path) -> Element:
    """Return the root of a program's tree; a ValueError says why the file is not a program."""
    with gzip.open(path) as file:
        parser = XMLParser(target=LimitedTreeBuilder())
        content = file.read(MAX_BYTES + 1)
        if len(content) > MAX_BYTES:
            raise ValueError(f"it has more than {MAX_BYTES >> 20} MiB, unpacked")
        parser.feed(content)
        root: Element = parser.close()
    if root.find("children/MainProgram") is None:
        raise ValueError("it has no main program")
    return root


def _script_name(path: Path) -> str:
    """Return the name of a program's function, after its file."""
    name = re.sub(r"\W", "_", path.stem, flags=re.ASCII)
    is_no_name = name[:1].isdigit() or name in KEYWORDS
    return f"p_{name}" if is_no_name else name


def _translate_node(node: Element) -> Lines:
    """Yield the lines of a node; raise UnknownNode if it is not known."""
    translator = TRANSLATORS.get(node.tag)
    if translator is not None:
        yield from translator(node)
        return

    label = node.get("strategyProgramNodeType") or node.tag
    urcap = node.get("strategyURCapName")
    raise UnknownNode(f"{label}, of the URCap {urcap}" if urcap else node.tag)


def _translate_children(node: Element) -> Lines:
    """Yield the lines of a node's children."""
    for child in node.findall("children/*"):
        yield from _translate_node(child)


def _while_loop(condition: str, body: Iterable[str] = ()) -> Lines:
    """Yield a loop that takes at least a tick in each round."""
    yield f"while {condition}:"
    for line in body:
        yield f"  {line}"
    yield "  sync()"
    yield "end"


def _translate_variables(node: Element) -> Lines:
    """Yield the assignments of first values.

    How PolyScope writes those values themselves is not known.
    """
    for part in node:
        if part.tag != "children":
            raise UnknownNode(f"{node.tag} with {part.tag}")
    return _translate_children(node)


def _translate_main(node: Element) -> Lines:
    """Yield the main program, which begins anew at its end unless it is to run only once."""
    if node.get("runOnlyOnce") == "true":
        return _translate_children(node)
    return _while_loop("True", _translate_children(node))


def _expression(node: Element) -> str:
    """Return a node's expression, which is stored in characters and tokens."""
    parts = node.findall("expression/*")
    return "".join(part.get("character", "") or part.get("token", "") for part in parts)


def _pin_number(node: Element) -> int:
    """Return the number of a node's digital pin; raise UnknownNode for another pin."""
    pin = node.find("pin")
    name = "" if pin is None else pin.get("referencedName", "")
    match = DIGITAL_PIN.fullmatch(name)
    if match is None:
        raise UnknownNode(f"{node.tag} of another pin than a digital one")
    return int(match[1])


def _is_high(node: Element) -> bool:
    """Return the level of a node's digital pin."""
    return node.findtext("digitalValue") == "1"


def _translate_wait(node: Element) -> Lines:
    """Yield a wait for a time, an input or a condition."""
    kind = node.get("type")
    if kind == "Sleep":
        seconds = float(node.findtext("waitTime") or 0.0)
        yield f"sleep({seconds})"
    elif kind == "DigitalInput":
        condition = f"get_standard_digital_in({_pin_number(node)}) != {_is_high(node)}"
        yield from _while_loop(condition)
    elif kind == "Condition":
        yield from _while_loop(f"not ({_expression(node)})")
    elif kind != "NoWait":
        raise UnknownNode(f"Wait of the type {kind}")


def _translate_script(node: Element) -> Lines:
    """Yield the lines of a line or a file of URScript."""
    text = node.findtext("cachedContents") or ""
    if node.get("type") == "Line":
        text = _expression(node)
    yield from text.splitlines()


def _translate_set(node: Element) -> Lines:
    """Yield the setting of an output."""
    kind = node.get("type")
    if kind == "DigitalOutput":
        yield f"set_standard_digital_out({_pin_number(node)}, {_is_high(node)})"
    elif kind != "NoAction":
        raise UnknownNode(f"Set of the type {kind}")


def _translate_assignment(node: Element) -> Lines:
    """Yield an assignment to a global variable."""
    variable = node.find("variable")
    name = "" if variable is None else variable.get("name")
    yield f"global {name} = {_expression(node)}"


def _translate_loop(node: Element) -> Lines:
    """Yield an endless loop, one with a condition, or one that counts its rounds."""
    kind = node.get("type")
    if kind == "Always":
        yield from _while_loop("True", _translate_children(node))
        return
    if kind == "Expression":
        yield from _while_loop(_expression(node), _translate_children(node))
        return

    count = node.get("count") or node.findtext("count")
    variable = node.find("variable")
    if count is None or variable is None:
        raise UnknownNode(f"Loop of the type {kind}")
    name = variable.get("name")
    yield f"global {name} = 0"
    body = [*_translate_children(node), f"{name} = {name} + 1"]
    yield from _while_loop(f"{name} < {int(count)}", body)


def _translate_move(node: Element) -> Lines:
    """Yield the moves to a node's waypoints, and the lines of what is between them."""
    kind = node.get("motionType", "")
    if kind not in MOVE_TYPES:
        raise UnknownNode(f"Move of the type {kind}")

    for child in node.findall("children/*"):
        joints = _fixed_joints(child)
        if joints is None:
            yield from _translate_node(child)
        else:
            yield _move_line(MOVE_TYPES[kind], node, waypoint=child, joints=joints)


def _fixed_joints(node: Element) -> str | None:
    """Return the joint positions of a fixed waypoint as text; None for another node."""
    if node.tag != "Waypoint" or node.get("type") != "Fixed":
        return None
    angles = node.find("position/JointAngles")
    if angles is not None:
        return angles.get("angles")
    position = node.find("position")
    return None if position is None else position.get("joints")


def _move_line(move_type: MoveType, move: Element, *, waypoint: Element, joints: str) -> str:
    """Return the call of a move to a waypoint.

    Args:
        move_type: The function, and the names of its parameters.
        move: The Move node, whose parameters apply where the waypoint has none.
        waypoint: The node of the goal.
        joints: Joint positions of the waypoint, rad, separated by commas.
    """
    parameters = waypoint.find("motionParameters")
    attributes = {} if parameters is None else parameters.attrib
    acceleration = attributes.get(f"{move_type.space}Acceleration") or move.get("acceleration")
    speed = attributes.get(f"{move_type.space}Speed") or move.get("speed")

    q = ", ".join(str(float(angle)) for angle in joints.split(","))
    a = float(acceleration or DEFAULT_ACCELERATION)
    v = float(speed or DEFAULT_SPEED)
    radius = float(attributes.get("blendRadius") or 0.0)
    blend = f", r={radius}" if radius else ""
    return f"{move_type.function}([{q}], a={a}, v={v}{blend})"


def _translate_popup(node: Element) -> Lines:
    """Yield a popup that blocks, and a halt after it if the node asks for one."""
    message = node.get("message", "")
    if '"' in message or "\n" in message:
        reason = "a quotation mark or several lines, which no text of URScript has"
        raise UnknownNode(f"Popup with {reason}")
    yield f'popup("{message}", blocking=True)'
    if node.get("haltProgram") == "true":
        yield "halt"


def _translate_comment(node: Element) -> Lines:
    """Yield nothing."""
    yield from ()


def _translate_halt(node: Element) -> Lines:
    """Yield the end of the program."""
    yield "halt"


TRANSLATORS: dict[str, Callable[[Element], Lines]] = {
    "InitVariablesNode": _translate_variables,
    "MainProgram": _translate_main,
    "SpecialSequence": _translate_children,
    "Folder": _translate_children,
    "Comment": _translate_comment,
    "Wait": _translate_wait,
    "Script": _translate_script,
    "Set": _translate_set,
    "Assignment": _translate_assignment,
    "Loop": _translate_loop,
    "Move": _translate_move,
    "Popup": _translate_popup,
    "Halt": _translate_halt,
}
