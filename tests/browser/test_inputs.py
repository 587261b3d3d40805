"""What is done in a page arrives as events in the order in which it was done."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from unittest.mock import MagicMock

import pytest
import viser

from simbridge.browser.inputs import PanelInputs

BY_THE_USER, BY_THE_STUDIO = SimpleNamespace(client_id=3), SimpleNamespace(client_id=None)


def run(coroutine):
    """Run it in a thread: in this one playwright may have left its event loop."""
    with ThreadPoolExecutor(1) as pool:
        pool.submit(asyncio.run, coroutine).result()


class Done:
    """Handles of a page, and the events that they send."""

    def __init__(self):
        self.events = []
        self.inputs = PanelInputs(3, MagicMock(), self.events.append)
        self.field = MagicMock(spec=viser.GuiTextHandle)
        self.slider = MagicMock(spec=viser.GuiSliderHandle, min=0, max=10)
        for handle, name in ((self.field, "typed"), (self.slider, "moved")):
            self.inputs.send_changes(handle, name)

    async def does(self, handle, value, event=BY_THE_USER):
        handle.value = value
        (callback,) = handle.on_update.call_args.args
        await callback(event)

    @property
    def sent(self):
        return [(event.name, event.value) for event in self.events]


@pytest.fixture
def done():
    return Done()


def test_what_is_typed_counts_once_no_other_key_follows(done, monkeypatch):
    monkeypatch.setattr("simbridge.browser.inputs.TYPING_S", 0.01)

    async def type_a_number():
        for text in ("0", "0.", "0.4"):
            await done.does(done.field, text)
        assert not done.sent
        done.inputs.show(done.field, "0.9")
        assert done.field.value == "0.4", "what is being typed stays"
        while not done.sent:
            await asyncio.sleep(0.01)
        done.inputs.show(done.field, "0.9")

    run(type_a_number())
    assert done.sent == [("typed", "0.4")] and done.field.value == "0.9"


def test_what_is_done_next_comes_after_what_was_typed_before(done):
    async def type_and_move():
        await done.does(done.field, "0.4")
        await done.does(done.slider, 7)
        await done.does(done.field, "0.5")
        done.inputs.send_event("pressed")

    run(type_and_move())
    assert done.sent == [("typed", "0.4"), ("moved", 7), ("typed", "0.5"), ("pressed", None)]


def test_what_the_studio_sets_is_no_event(done):
    run(done.does(done.slider, 7, BY_THE_STUDIO))
    assert not done.sent
