"""Poses P1 to P5 of an ISO 9283-style test cube of 0.4 m (smaller on small arms), in turn; arms in space only."""

from simbridge import Robot, Scenario, run_as_script
from simbridge.errors import InvalidParameter
from simbridge.trajectory import IsoCube, Trapezoid, paper_size


def scenario(robot: Robot) -> Scenario:
    if robot.planar:
        raise InvalidParameter(
            "robot", robot.name, "an arm that moves in space, as the test cube is not planar"
        )
    size = paper_size(robot)
    # The standard asks for the largest one, which `simbridge.trajectory.largest_cube` finds.
    cube = IsoCube(size.centre, edge=0.4 * size.scale)
    return Scenario(
        trajectory=cube.cycle(
            Trapezoid(size.speed, 4.0 * size.speed), dwell=0.5, orientation=size.orientation, laps=2
        ),
        description=f"Poses P1 to P5 of a test cube of {0.4 * size.scale:g} m, two cycles",
    )


if __name__ == "__main__":
    run_as_script(__file__)
