"""Send the inverse of the servo law: the arm is at each setpoint when it is due."""

import simbridge
from simbridge import Options
from simbridge.trajectory import MinimumJerk, paths, trace

circle = simbridge.Scenario(
    trace(paths.circle(radius=0.1, centre=(0.7, 0.0, 0.3)), MinimumJerk(speed=0.3))
)
for feedforward in ("off", "on"):
    summary = simbridge.run(circle, options=Options(feedforward=feedforward)).summary
    error = summary["tracking_error"]["position_m"]["rms"]
    print(
        f"feedforward {feedforward:3}: {1e3 * error:8.4f} mm RMS, "
        f"delay {1e3 * summary['delay_s']:6.2f} ms"
    )
