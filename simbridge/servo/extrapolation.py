"""At which gains the servo law is extrapolated: it was compared with real arms at two of them."""

from __future__ import annotations

from collections.abc import Iterable

from simbridge.text import join_words

# The smallest and the largest gain at which the law was compared with real arms, 1/s^2: see
# docs/validation.md.
COMPARED_GAINS = (100.0, 300.0)
# Relative difference up to which a gain, which may be an identified one, is one of these.
GAIN_TOLERANCE = 0.05


def is_extrapolated(gain: float) -> bool:
    """Return whether a gain, 1/s^2, is outside the range in which the law was compared."""
    low, high = COMPARED_GAINS
    return not (1.0 - GAIN_TOLERANCE) * low <= gain <= (1.0 + GAIN_TOLERANCE) * high


def describe_extrapolation(gains: Iterable[float]) -> str:
    """Return a sentence that names the gains at which predictions are extrapolated.

    Args:
        gains: Gains of servoj with which an arm was predicted, 1/s^2.

    Returns:
        "The servo law at gain 2000 is extrapolated from gains 300 and 100."; "" without such a
        gain.
    """
    extrapolated = [f"{gain:.4g}" for gain in sorted(set(gains)) if is_extrapolated(gain)]
    if not extrapolated:
        return ""
    gain_noun = "gain" if len(extrapolated) == 1 else "gains"
    low, high = COMPARED_GAINS
    return (
        f"The servo law at {gain_noun} {join_words(extrapolated)} is extrapolated from gains "
        f"{high:g} and {low:g}."
    )
