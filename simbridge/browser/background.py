"""The interface by which a part of the studio runs a long task in a background thread."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol


class RunInBackground(Protocol):
    """Does something in the background, and then in the loop what follows; see `Studio`."""

    def __call__(
        self,
        control: str,
        task: Callable[[], Any],
        finish: Callable[[Any], None],
        fail: Callable[[Exception], None] | None = None,
        *,
        always: bool = False,
    ) -> None:
        """Do a task in the background.

        Args:
            control: The control at which an error is shown.
            task: Function that is called in the background.
            finish: Takes its result, in the loop.
            fail: Takes its error, in the loop; by default it is the workspace that does.
            always: Whether it is done even if the same control asks for something else before its
                turn has come.
        """
