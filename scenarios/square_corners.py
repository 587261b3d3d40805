"""Experiment C of the paper: only the corners of a square of 0.4 m are given, and the solver finds the way between."""

from simbridge import ForwardDynamicsParameters, Robot, Scenario, run_as_script
from simbridge.trajectory import corners


def scenario(robot: Robot) -> Scenario:
    return Scenario(
        trajectory=corners(side=0.4, centre=(0.75, 0.164, 0.30), dwell=2.0),
        description="The corners of a square of 0.4 m, one every 2 s",
        hold="zero-order",
        on_limits="limit",
        solver=ForwardDynamicsParameters(dt=0.1, iterations=50, kp=(1.0,)),
    )


if __name__ == "__main__":
    run_as_script(__file__)
