"""simbridge: how well does an arm track a sampled motion, and who is to blame for the rest?

    import simbridge
    run = simbridge.run("square_tracking")
    print(run.summary["tracking_error"]["position_m"]["rms"])

Names are imported when they are first used, so that `import simbridge` costs next to nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from simbridge.cli.command_line import run_as_script
    from simbridge.errors import SimbridgeError
    from simbridge.ik.callable_solver import CallableSolver
    from simbridge.ik.closed_form import ClosedForm
    from simbridge.ik.constrained import Constrained
    from simbridge.ik.damped_least_squares import DampedLeastSquares
    from simbridge.ik.feedback import FeedbackIK
    from simbridge.ik.forward_dynamics import ForwardDynamics, Twin
    from simbridge.ik.jacobian_transpose import JacobianTranspose
    from simbridge.ik.pseudoinverse import Pseudoinverse
    from simbridge.ik.rows import Rows, SoftRows
    from simbridge.ik.selectively_damped import SelectivelyDamped
    from simbridge.ik.settings import (
        ConstrainedParameters,
        DampedLeastSquaresParameters,
        FeedbackParameters,
        ForwardDynamicsParameters,
        JacobianTransposeParameters,
        PseudoinverseParameters,
        SelectivelyDampedParameters,
    )
    from simbridge.ik.solver import Solution, Solver
    from simbridge.planning.options import Options
    from simbridge.planning.scenario import Scenario, load_scenario
    from simbridge.robot import Robot, load_robot
    from simbridge.robot.cell import Cell
    from simbridge.robot.cell_file import load_cell
    from simbridge.running.live import LiveArm, connect
    from simbridge.running.runner import Run, run
    from simbridge.trajectory import Trajectory, read_trajectory

_HOMES = {
    "CallableSolver": "ik.callable_solver",
    "Cell": "robot.cell",
    "ClosedForm": "ik.closed_form",
    "Constrained": "ik.constrained",
    "ConstrainedParameters": "ik.settings",
    "DampedLeastSquares": "ik.damped_least_squares",
    "DampedLeastSquaresParameters": "ik.settings",
    "FeedbackIK": "ik.feedback",
    "FeedbackParameters": "ik.settings",
    "ForwardDynamics": "ik.forward_dynamics",
    "ForwardDynamicsParameters": "ik.settings",
    "JacobianTranspose": "ik.jacobian_transpose",
    "JacobianTransposeParameters": "ik.settings",
    "LiveArm": "running.live",
    "Options": "planning.options",
    "Pseudoinverse": "ik.pseudoinverse",
    "PseudoinverseParameters": "ik.settings",
    "Robot": "robot",
    "Rows": "ik.rows",
    "Run": "running.runner",
    "Scenario": "planning.scenario",
    "SelectivelyDamped": "ik.selectively_damped",
    "SelectivelyDampedParameters": "ik.settings",
    "SimbridgeError": "errors",
    "SoftRows": "ik.rows",
    "Solution": "ik.solver",
    "Solver": "ik.solver",
    "Trajectory": "trajectory",
    "Twin": "ik.forward_dynamics",
    "connect": "running.live",
    "load_cell": "robot.cell_file",
    "load_robot": "robot",
    "load_scenario": "planning.scenario",
    "read_trajectory": "trajectory",
    "run": "running.runner",
    "run_as_script": "cli.command_line",
}

__all__ = [
    "CallableSolver",
    "Cell",
    "ClosedForm",
    "Constrained",
    "ConstrainedParameters",
    "DampedLeastSquares",
    "DampedLeastSquaresParameters",
    "FeedbackIK",
    "FeedbackParameters",
    "ForwardDynamics",
    "ForwardDynamicsParameters",
    "JacobianTranspose",
    "JacobianTransposeParameters",
    "LiveArm",
    "Options",
    "Pseudoinverse",
    "PseudoinverseParameters",
    "Robot",
    "Rows",
    "Run",
    "Scenario",
    "SelectivelyDamped",
    "SelectivelyDampedParameters",
    "SimbridgeError",
    "SoftRows",
    "Solution",
    "Solver",
    "Trajectory",
    "Twin",
    "__version__",
    "connect",
    "load_cell",
    "load_robot",
    "load_scenario",
    "read_trajectory",
    "run",
    "run_as_script",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'simbridge' has no attribute '{name}'")
    return getattr(importlib.import_module(f"simbridge.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return __all__
