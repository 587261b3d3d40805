"""Read the arrays of a run: joints, poses and errors, one row per control period."""

import sys
from pathlib import Path

import numpy as np

import simbridge
from simbridge.evaluation import Evaluation

directory = sys.argv[1] if len(sys.argv) > 1 else simbridge.run("pick_and_place").directory
evaluation = Evaluation.read(Path(directory))

log = evaluation.log
print(f"{len(log.position)} samples of {log.position.shape[1]} joints")
errors = evaluation.budget
for name in ("solver", "plant", "tracking"):
    distance = np.linalg.norm(getattr(errors, name).translation, axis=1)
    worst = int(distance.argmax())
    print(
        f"{name:9} at most {1e3 * distance[worst]:7.3f} mm, "
        f"at {worst * evaluation.plan.period:.3f} s"
    )
