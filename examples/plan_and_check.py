"""Plan a motion and check it before anything moves: what is refused says where and by how much."""

import numpy as np

import simbridge
from simbridge.running.run_setup import prepare
from simbridge.trajectory import square

for side, speed in ((0.2, 0.2), (0.4, 1.5), (1.6, 0.2)):
    scenario = simbridge.Scenario(square(side=side, speed=speed))
    try:
        prepared = prepare(scenario, robot="ur10")
    except simbridge.SimbridgeError as refused:
        print(f"side {side} m at {speed} m/s is refused: {refused}\n")
        continue
    used = np.max(prepared.peaks.velocity / prepared.robot.max_velocity)
    print(
        f"side {side} m at {speed} m/s can be run: "
        f"the fastest joint uses {used:.0%} of its velocity"
    )
    print(f"closest: {1e3 * prepared.peaks.clearance.distance:.0f} mm\n")
