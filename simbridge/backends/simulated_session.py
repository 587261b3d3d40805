"""A simulated arm in a live session, paced by the wall clock in a process of its own, which this module starts as.

Run as `python -m simbridge.backends.simulated_session`, it reads requests and reports events as the servo process does.
"""

from __future__ import annotations

import json
import math
import sys
import time
from pathlib import Path

from simbridge.backends.live_channel import LiveChannel
from simbridge.backends.live_loop import Request, SimulatedArm, unpickled
from simbridge.backends.loop_process import Parent, error_facts, minimize_latency
from simbridge.backends.servo_channel import StateRing
from simbridge.errors import GuardViolation

# A period that begins later than this share of itself is missed.
_LATE = 0.5


def _serve(parent: Parent) -> None:
    """Move a simulated arm by the wall clock until the parent asks for the end, or is gone.

    Raises:
        SimbridgeError: What ended the session.
    """
    request = json.loads(parent.configuration())
    setup = unpickled(Path(request["live"]).read_bytes())
    motion, n = setup.motion(), setup.robot.n
    channel = LiveChannel(Path(request["channel"]), n)
    ring = StateRing(Path(request["ring"]), n, request["rows"])
    notes = minimize_latency(request["priority"])
    with SimulatedArm(setup, motion, channel, ring, time.monotonic) as arm:
        parent.report(event="session", subjects=list(motion.subjects), notes=notes)
        deadline, missed = time.monotonic(), 0
        while not parent.gone:
            for request in parent.requests():
                if request["do"] == "stop":
                    parent.report(event="stopped", program="none", missed_deadlines=missed, missed_states=0)
                    return
                arm.loop.requests.append(Request.received(request))
            parent.check_alive()
            try:
                arm.step()
            except GuardViolation as error:
                parent.report(**(error_facts(error) | {"event": "refused"}))
            deadline += setup.period
            late = time.monotonic() - deadline
            if late > _LATE * setup.period:
                skipped = max(1, math.ceil(late / setup.period))
                missed, deadline = missed + skipped, deadline + (skipped - 1) * setup.period
            time.sleep(max(0.0, deadline - time.monotonic()))


def main() -> int:
    """Serve the parent; returns the exit status."""
    parent = Parent()
    try:
        _serve(parent)
    except Exception as error:
        parent.report(**error_facts(error))
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
