"""Find the arm in robots/ that a name means, and explain a name that means none.

Capitals, blanks, hyphens and underscores do not matter. Every other difference is only answered
with a suggestion, and a suggestion has the number of the name: UR's number is the payload class, so
an arm with another number is another arm.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from simbridge.errors import UnknownName, nearest_names
from simbridge.quoting import quoted
from simbridge.robot.arm_models import ARM_MODELS
from simbridge.robot.robot_descriptions import description_name

# UR's arms of which too little is published for a file, such as "UR10g-1750".
G_SERIES = [model.name for model in ARM_MODELS if model.oldest_polyscope is None]

# Words around the names of UR's arms in data sheets, without blanks and punctuation.
BRAND = "universalrobots"
E_SERIES = "eseries"
CB_SERIES = ("cb3series", "cbseries", "cb31", "cb3")
OTHER_SERIES = ("urseries", "cobot", "robot")
# Payload, reach or weight after a name: "7.5 kg", "1300 mm", or a reach without its unit.
FIGURE = re.compile(r"\d+(kg|mm)|\d{3,}")
# The number of one of UR's arms, and what follows it.
UR_ARM = re.compile(r"ur[\W_]*(\d+)(.*)")
# What follows the number of an arm of the g-Series: "g", "g1750", "gseries".
G_SUFFIX = re.compile(r"g(\d|g?series|cobot|robot|$)")
# Short forms of the letters after the number.
LETTERS = {"l": "long"}
# How like the name of another maker's arm a name must be (0 to 1): "planr" is, "panda" is not.
MIN_ROBOT_LIKENESS = 0.7

CUSTOM_HINT = (
    "Give an arm of your own by its path, such as ./arm.urdf or ./arm.toml, and one from "
    "robot_descriptions as NAME_description."
)


class UrName(NamedTuple):
    """A name of one of UR's arms.

    Attributes:
        number: Number of the arm, which is its payload class.
        suffix: Letters and digits that follow it, in lower case: "e", "cb3", "g1750".
    """

    number: str
    suffix: str


def read_ur_name(name: str) -> UrName | None:
    """Return the parts of a name that has the number of one of UR's arms; None for any other."""
    ur_arm = UR_ARM.search(name.lower())
    if ur_arm is None:
        return None
    return UrName(ur_arm[1], re.sub(r"[\W_]", "", ur_arm[2]))


def plain_name(name: str) -> str:
    """Return a name in lower case, without blanks, hyphens and underscores."""
    return re.sub(r"[\s_-]", "", name.lower())


def find_robot(name: str, files: Mapping[str, Path]) -> Path | None:
    """Return the file of the arm with a name, None without one.

    Args:
        name: The name as the user gave it.
        files: The files by robot name.
    """
    if name in files:
        return files[name]
    matches = [path for known, path in files.items() if plain_name(known) == plain_name(name)]
    return matches[0] if len(matches) == 1 else None


def unknown_robot(name: str, files: Mapping[str, Path]) -> UnknownName:
    """Return the error for a name that no arm in robots/ has.

    Args:
        name: The name as the user gave it.
        files: The files by robot name.
    """
    known = list(files)
    description = description_name(name)
    candidates = [description] if description else similar_robots(name, known)
    advice = _advise(name, known, candidates)
    return UnknownName("robot", name, known, CUSTOM_HINT, advice=advice)


def unknown_ur_arm(name: str, files: Mapping[str, Path]) -> UnknownName:
    """Return the error for a name that no arm has, where only arms of UR will do.

    Args:
        name: The name as the user gave it.
        files: The files by robot name.
    """
    known = [candidate for candidate in files if UR_ARM.match(candidate)]
    advice = _advise(name, known, similar_robots(name, known))
    return UnknownName("UR arm", name, known, advice=advice)


def _advise(name: str, known: Sequence[str], candidates: Sequence[str]) -> str:
    """Return sentences that explain an unknown name, and ask whether another one is meant.

    Args:
        name: The name as the user gave it.
        known: The names in robots/ that would do.
        candidates: The names that may be meant.
    """
    sentences = [_missing_arm_reason(name, known)]
    if candidates:
        sentences.append(f"Did you mean {' or '.join(map(quoted, candidates))}?")
    return " ".join(filter(None, sentences))


def _missing_arm_reason(name: str, known: Sequence[str]) -> str:
    """Return why the arm of UR that a name means is not in robots/; "" for any other name."""
    ur_name = read_ur_name(name)
    if ur_name is None:
        return ""

    title = _g_series_arm(ur_name, known)
    if title:
        return (
            f"The {title} is known, but the data that Universal Robots has published of the "
            "g-Series is incomplete: there are no kinematics and no joint limits, so robots/ has "
            "no file for it."
        )
    if not _arms_with_number(ur_name.number, known):
        return (
            "The number of an arm of Universal Robots is its payload class, and robots/ has no arm "
            f"with the number {ur_name.number}."
        )
    return ""


def _g_series_arm(ur_name: UrName, known: Sequence[str]) -> str:
    """Return the arm of the g-Series that a name means; "" for any other arm."""
    for title in G_SERIES:
        number, reach = title.removeprefix("UR").split("g-")
        if number != ur_name.number:
            continue
        # "UR17" can only be the UR17g-1300; "UR10" is an arm of another series.
        has_file = bool(_arms_with_number(number, known))
        if not has_file or ur_name.suffix == reach or G_SUFFIX.match(ur_name.suffix):
            return title
    return ""


def similar_robots(name: str, known: Sequence[str]) -> list[str]:
    """Return the arms that a name may stand for.

    Args:
        name: The name as the user gave it.
        known: The names in robots/.

    Returns:
        Known names with the same number, the nearest first; none for an arm of the g-Series. For a
        name that is not like one of UR's and has no number, the nearest one of the other arms.
    """
    ur_name = read_ur_name(name)
    if ur_name is not None:
        is_g_series = G_SUFFIX.match(ur_name.suffix) and _g_series_arm(ur_name, known)
        return [] if is_g_series else _arms_of_ur(ur_name, known)

    bare_name = re.sub(r"[\W_]", "", name.lower()).removeprefix(BRAND)
    number = _digits(bare_name)
    if number:
        same_number = [candidate for candidate in known if _digits(candidate) == number]
        return nearest_names(bare_name, same_number, count=len(known))
    # A name such as "ur" or "urx" says nothing about the payload.
    if bare_name.startswith("ur"):
        return []

    others = [candidate for candidate in known if UR_ARM.match(candidate) is None]
    return nearest_names(bare_name, others, likeness=MIN_ROBOT_LIKENESS)


def _digits(name: str) -> str:
    """Return the digits of a name."""
    return re.sub(r"\D", "", name)


def _arms_with_number(number: str, known: Sequence[str]) -> list[str]:
    """Return UR's arms in robots/ with a number."""
    arms = []
    for candidate in known:
        ur_name = read_ur_name(candidate)
        if ur_name is not None and ur_name.number == number:
            arms.append(candidate)
    return arms


def _arms_of_ur(ur_name: UrName, known: Sequence[str]) -> list[str]:
    """Return UR's arms with the number of a name.

    Args:
        ur_name: The parts of the name.
        known: The names in robots/.

    Returns:
        The only arm that the suffix can mean; else all with the number, first those with which the
        name begins.
    """
    number, suffix = ur_name
    corrected_name = f"ur{number}{_read_suffix(suffix)}"
    if corrected_name in known:
        return [corrected_name]

    name = f"ur{number}{suffix}"
    longest_first = sorted(_arms_with_number(number, known), key=len, reverse=True)
    return sorted(longest_first, key=lambda candidate: not name.startswith(candidate))


def _read_suffix(suffix: str) -> str:
    """Return what follows an arm's number as robots/ spells it: "e" for "eseries"."""
    if suffix.endswith(E_SERIES):
        return "e"
    # A CB3 arm has no letters: "UR10e CB3" contradicts itself, and means neither arm for certain.
    if suffix in CB_SERIES:
        return ""

    # Without letters a figure is that of every arm with the number.
    letters = FIGURE.split(suffix)[0] or suffix
    for series in OTHER_SERIES:
        letters = letters.removesuffix(series)
    return LETTERS.get(letters, letters)
