"""The rights to read a device on Linux: what a user without them is told."""

from __future__ import annotations


def explain_missing_rights(lines: str, file: str) -> str:
    """Return what to do about missing rights, as the end of a sentence.

    Args:
        lines: What was printed above it, "line" or "lines" of a udev rule.
        file: Path of the rule's file.
    """
    reload = "run `sudo udevadm control --reload`, and connect it again."
    return f"this user may not read it: put the {lines} above into {file}, {reload}"
