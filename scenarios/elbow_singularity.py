"""Out to the elbow singularity, where upper arm and forearm are stretched out, and back; UR arms only."""

from simbridge import Robot, Scenario, run_as_script
from simbridge.trajectory import MinimumJerk, concatenate, elbow_line, move, paper_size


def scenario(robot: Robot) -> Scenario:
    size = paper_size(robot)
    start, end = elbow_line(robot, length=0.3 * size.scale)
    law = MinimumJerk(size.speed)
    return Scenario(
        trajectory=concatenate(
            move(start, end, law), move(end, start, law), source="elbow singularity"
        ),
        description=f"{0.3 * size.scale:g} m out to the elbow singularity and back",
        on_limits="limit",
    )


if __name__ == "__main__":
    run_as_script(__file__)
