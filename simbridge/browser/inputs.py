"""What is done at the handles of a page, as events in the order in which it was done.

Callbacks are coroutines, which viser runs one after the other in the order of arrival.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any

import viser

from simbridge.browser.view import Event

# Fields into which one types, and how long after the last key, s, what they hold counts.
_TYPED = (viser.GuiTextHandle, viser.GuiNumberHandle, viser.GuiVector3Handle)
_TYPING = 0.6


class Inputs:
    """The handles of a page at which its user does something.

    Args:
        page: Its number.
        gui: Of viser.
        send: Takes the events.

    Attributes:
        handles: Those that are disabled where a page does not drive.
    """

    def __init__(self, page: int, gui: viser.GuiApi, send: Callable[[Event], None]) -> None:
        self._page, self._gui, self._send = page, gui, send
        self.handles: list[Any] = []
        # What was typed and does not count yet, by the id of its field.
        self._typed: dict[int, Callable[[], None]] = {}
        self._counts: asyncio.TimerHandle | None = None

    def event(self, name: str, value: Any = None) -> None:
        """Send an event, after what was typed before."""
        self._send_typed()
        self._send(Event(self._page, name, value, time.monotonic()))

    def _send_typed(self) -> None:
        typed, self._typed = self._typed, {}
        for send in typed.values():
            send()

    def on(self, handle: Any, name: str, value: Callable[[Any], Any] = lambda value: value) -> Any:
        """Send what is done at a handle, which is returned; what the studio itself sets there is no event."""

        async def changed(event: viser.GuiEvent[Any]) -> None:
            if event.client_id is None:
                return
            if not isinstance(handle, _TYPED):
                self.event(name, value(handle.value))
                return
            # Each key that is pressed in such a field arrives: what it holds counts once no other key follows.
            self._typed[id(handle)] = lambda: self._send(Event(self._page, name, value(handle.value), time.monotonic()))
            if self._counts is not None:
                self._counts.cancel()
            self._counts = asyncio.get_running_loop().call_later(_TYPING, self._send_typed)

        handle.on_update(changed)
        self.handles.append(handle)
        return handle

    def button(self, label: str, name: str, value: Callable[[], Any] = lambda: None, **more: Any) -> Any:
        """Add a button that sends an event; `more` is viser's."""
        handle = self._gui.add_button(label, **more)

        @handle.on_click
        async def _(event: viser.GuiEvent[Any]) -> None:
            if event.client_id is not None:
                self.event(name, value())

        self.handles.append(handle)
        return handle

    def set(self, handle: Any, value: Any, what: str = "value") -> None:
        """Show another value, or another of viser's properties, of a handle; what is being typed stays."""
        if getattr(handle, what) != value and not (what == "value" and id(handle) in self._typed):
            setattr(handle, what, value)
