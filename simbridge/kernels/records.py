"""Records for compiled code: arrays and numbers under one name, described by a class.

A function of compiled code takes a record as one argument; each of its arrays would be seven.
"""

from __future__ import annotations

from typing import Any, get_args, get_type_hints

import numpy as np
from numpy.typing import DTypeLike, NDArray

# The type of an element by the type that a class names.
_ELEMENTS: dict[Any, DTypeLike] = {
    float: np.float64,
    int: np.int64,
    NDArray[np.float64]: np.float64,
    NDArray[np.int64]: np.int64,
}


def record_type(kind: type, sizes: dict[str, int]) -> np.dtype[Any]:
    """Return the type of the records that a class describes.

    Its attributes are numbers, records, and arrays with their sides, as in
    `jacobian: Annotated[Array, "n", 6]`.

    Args:
        kind: The class.
        sizes: The length of each side that has a name.
    """
    fields: list[Any] = []
    for name, hint in get_type_hints(kind, include_extras=True).items():
        element, *sides = get_args(hint) if hasattr(hint, "__metadata__") else (hint,)
        shape = tuple(sizes.get(side, side) for side in sides)
        if element in _ELEMENTS:
            fields.append((name, _ELEMENTS[element], shape))
        else:
            fields.append((name, record_type(element, sizes)))
    return np.dtype(fields, align=True)


def allocate_record(kind: type, sizes: dict[str, int]) -> Any:
    """Return an array (1,) of one record, all zero, for compiled code.

    Args:
        kind: The class.
        sizes: The length of each side that has a name.
    """
    return np.zeros(1, record_type(kind, sizes))


def copy_records(records: Any) -> Any:
    """Return a copy of an array of records, byte by byte.

    Field by field it takes ten times longer.
    """
    return records.view(np.uint8).copy().view(records.dtype)


def with_attributes(records: Any) -> Any:
    """Return an array of records whose fields are attributes in Python, too.

    It is the same memory. Numba takes some microseconds of each call to recognize its type, so that
    compiled code is passed the other.
    """
    return records.view(np.recarray)
