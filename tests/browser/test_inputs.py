"""Inputs in a page arrive as events in the order in which they were made."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from unittest.mock import MagicMock

import pytest
import viser

from simbridge.browser.inputs import PanelInputs

BY_THE_USER = SimpleNamespace(client_id=3)
BY_THE_STUDIO = SimpleNamespace(client_id=None)


def run(coroutine):
    """Run it in a thread: in this one playwright may have left its event loop."""
    with ThreadPoolExecutor(1) as pool:
        pool.submit(asyncio.run, coroutine).result()


class Panel:
    """A text field and a slider of a page, and the events that they send."""

    def __init__(self):
        self.events = []
        self.inputs = PanelInputs(3, MagicMock(), self.events.append)
        self.field = MagicMock(spec=viser.GuiTextHandle)
        self.slider = MagicMock(spec=viser.GuiSliderHandle, min=0, max=10)
        self.inputs.send_changes(self.field, "typed")
        self.inputs.send_changes(self.slider, "moved")

    async def change(self, handle, value, event=BY_THE_USER):
        handle.value = value
        (callback,) = handle.on_update.call_args.args
        await callback(event)

    @property
    def sent(self):
        return [(event.name, event.value) for event in self.events]


@pytest.fixture
def panel():
    return Panel()


def test_a_typed_text_counts_after_its_last_key(panel, monkeypatch):
    monkeypatch.setattr("simbridge.browser.inputs.TYPING_S", 0.01)

    async def type_a_number():
        for text in ("0", "0.", "0.4"):
            await panel.change(panel.field, text)
        assert not panel.sent
        while not panel.sent:
            await asyncio.sleep(0.01)

    run(type_a_number())

    assert panel.sent == [("typed", "0.4")]


def test_what_is_being_typed_stays(panel, monkeypatch):
    monkeypatch.setattr("simbridge.browser.inputs.TYPING_S", 0.01)
    shown = []

    async def show_while_typing():
        await panel.change(panel.field, "0.4")
        panel.inputs.show(panel.field, "0.9")
        shown.append(panel.field.value)
        while not panel.sent:
            await asyncio.sleep(0.01)
        panel.inputs.show(panel.field, "0.9")
        shown.append(panel.field.value)

    run(show_while_typing())

    assert shown == ["0.4", "0.9"]


def test_events_come_after_what_was_typed_before(panel):
    async def type_and_move():
        await panel.change(panel.field, "0.4")
        await panel.change(panel.slider, 7)
        await panel.change(panel.field, "0.5")
        panel.inputs.send_event("pressed")

    run(type_and_move())

    assert panel.sent == [("typed", "0.4"), ("moved", 7), ("typed", "0.5"), ("pressed", None)]


def test_what_the_studio_sets_is_no_event(panel):
    run(panel.change(panel.slider, 7, BY_THE_STUDIO))

    assert not panel.sent
