"""Move a simulated arm live, by twists; without a new one it brakes by itself."""

import numpy as np

import simbridge

with simbridge.live("pybullet", robot="ur10e", realtime=False) as session:
    session.engage()
    for speed in np.linspace(0.0, 0.1, 25):
        # 25 twists in half a second: [vx vy vz wx wy wz] in m/s and rad/s, in base_link.
        session.twist([0.0, speed, 0.0, 0.0, 0.0, 0.0])
        session.wait(0.02)
    print(
        "moving:",
        session.status.state,
        f"at {session.status.speed_factor:.0%} of what was asked for",
    )
    session.wait(1.0)
    print("without inputs:", session.status.state)

print("the session is a run:", session.directory / "report.html")
