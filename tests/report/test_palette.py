"""Colours that people with any kind of colour vision tell apart, by numbers."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from simbridge.report.palette import (
    ATTAINED,
    ERROR_DASHES,
    ERRORS,
    REFERENCE,
    RUN_DASHES,
    RUNS,
    SETPOINT,
    STATES,
)

# G. M. Machado, M. M. Oliveira and L. A. F. Fernandes, A physiologically-based model for simulation
# of color vision deficiency, 2009: the table of severity 1.0, in linear sRGB.
VISION = {
    "normal": np.eye(3),
    "protanopia": [
        [0.152286, 1.052583, -0.204868],
        [0.114503, 0.786281, 0.099216],
        [-0.003882, -0.048116, 1.051998],
    ],
    "deuteranopia": [
        [0.367322, 0.860646, -0.227968],
        [0.280085, 0.672501, 0.047413],
        [-0.011820, 0.042940, 0.968881],
    ],
    "tritanopia": [
        [1.255528, -0.076749, -0.178779],
        [-0.078411, 0.930809, 0.147602],
        [0.004733, 0.691367, 0.303900],
    ],
}
# CIE 1976 colour difference: one of 2.3 is just noticeable side by side.
MIN_DIFFERENCE = 14.0
SETS = {
    "parts of the error": [
        ERRORS[name] for name in ("sampling", "solver", "limiter", "plant", "tracking")
    ],
    "runs": list(RUNS),
    "path": [REFERENCE, SETPOINT, ATTAINED],
    "states of a session": list(STATES.values()),
}


def lab(colour: str, vision: str) -> np.ndarray:
    """CIELAB of an sRGB colour (D65) as this vision sees it."""
    srgb = np.array([int(colour[k : k + 2], 16) / 255.0 for k in (1, 3, 5)])
    linear = np.where(srgb <= 0.04045, srgb / 12.92, ((srgb + 0.055) / 1.055) ** 2.4)
    seen = np.clip(np.array(VISION[vision]) @ linear, 0.0, 1.0)
    to_xyz = np.array(
        [[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]
    )
    relative_xyz = to_xyz @ seen / (to_xyz @ np.ones(3))
    linear_part = relative_xyz / (3.0 * (6.0 / 29.0) ** 2) + 4.0 / 29.0
    f = np.where(relative_xyz > (6.0 / 29.0) ** 3, np.cbrt(relative_xyz), linear_part)
    return np.array([116.0 * f[1] - 16.0, 500.0 * (f[0] - f[1]), 200.0 * (f[1] - f[2])])


@pytest.mark.parametrize("vision", VISION)
@pytest.mark.parametrize("name", SETS)
def test_colours_differ_for_every_vision(name: str, vision: str) -> None:
    seen = {colour: lab(colour, vision) for colour in SETS[name]}

    differences = {}
    for first, second in combinations(seen, 2):
        differences[first, second] = float(np.linalg.norm(seen[first] - seen[second]))
    most_alike = min(differences, key=differences.__getitem__)
    assert differences[most_alike] >= MIN_DIFFERENCE, most_alike


def test_lines_differ_by_more_than_colour() -> None:
    # The whole error and the plant's part, both solid, differ by their width; so do the first and
    # the sixth run.
    assert len(ERROR_DASHES) == 3
    assert len(set(ERROR_DASHES.values())) == 3
    assert len(set(RUN_DASHES[:5])) == 5
