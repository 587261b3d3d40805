"""servoj as programs call it: calls of any duration, on controllers of either series."""

from __future__ import annotations

import logging

import numpy as np
import pytest

from simbridge.robot import load_robot
from simbridge.servo.law import ServojLaw
from tests.emulator.bench import Bench

CB3_CYCLE = 0.008
# A program as ur_modern_driver's: a call for each cycle, and one of 1 ms at each waypoint, which
# holds the last command.
WAYPOINTS = """
p = q
k = 0
while k < 30:
  p[0] = q[0] + 0.002 * (k + 1)
  p[3] = q[3] - 0.001 * (k + 1)
  servoj(p, t=0.008, lookahead_time=LOOKAHEAD, gain=100)
  k = k + 1
  if k % 10 == 0:
    servoj(p, t=0.001, lookahead_time=LOOKAHEAD, gain=100)
  end
end
sleep(0.1)
"""


def follow_waypoints(home: np.ndarray, cycles: int) -> np.ndarray:
    """Return the targets (cycles, 6), rad, that the law makes of the program above."""
    commands = []
    durations = []
    for k in range(1, 31):
        commands.append(home + 0.001 * k * np.array([2.0, 0.0, 0.0, -1.0, 0.0, 0.0]))
        durations.append(0.008)
        if k % 10 == 0:
            commands.append(commands[-1])
            durations.append(0.001)
    law = ServojLaw(CB3_CYCLE, 100.0, 0.2)
    return law.follow(np.array(commands), call=np.array(durations), previous=home, cycles=cycles).q


@pytest.fixture
def cb3() -> Bench:
    """A CB3 controller of a UR5 that is running."""
    return Bench(robot=load_robot("ur5"), polyscope="3.15").running()


def run_waypoints(cb3: Bench, lookahead: str) -> np.ndarray:
    home = cb3.state.target_q
    cb3.load(WAYPOINTS.replace("LOOKAHEAD", lookahead))
    cb3.tick(0.3)
    targets = np.array(cb3.q)
    # The program begins in one of the first ticks.
    moving = np.flatnonzero(np.abs(targets - home).max(axis=1) > 0.0)
    return targets[moving[0] :][:30]


def test_a_call_ends_inside_a_cycle(cb3):
    home = cb3.state.target_q

    targets = run_waypoints(cb3, "0.2")

    # 30 calls of 8 ms and two of 1 ms precede the end of cycle 30.
    np.testing.assert_allclose(targets, follow_waypoints(home, 30), rtol=0.0, atol=1e-12)


def test_a_cb3_clips_the_lookahead(cb3, caplog):
    home = cb3.state.target_q

    with caplog.at_level(logging.WARNING):
        targets = run_waypoints(cb3, "1.0")

    np.testing.assert_allclose(targets, follow_waypoints(home, 30), rtol=0.0, atol=1e-12)
    warnings = [record.getMessage() for record in caplog.records]
    assert warnings == [
        "URScript: servoj's lookahead_time of 1 s is outside UR's range (0.03 to 0.2 s): 0.2 s is "
        "used, as a CB3 seems to do."
    ]


def test_an_e_series_refuses_the_lookahead():
    bench = Bench().running()

    bench.load("servoj(q, t=0.002, lookahead_time=1.0, gain=300)")
    bench.tick(0.1)

    assert "lookahead" in bench.texts("error")
