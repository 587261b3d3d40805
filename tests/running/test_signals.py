"""Signals end a block as Ctrl-C does; within `defer_signals` they wait."""

from __future__ import annotations

import os
import signal
import threading

import pytest

from simbridge.running.signals import SignalReceived, defer_signals, end_on_signals

CAUSES = {signal.SIGINT: "interrupted", signal.SIGTERM: "terminated", signal.SIGHUP: "hangup"}


def receive(number):
    """Send a signal to this thread, in which Python handles it at once."""
    signal.pthread_kill(threading.get_ident(), number)


def current_handlers():
    return [signal.getsignal(number) for number in CAUSES]


@pytest.mark.parametrize(("number", "cause"), CAUSES.items())
def test_a_signal_ends_the_block(number, cause):
    with pytest.raises(SignalReceived) as caught, end_on_signals():
        receive(number)
        pytest.fail("the block went on")

    assert caught.value.number == number
    assert caught.value.cause == cause


@pytest.mark.parametrize("number", CAUSES)
def test_a_deferred_signal_waits(number):
    written = []

    with pytest.raises(SignalReceived) as caught, end_on_signals():
        with defer_signals():
            receive(number)
            written.append("a sample")
        pytest.fail("the block went on")

    assert written == ["a sample"]
    assert caught.value.number == number


def test_the_handlers_of_a_program_stay():
    received = []
    handler = signal.signal(signal.SIGTERM, lambda number, _: received.append(number))

    try:
        with end_on_signals():
            os.kill(os.getpid(), signal.SIGTERM)
    finally:
        signal.signal(signal.SIGTERM, handler)

    assert received == [signal.SIGTERM]


def test_handlers_are_restored():
    handlers = current_handlers()

    with end_on_signals():
        assert current_handlers() != handlers

    assert current_handlers() == handlers
