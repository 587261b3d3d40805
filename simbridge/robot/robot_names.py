"""Find the arm in robots/ that a name means, and explain a name that means none.

Capitals, blanks, hyphens and underscores do not matter. Every other difference is only answered
with a suggestion, and a suggestion has the number of the name: UR's number is the payload class, so
an arm with another number is another arm.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from simbridge.errors import UnknownName, nearest_names
from simbridge.quoting import quoted
from simbridge.robot.robot_descriptions import description_name

# UR's arms of which too little is published for a file.
G_SERIES = ("UR10g-1750", "UR17g-1300", "UR18g-950")

# Words around the names of UR's arms in data sheets, without blanks and hyphens.
BRAND = "universalrobots"
E_SERIES = "eseries"
CB_SERIES = ("cb3series", "cbseries", "cb3")
OTHER_SERIES = ("urseries", "cobot", "robot")
# A name of one of UR's arms: its number, and the letters after it.
UR_NAME = re.compile(r"ur(\d*)(.*)")
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


def _g_series_reason(name: str) -> str | None:
    """Return why there is no file of an arm of the g-Series; None for any other name."""
    plain = plain_name(name).removeprefix(BRAND)
    for title in G_SERIES:
        short_name, _, _ = title.lower().partition("-")
        if re.fullmatch(rf"{short_name}\d*", plain):
            return (
                f"The {title} is known, but the data that Universal Robots has published of the "
                "g-Series is incomplete: there are no kinematics and no joint limits, so robots/ "
                "has no file for it."
            )
    return None


def similar_robots(name: str, known: list[str]) -> list[str]:
    """Return the arms that a name may stand for.

    Args:
        name: As the user gave it.
        known: The names in robots/.

    Returns:
        Known names with the same number, the nearest first; for a name that is not like one of UR's
        and has no number, the nearest one of the other arms.
    """
    plain = re.sub(r"[\W_]", "", name.lower()).removeprefix(BRAND)
    base = _without_series(plain)
    number = re.sub(r"\D", "", base)
    if number:
        same_number = [candidate for candidate in known if re.sub(r"\D", "", candidate) == number]
        exact = [candidate for candidate in same_number if candidate in _corrections(plain)]
        return exact or nearest_names(base, same_number, count=len(known))
    if UR_NAME.fullmatch(plain):
        return []

    others = [candidate for candidate in known if not UR_NAME.fullmatch(candidate)]
    return nearest_names(plain, others, likeness=MIN_ROBOT_LIKENESS)


def _without_series(plain: str) -> str:
    """Return a plain name without the series that a data sheet puts behind it."""
    for series in (E_SERIES, *CB_SERIES, *OTHER_SERIES):
        plain = plain.removesuffix(series)
    return plain


def _corrections(plain: str) -> set[str]:
    """Return what a plain name is once its series and short forms are read as in robots/."""
    base = _without_series(plain)
    match = UR_NAME.fullmatch(base)
    if match is None:
        return {base}

    number, letters = match.groups()
    letters = LETTERS.get(letters, letters)
    if plain.endswith(E_SERIES):
        return {f"ur{number}e"}
    # No CB3 arm has letters: such a name contradicts itself.
    if plain.endswith(CB_SERIES) and letters:
        return set()
    return {f"ur{number}{letters}"}
