"""Experiment D of the paper: a square of 0.4 m (smaller on small arms), sampled at 100 Hz, two laps."""

from simbridge import Robot, Scenario, run_as_script
from simbridge.trajectory import paper_size, square


def scenario(robot: Robot) -> Scenario:
    size = paper_size(robot)
    tool = "tool down, " if robot.task == "pose" else ""
    return Scenario(
        trajectory=square(
            side=size.side,
            centre=size.centre,
            speed=size.speed,
            rate=100.0,
            orientation=size.orientation,
            laps=2,
        ),
        description=(
            f"A square of {size.side:g} m at {size.speed:g} m/s, sampled at 100 Hz, {tool}two laps"
        ),
    )


if __name__ == "__main__":
    run_as_script(__file__)
