"""Records for compiled code: arrays and numbers under one name, described by a class.

Compiled code passes a record as one argument, where each of its arrays would be seven.
"""

from __future__ import annotations

from typing import Any, get_args, get_type_hints

import numpy as np
from numpy.typing import DTypeLike, NDArray

# The numpy type of an attribute's elements, by the type in its annotation.
_ELEMENTS: dict[Any, DTypeLike] = {
    float: np.float64,
    int: np.int64,
    NDArray[np.float64]: np.float64,
    NDArray[np.int64]: np.int64,
}


def record_type(kind: type, sizes: dict[str, int]) -> np.dtype[Any]:
    """Return the numpy type of the records that a class describes.

    The attributes of the class are numbers, other records, or arrays with their sizes, as in
    `jacobian: Annotated[Array, "n", 6]`.

    Args:
        kind: The class.
        sizes: The number for each name of a size, such as "n".
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
    """Return an array (1,) with one record, all zero, for compiled code.

    Args:
        kind: The class that describes the record.
        sizes: The number for each name of a size, such as "n".
    """
    return np.zeros(1, record_type(kind, sizes))


def copy_records(records: Any) -> Any:
    """Return a copy of an array of records.

    It is copied byte by byte, since numpy's copy field by field takes ten times longer.
    """
    return records.view(np.uint8).copy().view(records.dtype)


def with_attributes(records: Any) -> Any:
    """Return a view of an array of records whose fields are attributes in Python.

    Compiled code takes the array itself: numba needs some microseconds per call to recognize the
    type of the view.
    """
    return records.view(np.recarray)
