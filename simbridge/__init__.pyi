# The public names of simbridge and the modules that define them. `__init__.py` reads this list, and so do type
# checkers: it is the only one.
from simbridge.browser.studio import Studio as Studio
from simbridge.browser.studio import studio as studio
from simbridge.cli.command_line import run_as_script as run_as_script
from simbridge.errors import SimbridgeError as SimbridgeError
from simbridge.ik.callable_solver import CallableSolver as CallableSolver
from simbridge.ik.closed_form import ClosedForm as ClosedForm
from simbridge.ik.constrained import Constrained as Constrained
from simbridge.ik.constrained import Rows as Rows
from simbridge.ik.constrained import SoftRows as SoftRows
from simbridge.ik.forward_dynamics import ForwardDynamics as ForwardDynamics
from simbridge.ik.forward_dynamics import JacobianTranspose as JacobianTranspose
from simbridge.ik.forward_dynamics import Twin as Twin
from simbridge.ik.least_squares import DampedLeastSquares as DampedLeastSquares
from simbridge.ik.least_squares import FeedbackIK as FeedbackIK
from simbridge.ik.least_squares import Pseudoinverse as Pseudoinverse
from simbridge.ik.least_squares import SelectivelyDamped as SelectivelyDamped
from simbridge.ik.settings import ConstrainedParameters as ConstrainedParameters
from simbridge.ik.settings import DampedLeastSquaresParameters as DampedLeastSquaresParameters
from simbridge.ik.settings import FeedbackParameters as FeedbackParameters
from simbridge.ik.settings import ForwardDynamicsParameters as ForwardDynamicsParameters
from simbridge.ik.settings import JacobianTransposeParameters as JacobianTransposeParameters
from simbridge.ik.settings import PseudoinverseParameters as PseudoinverseParameters
from simbridge.ik.settings import SelectivelyDampedParameters as SelectivelyDampedParameters
from simbridge.ik.solver import Solution as Solution
from simbridge.ik.solver import Solver as Solver
from simbridge.planning.options import Options as Options
from simbridge.planning.scenario import Scenario as Scenario
from simbridge.planning.scenario import load_scenario as load_scenario
from simbridge.robot.cell import Cell as Cell
from simbridge.robot.cell import load_cell as load_cell
from simbridge.robot.load import load_robot as load_robot
from simbridge.robot.robot import Robot as Robot
from simbridge.running.live import LiveArm as LiveArm
from simbridge.running.live import connect as connect
from simbridge.running.runner import Run as Run
from simbridge.running.runner import run as run
from simbridge.sessions.options import LiveOptions as LiveOptions
from simbridge.sessions.session import LiveSession as LiveSession
from simbridge.sessions.setup import live as live
from simbridge.sweeps.sweep import Sweep as Sweep
from simbridge.sweeps.sweep import sweep as sweep
from simbridge.trajectory.files import read_trajectory as read_trajectory
from simbridge.trajectory.trajectory import Trajectory as Trajectory

__version__: str
