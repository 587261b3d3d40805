"""The handles of a page's panel, which send what its user does as events.

Callbacks are coroutines, which viser runs one after the other in the order of arrival: events
arrive in the order in which a user caused them.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any

import viser

from simbridge.browser.events import PageEvent
from simbridge.browser.offers import NOTHING, EventRefused, Offer, check_offered, offer_of

# Fields into which one types.
TYPED_FIELDS = (viser.GuiTextHandle, viser.GuiNumberHandle, viser.GuiVector3Handle)
# How long after the last key what they hold counts, s.
TYPING_S = 0.6


def no_value() -> None:
    """Return the value of an event that has none."""


class PanelInputs:
    """The handles of a page at which its user does something.

    Args:
        page: Number of the page.
        gui: Viser's panel.
        send: Takes the events.

    Attributes:
        handles: The handles that are disabled while the page does not drive.
    """

    def __init__(self, page: int, gui: viser.GuiApi, send: Callable[[PageEvent], None]) -> None:
        self._page = page
        self._gui = gui
        self._send = send
        self.handles: list[Any] = []
        # What each handle offers, by its id.
        self._offers: dict[int, Offer] = {}
        # What sends the event of a text that was typed and does not count yet, by its field's id.
        self._typed: dict[int, Callable[[], None]] = {}
        # Lets what was typed count after a while.
        self._typing_timer: asyncio.TimerHandle | None = None

    def send_event(self, name: str, value: Any = None) -> None:
        """Send an event, after what was typed before."""
        self._send_typed()
        self._send_now(name, value)

    def refuse(self, error: EventRefused) -> None:
        """Pass on that the page has sent what it is not offered."""
        self._send_now("refused", error)

    def _send_now(self, name: str, value: Any) -> None:
        self._send(PageEvent(self._page, name, value, time.monotonic()))

    def _send_typed(self) -> None:
        """Send what was typed until now."""
        typed = self._typed
        self._typed = {}
        for send in typed.values():
            send()

    def send_changes(
        self,
        handle: Any,
        name: str,
        value: Callable[[Any], Any] = lambda value: value,
        *,
        control: str = "",
    ) -> Any:
        """Send what is done at a handle as events; what the studio itself sets there is no event.

        Args:
            handle: Viser's handle. Its events may carry what it offers now.
            name: Name of the events.
            value: Makes the value of an event from that of the handle.
            control: The control's name in a refusal; by default that of the events.

        Returns:
            The handle.
        """
        self.note_offer(handle)

        async def send_change(event: viser.GuiEvent[Any]) -> None:
            # Without a client, it is the studio itself that has set the value.
            if event.client_id is None:
                return
            # A handle that no longer has an offer was removed while the event was on its way.
            if id(handle) not in self._offers:
                return
            try:
                checked = self.checked_value(handle, control or name)
            except EventRefused as error:
                self.refuse(error)
                return

            if isinstance(handle, TYPED_FIELDS):
                self._typed[id(handle)] = lambda: self._send_now(name, value(checked))
                self._restart_typing_timer()
            else:
                self.send_event(name, value(checked))

        handle.on_update(send_change)
        self.handles.append(handle)
        return handle

    def _restart_typing_timer(self) -> None:
        """Wait for the next key.

        Each key that is pressed in a field arrives: what it holds counts once no other key follows.
        """
        if self._typing_timer is not None:
            self._typing_timer.cancel()
        loop = asyncio.get_running_loop()
        self._typing_timer = loop.call_later(TYPING_S, self._send_typed)

    def note_offer(self, handle: Any) -> None:
        """Note what a handle offers from now on, out of reach of the page."""
        self._offers[id(handle)] = offer_of(handle)

    def checked_value(self, handle: Any, control: str) -> Any:
        """Return the value of a handle, which may come from the page.

        Args:
            handle: Viser's handle.
            control: The control's name in a refusal.

        Raises:
            EventRefused: The handle does not offer it.
        """
        value = handle.value
        offer = self._offers.get(id(handle), NOTHING)
        check_offered(control, value, offer)
        return value

    def forget(self, handle: Any) -> None:
        """Forget a handle that was removed from the page."""
        self._offers.pop(id(handle), None)
        if handle in self.handles:
            self.handles.remove(handle)

    def add_button(
        self, label: str, name: str, value: Callable[[], Any] = no_value, **appearance: Any
    ) -> Any:
        """Add a button that sends an event.

        Args:
            label: Label of the button.
            name: Name of the event.
            value: Makes the value of the event; it may raise EventRefused.
            appearance: What else viser takes.

        Returns:
            The handle.
        """
        handle = self._gui.add_button(label, **appearance)

        @handle.on_click
        async def _(event: viser.GuiEvent[Any]) -> None:
            # Without a client, no user has clicked: the studio has set the value.
            if event.client_id is None:
                return
            try:
                self.send_event(name, value())
            except EventRefused as error:
                self.refuse(error)

        self.handles.append(handle)
        return handle

    def show(self, handle: Any, value: Any, what: str = "value") -> None:
        """Show another value of a handle, except while the user types there.

        Args:
            handle: Viser's handle.
            value: The value.
            what: Another of viser's properties, such as "visible".
        """
        is_typed = what == "value" and id(handle) in self._typed
        if getattr(handle, what) == value or is_typed:
            return
        setattr(handle, what, value)
        if what == "options":
            self.note_offer(handle)
