"""Signals are deferred until a block ends."""

from __future__ import annotations

import signal
import threading

import pytest

from simbridge.backends.signal_shield import shield_from_signals


class Interrupt(Exception):
    """Raised by the test's handlers."""


@pytest.fixture
def handled():
    """Handle signals by raising, as the command line does; return how to do it."""
    previous = {}

    def handle(number):
        def raise_interrupt(received, _frame):
            raise Interrupt(received)

        previous[number] = signal.signal(number, raise_interrupt)

    yield handle

    for number, handler in previous.items():
        signal.signal(number, handler)


def test_the_first_signal_takes_effect_at_the_end(handled):
    handled(signal.SIGTERM)
    handled(signal.SIGHUP)
    reached_end = False

    with pytest.raises(Interrupt) as interrupt, shield_from_signals():
        signal.raise_signal(signal.SIGTERM)
        signal.raise_signal(signal.SIGHUP)
        reached_end = True

    assert reached_end
    assert interrupt.value.args == (signal.SIGTERM,)


def test_handlers_are_restored(handled):
    handled(signal.SIGINT)
    handler = signal.getsignal(signal.SIGINT)

    with shield_from_signals():
        assert signal.getsignal(signal.SIGINT) is not handler

    assert signal.getsignal(signal.SIGINT) is handler


def test_an_ignored_signal_stays_ignored():
    handler = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with shield_from_signals():
            assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, handler)


def test_other_threads_have_nothing_to_defer():
    handlers = []

    def look():
        with shield_from_signals():
            handlers.append(signal.getsignal(signal.SIGTERM))

    thread = threading.Thread(target=look)
    thread.start()
    thread.join()

    assert handlers == [signal.getsignal(signal.SIGTERM)]
