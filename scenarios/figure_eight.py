"""A figure eight of 0.4 m by 0.2 m (smaller on small arms), from rest to rest, two laps."""

from simbridge import Robot, Scenario, run_as_script
from simbridge.trajectory import Trapezoid, paper_size, paths, trace


def scenario(robot: Robot) -> Scenario:
    size = paper_size(robot)
    path = paths.figure_eight(width=0.4 * size.scale, height=0.2 * size.scale, centre=size.centre)
    return Scenario(
        trajectory=trace(
            path,
            Trapezoid(size.speed, 2.0 * size.speed),
            orientation=size.orientation,
            laps=2,
            source="figure eight",
        ),
        description=f"A figure eight of {0.4 * size.scale:g} m by {0.2 * size.scale:g} m, two laps",
    )


if __name__ == "__main__":
    run_as_script(__file__)
