"""After a stop nothing moves until `recover()`, and then by a new approach from where the arm stands."""

from __future__ import annotations

import numpy as np
import pytest

from simbridge.planning.options import Options
from simbridge.running.preparation import prepare
from simbridge.running.runner import open_backend
from simbridge.ur.errors import ConnectionLost, EmergencyStop, ProtectiveStop, SafeguardStop
from tests.backends.fault_trial import Bench, line, never_moved

HOST = "127.0.0.42"
PERIOD = 0.008


@pytest.fixture(scope="module")
def bench():
    with Bench("ur10", "3.15", HOST) as bench:
        yield bench


@pytest.mark.parametrize(
    ("fault", "kind", "release"),
    [
        ({"command": "safeguard_stop"}, SafeguardStop, "release_safety"),
        ({"command": "emergency_stop"}, EmergencyStop, "release_safety"),
        ({"command": "drop", "port": 30004}, ConnectionLost, None),
        # The last, for URSim unlocks itself from here, and no sooner than after five seconds.
        ({"command": "protective_stop"}, ProtectiveStop, None),
    ],
)
def test_after_a_stop_nothing_moves_until_recover_and_then_by_a_new_approach(fault, kind, release, bench, tmp_path):
    controller = bench.ready()
    ready = prepare(line(tmp_path), robot="ur10", options=Options(host=HOST), backend="ursim")
    plan = ready.plan.setpoints
    with open_backend(ready) as arm:
        arm.move_to(plan[0])
        with pytest.raises(kind):
            for state in arm.stream(plan):
                if state.sequence == 100:
                    controller.do(**fault)
        controller.wait_for("moving", False)
        stood = controller.state()
        for attempt in (lambda: arm.move_to(plan[0]), lambda: next(arm.stream(plan))):
            with pytest.raises(kind):
                attempt()
        if release is not None:
            with pytest.raises(kind):
                arm.recover()
            controller.do(release)
            with pytest.raises(kind):
                arm.move_to(plan[0])
        arm.recover()
        assert never_moved(controller, stood["tick"])
        arm.move_to(plan[0])
        states = list(arm.stream(plan[:60]))
    assert np.array_equal(states[-1].setpoint, plan[59])
    record = controller.record()
    after = record.actual_q[record.tick >= stood["tick"]]
    assert after[0].tolist() == stood["actual_q"]
    assert np.abs(np.diff(after, axis=0)).max() <= 1.05 * 1.0 * PERIOD
