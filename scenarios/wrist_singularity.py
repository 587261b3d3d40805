"""A line past the wrist singularity, where the axes of wrist 1 and wrist 3 become parallel; UR arms only."""

from simbridge import Robot, Scenario, run_as_script
from simbridge.trajectory import MinimumJerk, move, paper_size, wrist_line


def scenario(robot: Robot) -> Scenario:
    size = paper_size(robot)
    start, end = wrist_line(robot, length=0.4 * size.scale)
    return Scenario(
        trajectory=move(start, end, MinimumJerk(size.speed), source="wrist singularity"),
        description=f"A line of {0.4 * size.scale:g} m past the wrist singularity",
        on_limits="limit",
    )


if __name__ == "__main__":
    run_as_script(__file__)
