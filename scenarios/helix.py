"""A helix of 0.2 m diameter that rises by 0.05 m a turn (smaller on small arms), three turns, from rest to rest."""

from simbridge import Robot, Scenario, run_as_script
from simbridge.trajectory import MinimumJerk, paper_size, paths, trace


def scenario(robot: Robot) -> Scenario:
    size = paper_size(robot)
    rise = 0.05 * size.scale * size.up
    path = paths.helix(radius=0.1 * size.scale, centre=size.centre, pitch=rise, turns=3.0)
    return Scenario(
        trajectory=trace(
            path, MinimumJerk(size.speed), orientation=size.orientation, source="helix"
        ),
        description=f"A helix of {0.2 * size.scale:g} m diameter, {rise:g} m a turn, three turns",
    )


if __name__ == "__main__":
    run_as_script(__file__)
