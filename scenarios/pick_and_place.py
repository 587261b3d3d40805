"""Pick and place over 0.4 m (less on small arms), 0.1 m up and down, with a quarter turn; arms in space only."""

import numpy as np

from simbridge import Robot, Scenario, run_as_script
from simbridge.errors import InvalidParameter
from simbridge.robot import pose
from simbridge.trajectory import MinimumJerk, paper_size, pick_and_place


def scenario(robot: Robot) -> Scenario:
    if robot.planar:
        raise InvalidParameter(
            "robot", robot.name, "an arm that moves in space, as it has to go up and down"
        )
    size = paper_size(robot)
    half = np.array([0.0, 0.2 * size.scale, 0.0])
    turned = pose.multiply(pose.quaternions([0.0, 0.0, 0.5 * np.pi]), size.orientation)
    pick = np.concatenate([size.centre - half, size.orientation])
    place = np.concatenate([size.centre + half, turned])
    return Scenario(
        trajectory=pick_and_place(
            pick, place, lift=0.1 * size.scale, law=MinimumJerk(1.5 * size.speed)
        ),
        description=(
            f"Pick and place over {0.4 * size.scale:g} m, "
            "with a quarter turn of the tool on the way"
        ),
    )


if __name__ == "__main__":
    run_as_script(__file__)
