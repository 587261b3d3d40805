"""A Lissajous curve through a box of 0.4 m, 0.3 m and 0.1 m (smaller on small arms), from rest to rest."""

import math

from simbridge import Robot, Scenario, run_as_script
from simbridge.trajectory import MinimumJerk, paper_size, paths, trace


def scenario(robot: Robot) -> Scenario:
    size = paper_size(robot)
    amplitudes = (0.2 * size.scale, 0.15 * size.scale, 0.05 * size.scale * size.up)
    path = paths.lissajous(amplitudes, (3, 2, 1), (0.5 * math.pi, 0.0, 0.0), size.centre)
    return Scenario(
        trajectory=trace(
            path, MinimumJerk(size.speed), orientation=size.orientation, source="Lissajous"
        ),
        description="A Lissajous curve, 3 to 2 to 1, from rest to rest",
    )


if __name__ == "__main__":
    run_as_script(__file__)
