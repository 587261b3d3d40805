"""Experiment D of the paper: a square of 0.4 m at 0.2 m/s, sampled at 100 Hz, tool down, two laps."""

from simbridge import Robot, Scenario, run_as_script
from simbridge.trajectory import square


def scenario(robot: Robot) -> Scenario:
    return Scenario(
        trajectory=square(side=0.4, centre=(0.75, 0.164, 0.30), speed=0.2, rate=100.0, laps=2),
        description="A square of 0.4 m at 0.2 m/s, sampled at 100 Hz, tool down, two laps",
    )


if __name__ == "__main__":
    run_as_script(__file__)
