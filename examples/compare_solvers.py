"""Run one scenario with several solvers and print their errors side by side."""

import simbridge
from simbridge.trajectory import square

robot = simbridge.load_robot("ur10")
scenario = simbridge.Scenario(square(side=0.1, speed=0.2), name="small square")
solvers = {
    "forward dynamics, kp 5": simbridge.ForwardDynamics(robot, kp=5.0),
    "forward dynamics, kp 50": simbridge.ForwardDynamics(robot),
    "damped least squares": simbridge.DampedLeastSquares(robot),
    "the same, J by differences": simbridge.DampedLeastSquares(robot, jacobian="difference"),
    "closed form": simbridge.ClosedForm(robot),
}

print(f"{'':28} solver mm  tracking mm")
for name, solver in solvers.items():
    summary = simbridge.run(scenario, solver=solver).summary
    solver_mm, tracking_mm = (
        1e3 * summary[f"{part}_error"]["position_m"]["rms"] for part in ("solver", "tracking")
    )
    print(f"{name:28} {solver_mm:9.4f}  {tracking_mm:11.4f}")
