"""What one check of `simbridge doctor` found."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

MEND_PORTS = "Mend the ports first, see above."
Status = Literal["pass", "warn", "fail"]


@dataclass(frozen=True)
class Finding:
    """One line of the checklist.

    Attributes:
        check: What was looked at: "remote control".
        status: "warn" for what works but might not work well, "fail" for what a run would refuse or not survive.
        seen: What is the case.
        mend: What to do about it; "" when there is nothing to do.
        table: Rows of words that belong to it, the first of them the heading.
    """

    check: str
    status: Status
    seen: str
    mend: str = ""
    table: tuple[tuple[str, ...], ...] = ()


def passed(check: str, seen: str, table: tuple[tuple[str, ...], ...] = ()) -> Finding:
    """All is well."""
    return Finding(check, "pass", seen, table=table)


def warned(check: str, seen: str, mend: str, table: tuple[tuple[str, ...], ...] = ()) -> Finding:
    """It works, but might not work well."""
    return Finding(check, "warn", seen, mend, table)


def failed(check: str, seen: str, mend: str, table: tuple[tuple[str, ...], ...] = ()) -> Finding:
    """A run would refuse, or not survive."""
    return Finding(check, "fail", seen, mend, table)


def unread(check: str, port: int) -> Finding:
    """What cannot be known while a port does not answer."""
    return failed(check, f"not known while port {port} does not answer", MEND_PORTS)
