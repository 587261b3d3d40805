"""After a stop nothing moves until `recover()`, and then by a new approach from the arm's position."""

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

PERIOD = 0.008


@pytest.mark.parametrize(
    ("fault", "kind", "release"),
    [
        # Released by a person; the protective stop below is unlocked.
        pytest.param(
            {"command": "safeguard_stop"}, SafeguardStop, "release_safety", marks=pytest.mark.soak
        ),
        pytest.param(
            {"command": "emergency_stop"}, EmergencyStop, "release_safety", marks=pytest.mark.soak
        ),
        pytest.param(
            {"command": "drop", "port": 30004}, ConnectionLost, None, marks=pytest.mark.soak
        ),
        # URSim is unlocked from here, but not before its controller allows it (`UNLOCK_DELAY`).
        ({"command": "protective_stop"}, ProtectiveStop, None),
        pytest.param(
            {"command": "protective_stop", "on_protective_stop": "stop"},
            ProtectiveStop,
            None,
            marks=pytest.mark.soak,
        ),
    ],
)
def test_after_a_stop_nothing_moves_until_recover_and_then_by_a_new_approach(
    fault, kind, release, cb3, tmp_path
):
    controller, fault = cb3, dict(fault)
    controller.set(on_protective_stop=fault.pop("on_protective_stop", "pause"))
    ready = prepare(
        write_line(tmp_path),
        robot="ur10",
        options=Options(host=cb3.host, **realtime_options()),
        backend="ursim",
    )
    plan = ready.plan.setpoints
    with open_backend(ready) as arm:
        arm.move_to(plan[0])
        with pytest.raises(kind):
            for state in arm.stream(plan):
                if state.sequence == 100:
                    controller.do(**fault)
        controller.wait_for("moving", False)
        stopped = controller.state()
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
        assert never_moved(controller, stopped["tick"])
        arm.move_to(plan[0])
        states = list(arm.stream(plan[:60]))
    assert np.array_equal(states[-1].command, plan[59])
    after = controller.record(after=stopped["tick"] - 1).actual_q
    assert after[0].tolist() == stopped["actual_q"]
    assert np.abs(np.diff(after, axis=0)).max() <= 1.05 * 1.0 * PERIOD
