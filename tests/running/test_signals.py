"""Signals end a block as Ctrl-C does; within `uninterrupted` they wait."""

from __future__ import annotations

import os
import signal
import threading

import pytest

from simbridge.running.signals import SignalReceived, ended_by_signals, uninterrupted

CAUSES = {signal.SIGINT: "interrupted", signal.SIGTERM: "terminated", signal.SIGHUP: "hangup"}


def receive(number):
    """Send a signal to this thread, in which Python handles it at once."""
    signal.pthread_kill(threading.get_ident(), number)


@pytest.mark.parametrize(("number", "cause"), CAUSES.items())
def test_a_signal_ends_the_block_and_says_which_it_was(number, cause):
    with pytest.raises(SignalReceived) as caught, ended_by_signals():
        receive(number)
        pytest.fail("the block went on")
    assert (caught.value.number, caught.value.cause) == (number, cause)


@pytest.mark.parametrize("number", CAUSES)
def test_a_signal_waits_for_the_end_of_what_must_not_be_interrupted(number):
    done = []
    with pytest.raises(SignalReceived) as caught, ended_by_signals():
        with uninterrupted():
            receive(number)
            done.append("written")
        pytest.fail("the block went on")
    assert done == ["written"] and caught.value.number == number


def test_a_handler_of_the_program_is_left_alone():
    received = []
    before = signal.signal(signal.SIGTERM, lambda number, _: received.append(number))
    try:
        with ended_by_signals():
            os.kill(os.getpid(), signal.SIGTERM)
        assert received == [signal.SIGTERM]
    finally:
        signal.signal(signal.SIGTERM, before)


def test_the_handlers_are_as_before_afterwards():
    before = [signal.getsignal(number) for number in CAUSES]
    with ended_by_signals():
        assert [signal.getsignal(number) for number in CAUSES] != before
    assert [signal.getsignal(number) for number in CAUSES] == before
