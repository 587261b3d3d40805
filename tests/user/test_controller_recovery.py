"""After a stop nothing moves until `recover()`, and then by an approach from where the arm is."""

from __future__ import annotations

import numpy as np
import pytest

from simbridge.planning.options import Options
from simbridge.running.run_setup import prepare
from simbridge.running.runner import open_backend
from simbridge.ur.errors import (
    ConnectionLost,
    EmergencyStop,
    ProtectiveStop,
    SafeguardStop,
)
from tests.backends.trial import write_line
from tests.controllers import never_moved, realtime_options

pytestmark = pytest.mark.quick

PERIOD = 0.008
# Fastest joint of an approach, rad/s.
APPROACH_SPEED = 1.0
SOAK = pytest.mark.soak


@pytest.mark.parametrize(
    ("fault", "on_protective_stop", "kind", "release"),
    [
        # Released by a person; the protective stop below is unlocked.
        pytest.param(
            {"command": "safeguard_stop"}, "pause", SafeguardStop, "release_safety", marks=SOAK
        ),
        pytest.param(
            {"command": "emergency_stop"}, "pause", EmergencyStop, "release_safety", marks=SOAK
        ),
        pytest.param({"command": "drop", "port": 30004}, "pause", ConnectionLost, None, marks=SOAK),
        # URSim is unlocked from here, but not before its controller allows it (`UNLOCK_DELAY`).
        ({"command": "protective_stop"}, "pause", ProtectiveStop, None),
        pytest.param({"command": "protective_stop"}, "stop", ProtectiveStop, None, marks=SOAK),
    ],
)
def test_after_a_stop_nothing_moves_until_recover(
    fault, on_protective_stop, kind, release, cb3, tmp_path
):
    cb3.set(on_protective_stop=on_protective_stop)
    options = Options(host=cb3.host, **realtime_options())
    prepared = prepare(write_line(tmp_path), robot="ur10", options=options, backend="ursim")
    plan = prepared.plan.setpoints

    with open_backend(prepared) as arm:
        # Stop the arm in motion.
        arm.move_to(plan[0])
        with pytest.raises(kind):
            for state in arm.stream(plan):
                if state.sequence == 100:
                    cb3.do(**fault)
        cb3.wait_for("moving", False)
        stopped = cb3.state()

        # Nothing moves it.
        with pytest.raises(kind):
            arm.move_to(plan[0])
        with pytest.raises(kind):
            next(arm.stream(plan))
        if release is not None:
            with pytest.raises(kind):
                arm.recover()
            cb3.do(release)
            with pytest.raises(kind):
                arm.move_to(plan[0])

        # Recover, and approach again.
        arm.recover()
        assert never_moved(cb3, stopped["tick"])
        arm.move_to(plan[0])
        states = list(arm.stream(plan[:60]))

    assert np.array_equal(states[-1].command, plan[59])
    after = cb3.record(after=stopped["tick"] - 1).actual_q
    assert after[0].tolist() == stopped["actual_q"]
    assert np.abs(np.diff(after, axis=0)).max() <= 1.05 * APPROACH_SPEED * PERIOD
