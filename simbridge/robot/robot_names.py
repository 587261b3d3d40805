"""Find the arm in robots/ that a name means, and explain a name that means none.

Capitals, blanks, hyphens and underscores do not matter. Every other difference is only answered
with a suggestion, and a suggestion has the number of the name: UR's number is the payload class, so
an arm with another number is another arm.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from simbridge.errors import UnknownName, nearest_names
from simbridge.quoting import quoted
from simbridge.robot.robot_descriptions import description_name

# UR's arms of which too little is published for a file.
G_SERIES = ("UR10g-1750", "UR17g-1300", "UR18g-950")

# Words around the names of UR's arms in data sheets, without blanks and punctuation.
BRAND = "universalrobots"
E_SERIES = "eseries"
CB_SERIES = ("cb3series", "cbseries", "cb31", "cb3")
OTHER_SERIES = ("urseries", "cobot", "robot")
# The number of one of UR's arms, and what follows it.
UR_ARM = re.compile(r"ur(\d+)(.*)")
# Short forms of the letters after the number.
LETTERS = {"l": "long"}
# How like the name of another maker's arm a name must be (0 to 1): "planr" is, "panda" is not.
MIN_ROBOT_LIKENESS = 0.7

CUSTOM_HINT = (
    "Give an arm of your own by its path, such as ./arm.urdf or ./arm.toml, and one from "
    "robot_descriptions as NAME_description."
)


def plain_name(name: str) -> str:
    """Return a name in lower case, without blanks, hyphens and underscores."""
    return re.sub(r"[\s_-]", "", name.lower())


def find_robot(name: str, files: Mapping[str, Path]) -> Path | None:
    """Return the file of the arm with a name, None without one.

    Args:
        name: As the user gave it.
        files: The files by robot name.
    """
    if name in files:
        return files[name]
    matches = [path for known, path in files.items() if plain_name(known) == plain_name(name)]
    return matches[0] if len(matches) == 1 else None


def unknown_robot(name: str, files: Mapping[str, Path]) -> UnknownName:
    """Return the error for a name that no arm in robots/ has.

    Args:
        name: As the user gave it.
        files: The files by robot name.
    """
    reason = _g_series_reason(name)
    if reason is None:
        description = description_name(name)
        candidates = [description] if description else similar_robots(name, list(files))
        alternatives = " or ".join(map(quoted, candidates))
        reason = f"Did you mean {alternatives}?" if candidates else ""
    return UnknownName("robot", name, files, CUSTOM_HINT, advice=reason)


def _bare_name(name: str) -> str:
    """Return the letters and digits of a name in lower case, without the maker's name."""
    return re.sub(r"[\W_]", "", name.lower()).removeprefix(BRAND)


def _g_series_reason(name: str) -> str | None:
    """Return why there is no file of an arm of the g-Series; None for any other name."""
    bare_name = _bare_name(name)
    for title in G_SERIES:
        short_name, _, _ = title.lower().partition("-")
        # The reach or the series may follow: "UR10g-1750", "UR10 g-Series".
        if re.search(rf"{short_name}(\d|g?series|cobot|robot|$)", bare_name):
            return (
                f"The {title} is known, but the data that Universal Robots has published of the "
                "g-Series is incomplete: there are no kinematics and no joint limits, so robots/ "
                "has no file for it."
            )
    return None


def similar_robots(name: str, known: Sequence[str]) -> list[str]:
    """Return the arms that a name may stand for.

    Args:
        name: As the user gave it.
        known: The names in robots/.

    Returns:
        Known names with the same number, the nearest first; for a name that is not like one of UR's
        and has no number, the nearest one of the other arms.
    """
    bare_name = _bare_name(name)
    ur_arm = UR_ARM.search(bare_name)
    if ur_arm is not None:
        return _arms_of_ur(ur_arm[1], ur_arm[2], known)

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


def _arms_of_ur(number: str, suffix: str, known: Sequence[str]) -> list[str]:
    """Return UR's arms with a number.

    Args:
        number: The number in a name of an arm.
        suffix: What follows it, such as "e", "cb3" or "robotarm".
        known: The names in robots/.

    Returns:
        The only arm that the suffix can mean; else all with the number, first those with which the
        name begins.
    """
    corrected_name = f"ur{number}{_read_suffix(suffix)}"
    if corrected_name in known:
        return [corrected_name]

    name = f"ur{number}{suffix}"
    same_number = []
    for candidate in known:
        ur_arm = UR_ARM.match(candidate)
        if ur_arm is not None and ur_arm[1] == number:
            same_number.append(candidate)
    longest_first = sorted(same_number, key=len, reverse=True)
    return sorted(longest_first, key=lambda candidate: not name.startswith(candidate))


def _read_suffix(suffix: str) -> str:
    """Return what follows an arm's number as robots/ spells it: "e" for "eseries"."""
    if suffix.endswith(E_SERIES):
        return "e"
    # A CB3 arm has no letters: "UR10e CB3" contradicts itself, and means neither arm for certain.
    if suffix in CB_SERIES:
        return ""

    for series in OTHER_SERIES:
        suffix = suffix.removesuffix(series)
    return LETTERS.get(suffix, suffix)
