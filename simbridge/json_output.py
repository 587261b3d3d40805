"""JSON for other programs: what simbridge prints with `--json`, and its files of results.

Every such text is one object with a `schema_version`; docs/json.md lists the schemas.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

# It is raised where a field is removed, renamed or changes its meaning; new fields do not raise it.
SCHEMA_VERSION = 1


def versioned(content: Mapping[str, Any]) -> dict[str, Any]:
    """Return the content of a JSON object with the version of its schema in front."""
    return {"schema_version": SCHEMA_VERSION, **content}


def print_json(content: Mapping[str, Any]) -> None:
    """Print a result as one JSON object with the version of its schema.

    Raises:
        ValueError: A number is not finite: JSON has none.
    """
    print(json.dumps(versioned(content), indent=2, allow_nan=False))


def print_json_line(content: Mapping[str, Any]) -> None:
    """Print one JSON object with the version of its schema, on one line, at once."""
    print(json.dumps(versioned(content)), flush=True)
