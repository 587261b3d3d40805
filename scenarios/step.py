"""Experiment B of the paper: one large step of the target, from home by (-0.25, -0.75, 0.35) m."""

from simbridge import ForwardDynamicsParameters, Robot, Scenario, run_as_script
from simbridge.robot.kinematics import tool_path
from simbridge.trajectory import paper_size, step


def scenario(robot: Robot) -> Scenario:
    home = tool_path(robot, robot.home[None])[0]
    size = paper_size(robot)
    offset = (-0.25 * size.scale, -0.75 * size.scale, 0.35 * size.scale * size.up)
    return Scenario(
        trajectory=step(home, offset=offset, at=0.5, duration=4.0),
        description=f"A step of the target by ({offset[0]:g}, {offset[1]:g}, {offset[2]:g}) m",
        hold="zero-order",
        on_limits="limit",
        # One iteration a period shows the convergence of the solver.
        solver=ForwardDynamicsParameters(
            dt=1.0, iterations=1, kp=(1.0,), error_clamp=(float("inf"), float("inf"))
        ),
    )


if __name__ == "__main__":
    run_as_script(__file__)
