"""Use a recording in another frame: poses from a tracker's origin become poses from base_link."""

import numpy as np
import pinocchio as pin

import simbridge
from simbridge.trajectory import square, write_tum

# A recording as a tracker would write it: its frame is 0.2 m beside the base, a quarter turned
# about z.
tracker = pin.SE3(pin.exp3(np.array([0.0, 0.0, np.pi / 2])), np.array([0.2, 0.0, 0.0]))
motion = square(side=0.1)
seen = np.array(
    [pin.SE3ToXYZQUAT(tracker.inverse() * pin.XYZQUATToSE3(pose)) for pose in motion.poses]
)
write_tum("tracker.tum", motion.times, seen)

options = simbridge.Options(transform=tuple(pin.SE3ToXYZQUAT(tracker)))
run = simbridge.run("tracker.tum", options=options)
print(f"tracking error: {1e3 * run.summary['tracking_error']['position_m']['rms']:.2f} mm RMS")
