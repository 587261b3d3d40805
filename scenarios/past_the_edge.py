"""A line outwards past the edge of the workspace: the check refuses it with the sample and the distance."""

from simbridge import Robot, Scenario, run_as_script
from simbridge.trajectory import ConstantSpeed, paper_size, paths, trace


def scenario(robot: Robot) -> Scenario:
    size = paper_size(robot)
    beyond = (robot.arm_length + 0.1, size.centre[1], size.centre[2])
    return Scenario(
        trajectory=trace(
            paths.line(size.centre, beyond),
            ConstantSpeed(size.speed),
            orientation=size.orientation,
            source="past the edge",
        ),
        description="A line outwards past the edge of the workspace, which is refused",
    )


if __name__ == "__main__":
    run_as_script(__file__)
