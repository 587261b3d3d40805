"""The texts under the fields of a class of settings, which the page shows as their help.

Python keeps no such text: it is read from the class's source, as tyro does for the command line.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from functools import cache
from itertools import pairwise


@cache
def field_texts(settings_class: type) -> dict[str, str]:
    """Return the text under each field of a class and its bases, by the field's name.

    The first call for a class takes milliseconds.
    """
    helps: dict[str, str] = {}
    # From the base to the class; `object`, the last, has no source.
    for base in reversed(settings_class.__mro__[:-1]):
        source = textwrap.dedent(inspect.getsource(base))
        definition = ast.parse(source).body[0]
        if isinstance(definition, ast.ClassDef):
            helps |= _texts_under_fields(definition)
    return helps


def _texts_under_fields(definition: ast.ClassDef) -> dict[str, str]:
    """Return the text that follows each annotated field in the body of a class."""
    texts = {}
    for statement, following in pairwise(definition.body):
        if not isinstance(statement, ast.AnnAssign) or not isinstance(statement.target, ast.Name):
            continue
        if isinstance(following, ast.Expr) and isinstance(following.value, ast.Constant):
            texts[statement.target.id] = " ".join(str(following.value.value).split())
    return texts
