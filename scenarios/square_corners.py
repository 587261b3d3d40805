"""Experiment C of the paper: only the corners of a square of 0.4 m are given; the solver interpolates."""

from simbridge import ForwardDynamicsParameters, Robot, Scenario, run_as_script
from simbridge.trajectory import corners, paper_size


def scenario(robot: Robot) -> Scenario:
    size = paper_size(robot)
    return Scenario(
        trajectory=corners(
            side=size.side, centre=size.centre, dwell=2.0, orientation=size.orientation
        ),
        description=f"The corners of a square of {size.side:g} m, one every 2 s",
        hold="zero-order",
        on_limits="limit",
        solver=ForwardDynamicsParameters(dt=0.1, iterations=50, kp=(1.0,)),
    )


if __name__ == "__main__":
    run_as_script(__file__)
