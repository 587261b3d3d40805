"""Errors as events: so an error that a loop raises reaches its parent with all its fields."""

from __future__ import annotations

import base64
import contextlib
import copy
import pickle
import traceback
from typing import Any, cast

from simbridge import errors
from simbridge.quoting import as_text

# A field of an error that is larger than this is sent to the parent as text.
MAX_FIELD_BYTES = 65_536


def error_facts(error: BaseException) -> dict[str, Any]:
    """Return an error as an event, from which `reconstruct_error` rebuilds it."""
    trace = "".join(traceback.format_exception(error))
    facts = {
        "event": "error",
        "error": type(error).__name__,
        "trace": trace[-MAX_FIELD_BYTES:],
    }
    if isinstance(error, errors.SimbridgeError):
        # A class of the user's may fail in any way, and the arm is braked only after this.
        with contextlib.suppress(Exception):
            facts["pickled"] = base64.b64encode(_pickled_error(error)).decode()
    return facts


def reconstruct_error(event: dict[str, Any]) -> Exception:
    """Return the error that an event of `error_facts` describes.

    Returns:
        The error; an `InternalError` if it was not raised on purpose, or cannot be rebuilt.
    """
    try:
        error = pickle.loads(base64.b64decode(event["pickled"]))
    except Exception:
        return errors.InternalError("servo process", event["trace"])
    return cast(Exception, error)


def _pickled_error(error: errors.SimbridgeError) -> bytes:
    """Pickle an error with all its fields; a field that another process cannot take is text."""
    sendable = copy.copy(error)

    arguments = []
    for argument in error.args:
        arguments.append(argument if _is_sendable(argument) else as_text(argument))
    sendable.args = tuple(arguments)

    for name, value in vars(error).items():
        if not _is_sendable(value):
            setattr(sendable, name, as_text(value))
    return pickle.dumps(sendable)


def _is_sendable(value: object) -> bool:
    """Return whether another process can unpickle a value, and the loop can send it in time."""
    # Whatever a user gave may be among the fields, and what cannot be pickled fails in many ways.
    try:
        pickled = pickle.dumps(value)
        pickle.loads(pickled)
    except Exception:
        return False
    return len(pickled) <= MAX_FIELD_BYTES
