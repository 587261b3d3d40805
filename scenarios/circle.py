"""A circle of 0.3 m diameter at 0.2 m/s (smaller on small arms), with minimum jerk from rest to rest, two laps."""

from simbridge import Robot, Scenario, run_as_script
from simbridge.trajectory import MinimumJerk, paper_size, paths, trace


def scenario(robot: Robot) -> Scenario:
    size = paper_size(robot)
    path = paths.circle(radius=0.15 * size.scale, centre=size.centre)
    return Scenario(
        trajectory=trace(
            path, MinimumJerk(size.speed), orientation=size.orientation, laps=2, source="circle"
        ),
        description=(
            f"A circle of {0.3 * size.scale:g} m diameter, at most {size.speed:g} m/s, two laps"
        ),
    )


if __name__ == "__main__":
    run_as_script(__file__)
