"""Describe a motion by a path, a motion law and an orientation, and write it as a file."""

import numpy as np

import simbridge
from simbridge.trajectory import LookAt, MinimumJerk, paths, trace, write_tum

# A loop around the upright axis through (0.6, 0, 0.3), the tool's z axis pointing at a point below.
path = paths.circle(radius=0.1, centre=(0.6, 0.0, 0.3))
motion = trace(path, MinimumJerk(speed=0.3), orientation=LookAt((0.6, 0.0, -0.2)))

print(f"{len(motion.times)} samples, {motion.duration:.2f} s")
print(f"length {np.linalg.norm(np.diff(motion.poses[:, :3], axis=0), axis=1).sum():.3f} m")
write_tum("cone.tum", motion.times, motion.poses)

again = simbridge.read_trajectory("cone.tum")
run = simbridge.run(simbridge.Scenario(again))
print(f"tracking error: {1e3 * run.summary['tracking_error']['position_m']['rms']:.2f} mm RMS")
