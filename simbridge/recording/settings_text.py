"""The settings of a run as texts, by their names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def setting_text(value: Any) -> str:
    """Return a value of settings.toml as text."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return f"{value:.10g}"
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(setting_text(part) for part in value)}]"
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {setting_text(part)}" for key, part in value.items())
    return str(value)


def all_settings(
    settings: Mapping[str, Any], name: str = ""
) -> list[tuple[str, list[tuple[str, str]]]]:
    """Return every table of settings.toml, with names and values as text.

    Args:
        settings: A table.
        name: The table's full name, such as "solver.parameters"; "" for the whole file.
    """
    rows = []
    inner_tables = []
    for key, value in settings.items():
        if isinstance(value, Mapping):
            inner_tables += all_settings(value, f"{name}.{key}" if name else key)
        else:
            rows.append((key, setting_text(value)))

    tables = [(name, rows)] if rows else []
    return tables + inner_tables


def flatten(settings: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return every setting under its full name, such as "robot.tcp", as text."""
    return [
        (f"{table}.{key}" if table else key, text)
        for table, rows in all_settings(settings)
        for key, text in rows
    ]
