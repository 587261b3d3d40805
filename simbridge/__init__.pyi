# The public names of simbridge and the modules that define them, for lazy_loader and for type
# checkers: the only list. lazy_loader reads relative imports alone.
from .browser.studio import Studio as Studio
from .browser.studio import studio as studio
from .cli.command_line import run_as_script as run_as_script
from .errors import SimbridgeError as SimbridgeError
from .evaluation.evaluation import Evaluation as Evaluation
from .ik.callable_solver import CallableSolver as CallableSolver
from .ik.closed_form import ClosedForm as ClosedForm
from .ik.constrained import Constrained as Constrained
from .ik.constrained import ConstrainedParameters as ConstrainedParameters
from .ik.damped_least_squares import DampedLeastSquares as DampedLeastSquares
from .ik.damped_least_squares import DampedLeastSquaresParameters as DampedLeastSquaresParameters
from .ik.feedback import FeedbackIK as FeedbackIK
from .ik.feedback import FeedbackParameters as FeedbackParameters
from .ik.forward_dynamics import ForwardDynamics as ForwardDynamics
from .ik.forward_dynamics import ForwardDynamicsParameters as ForwardDynamicsParameters
from .ik.jacobian_transpose import JacobianTranspose as JacobianTranspose
from .ik.jacobian_transpose import JacobianTransposeParameters as JacobianTransposeParameters
from .ik.pseudoinverse import Pseudoinverse as Pseudoinverse
from .ik.pseudoinverse import PseudoinverseParameters as PseudoinverseParameters
from .ik.rows import Rows as Rows
from .ik.rows import SoftRows as SoftRows
from .ik.selectively_damped import SelectivelyDamped as SelectivelyDamped
from .ik.selectively_damped import SelectivelyDampedParameters as SelectivelyDampedParameters
from .ik.solver import Solution as Solution
from .ik.solver import Solver as Solver
from .ik.twin import Twin as Twin
from .planning.options import Options as Options
from .planning.scenario import Scenario as Scenario
from .planning.scenario import load_scenario as load_scenario
from .robot.cell import Cell as Cell
from .robot.cell_file import load_cell as load_cell
from .robot.load import load_robot as load_robot
from .robot.robot import Robot as Robot
from .running.runner import Run as Run
from .running.runner import run as run
from .sessions.causes import LiveCause as LiveCause
from .sessions.options import LiveOptions as LiveOptions
from .sessions.session import LiveSession as LiveSession
from .sessions.session import LiveStatus as LiveStatus
from .sessions.setup import live as live
from .sweeps.sweep import Sweep as Sweep
from .sweeps.sweep import sweep as sweep
from .trajectory.files import read_trajectory as read_trajectory
from .trajectory.trajectory import Trajectory as Trajectory

__version__: str
