"""Checks JSON against a schema, as far as simbridge's schemas use JSON Schema."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

TYPES: dict[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "number": (int, float),
    "integer": (int,),
    "boolean": (bool,),
    "null": (type(None),),
}


def faults(value: Any, schema: dict[str, Any], root: dict[str, Any], path: str = "$") -> list[str]:
    """Return where a value does not follow a schema; [] if it does.

    Args:
        value: The JSON value.
        schema: Its schema.
        root: The whole schema, which holds the definitions.
        path: Where the value is, for the result.
    """
    if "$ref" in schema:
        definition = root["$defs"][schema["$ref"].rpartition("/")[2]]
        return faults(value, definition, root, path)
    if "anyOf" in schema:
        fits = any(not faults(value, option, root, path) for option in schema["anyOf"])
        return [] if fits else [f"{path}: {value!r} fits none of {schema['anyOf']}"]
    if "const" in schema:
        return [] if value == schema["const"] else [f"{path}: {value!r} is not {schema['const']}"]
    if "enum" in schema:
        return [] if value in schema["enum"] else [f"{path}: {value!r} is not in {schema['enum']}"]

    kind = schema.get("type")
    if kind is not None:
        is_number = isinstance(value, bool) and kind != "boolean"
        if is_number or not isinstance(value, TYPES[kind]):
            return [f"{path}: {value!r} is not of type {kind}"]
    return [*_faults_within(value, schema, root, path)]


def _faults_within(
    value: Any, schema: dict[str, Any], root: dict[str, Any], path: str
) -> Iterator[str]:
    """Yield where the content of an object or an array does not follow its schema."""
    if isinstance(value, dict):
        known = schema.get("properties", {})
        for name in schema.get("required", []):
            if name not in value:
                yield f"{path}: {name} is missing"
        for name, item in value.items():
            item_schema = known.get(name, schema.get("additionalProperties"))
            if isinstance(item_schema, dict):
                yield from faults(item, item_schema, root, f"{path}.{name}")

    if isinstance(value, list):
        first = schema.get("prefixItems", [])
        for index, item in enumerate(value):
            item_schema = first[index] if index < len(first) else schema.get("items", {})
            if isinstance(item_schema, dict):
                yield from faults(item, item_schema, root, f"{path}[{index}]")
