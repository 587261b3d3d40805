"""How an option is described: one dataclass field, from which its flag, its help and its record follow."""

from __future__ import annotations

from dataclasses import field
from typing import Any


def option(default: Any, help: str = "", metavar: str = "", unset: str = "", **metadata: Any) -> Any:
    """A field of `Options`.

    Args:
        default: Of the field; None and () mean that the option was not given.
        help: What the option means.
        metavar: Names of the flag's values, such as "MM DEG".
        unset: The effect of leaving the flag out, where the default does not show it.
        metadata: `commands` that have the flag; `units`, the flag's units in SI, one for each value; `read`, a function
            from the flag's text to the value; `flag`, its name where that is not the field's; `prefix` of the flags of
            an option that is a dataclass; `table` of settings.toml that records the option as given.
    """
    shown = {"help": help, "metavar": metavar, "unset": unset, "commands": ("run", "check")}
    return field(default=default, metadata={**shown, **metadata})
