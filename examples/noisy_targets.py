"""Track targets at 10 Hz with 2 mm of noise: a low gain smooths, a high one lags less."""

import simbridge
from simbridge import Options
from simbridge.trajectory import Sampling, square

robot = simbridge.load_robot("ur10")
scenario = simbridge.Scenario(square(side=0.2, speed=0.1), name="square seen by a camera")
vision = Options(sampling=Sampling(rate=10.0, noise=(0.002, 0.0)), on_limits="limit")

for kp in (1.0, 50.0):
    summary = simbridge.run(
        scenario, solver=simbridge.ForwardDynamics(robot, kp=kp), options=vision
    ).summary
    distance = summary["contour_error"]["position_m"]["rms"]
    delay = summary["delay_s"]
    fastest = max(summary["joint_effort"]["acceleration"]["peak"])
    print(
        f"kp {kp:4.0f}: {1e3 * distance:.1f} mm RMS off the path, {1e3 * delay:3.0f} ms late, "
        f"up to {fastest:.1f} rad/s^2"
    )
