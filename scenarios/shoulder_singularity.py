"""A line past the shoulder singularity, where the wrist is above the axis of the base joint; UR arms only."""

from simbridge import Robot, Scenario, run_as_script
from simbridge.trajectory import MinimumJerk, move, paper_size, shoulder_line


def scenario(robot: Robot) -> Scenario:
    size = paper_size(robot)
    start, end = shoulder_line(robot, length=0.4 * size.scale)
    return Scenario(
        trajectory=move(start, end, MinimumJerk(size.speed), source="shoulder singularity"),
        description=f"A line of {0.4 * size.scale:g} m past the shoulder singularity",
        on_limits="limit",
    )


if __name__ == "__main__":
    run_as_script(__file__)
