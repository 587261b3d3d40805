"""A simulated arm: UR's servo law, a torque controller, and a physics engine.

The simulated controller makes joint targets of the commands by UR's servo law (`simbridge.servo`),
and its joints follow the targets half a millisecond later, as those of real e-Series arms do. With
the ideal servo instead, a computed torque with a critically damped feedback follows the commands
themselves.

Torques come from the arm's nominal model and saturate at the robot's limits. Whatever the nominal
model lacks (an unmodelled payload) remains as error. The physics engine moves rigid bodies under
gravity by these torques, at 1 kHz in simulated time, without friction, elasticity, contact or stops
of the joints: the plan check has ruled out contact and stops, and UR publishes data on neither of
the other two.

The engine is all that a subclass adds: `pybullet.py` and `mujoco.py`.
"""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Generator, Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import pinocchio as pin

from simbridge.backends import check_engine
from simbridge.backends.backend import ArmState, Ask, Backend, Capabilities, Facts
from simbridge.errors import InvalidParameter
from simbridge.planning.approach import plan_approach
from simbridge.planning.guard import Guard
from simbridge.robot.pose import Array
from simbridge.robot.robot import Robot
from simbridge.servo.feedforward import BRAKING
from simbridge.servo.inverse import InverseServoj
from simbridge.servo.law import LOOKAHEAD, JointMotion
from simbridge.servo.plant import Plant, controller_cycle
from simbridge.servo.simulated_joints import SimulatedJoints

# It loads the solvers.
if TYPE_CHECKING:
    from simbridge.planning.options import Options

# Step of the physics, s.
PHYSICS_STEP = 0.001
# A period counts as a multiple of the physics step within this, s.
STEP_ROUNDING = 1e-9
# Bandwidth of the ideal servo's feedback, Hz.
IDEAL_BANDWIDTH = 12.0
# Bandwidth of the feedback of joints that follow the servo law, Hz.
JOINT_BANDWIDTH = 80.0
# A joint slower than this has settled, rad/s.
SETTLED_SPEED = 1e-6
# How long the joints may take to settle, s of simulated time.
MAX_SETTLING_S = 1.0


def add_tool_mass(robot: Robot, mass: float) -> Robot:
    """Return the arm with a mass at the TCP, kg, in addition to its payload.

    Raises:
        InvalidParameter: The mass is negative or not finite.
    """
    if not (np.isfinite(mass) and mass >= 0.0):
        raise InvalidParameter("unmodelled payload", mass, "a non-negative mass in kg")
    if mass == 0.0:
        return robot

    last = robot.links[-1]
    tcp_in_last_link = (robot.tool0 * robot.tcp).translation
    inertia = last.inertia + pin.Inertia(mass, tcp_in_last_link, np.zeros((3, 3)))
    return replace(robot, links=(*robot.links[:-1], replace(last, inertia=inertia)))


@dataclass(frozen=True)
class SimulationSettings:
    """Holds what the simulation takes of the options of a run.

    Attributes:
        plant: The arm behind servoj; None for the ideal servo.
        feedforward: Whether a stream is the motion that the arm is to make, for which the servo law
            is inverted.
        unmodelled_payload: Mass at the TCP that the nominal model lacks, kg.
        gui: Whether the simulator's window is open.
        is_paced: Whether simulated time keeps to the wall clock.
    """

    plant: Plant | None
    feedforward: bool
    unmodelled_payload: float
    gui: bool
    is_paced: bool

    @staticmethod
    def of(robot: Robot, options: Options) -> SimulationSettings:
        """Return the settings in the options of a run of an arm."""
        is_servoj = options.servo_of(robot) == "servoj"
        return SimulationSettings(
            plant=options.plant_model if is_servoj else None,
            feedforward=options.feedforward == "on",
            unmodelled_payload=options.unmodelled_payload,
            gui=options.gui,
            is_paced=options.realtime or options.gui,
        )


class SimulationBackend(Backend):
    """A simulated arm, at home when it is entered.

    The servo's model is the robot's nominal one, including `robot.payload`. With feedforward,
    `stream` is given the motion that the arm is to make, and inverts the servo law.

    A subclass names its physics engine, and gives the five methods that move it.

    Attributes:
        engine: The engine's name in `ENGINES`.
        physics_step: Step of the physics, s.

    Raises:
        MissingEngine: The engine is not installed.
        InvalidParameter: The period is not a multiple of the physics step, or the payload is not a
            mass.
    """

    capabilities = Capabilities(simulated_time=True, effort_unit="N m")
    approach_joint_speed = 1.0
    approach_tool_speed = 1.0

    # Each engine gives its name.
    engine: ClassVar[str]
    physics_step: ClassVar[float] = PHYSICS_STEP

    def __init__(
        self, robot: Robot, options: Options, *, plan_facts: Facts = (), ask: Ask | None = None
    ) -> None:
        super().__init__(robot, options, plan_facts=plan_facts, ask=ask)
        check_engine(self.engine)
        self._settings = SimulationSettings.of(robot, options)
        plant = self._settings.plant

        # Number of physics steps in a period.
        self._steps = round(self.period / self.physics_step)
        rounding = abs(self._steps * self.physics_step - self.period)
        if self._steps < 1 or rounding > STEP_ROUNDING:
            step = f"a multiple of the physics step of {1e3 * self.physics_step:g} ms"
            raise InvalidParameter("period", f"{self.period} s", step)

        # The arm that is simulated, and the nominal model of which its controller knows.
        self._real = add_tool_mass(robot, self._settings.unmodelled_payload)
        self._model = robot.model
        self._data = robot.model.createData()

        # The feedback is critically damped: gain of the position error, 1/s^2.
        bandwidth = 2.0 * np.pi * (IDEAL_BANDWIDTH if plant is None else JOINT_BANDWIDTH)
        self._stiffness = bandwidth**2
        # Gain of the velocity error, 1/s.
        self._damping = 2.0 * bandwidth

        # The servo law that makes joint targets of the commands; None with the ideal servo, whose
        # joints follow the commands themselves.
        cycle = controller_cycle(robot.period, self.period)
        self._law: SimulatedJoints | None = None
        # The inverse of the servo law; None with the ideal servo.
        self._inverse: InverseServoj | None = None
        if plant is not None:
            plant = plant.with_series(robot.series)
            self._law = SimulatedJoints(
                plant, robot.home, period=self.period, cycle=cycle, step=self.physics_step
            )
            self._inverse = InverseServoj(plant.law(cycle), robot.home)
        lookahead = LOOKAHEAD if plant is None else plant.lookahead
        self._guard = Guard(robot, self.period, lookahead=lookahead)

        # Index of the last setpoint of a stream.
        self._sequence: int
        # Number of periods that were simulated.
        self._count: int
        # When period 0 began, s (host clock).
        self._epoch: float

        # The last command (n,), rad.
        self._command: Array
        # The last command of a motion (n,), rad: those that brake the arm after it do not count.
        self._sent: Array
        # Measured joint positions (n,), rad.
        self._q: Array
        # Measured joint velocities (n,), rad/s.
        self._qd: Array
        # The torques of largest magnitude in the last period (n,), N m.
        self._effort: Array
        # The joint targets of the last period (., n), rad, a physics step apart. Only the last two
        # are used.
        self._path: Array = np.empty((0, robot.n))

    # What a physics engine does.

    @abstractmethod
    def _open_engine(self) -> None:
        """Load the arm, `self._real`, without damping, motors, contacts or stops."""

    @abstractmethod
    def _close_engine(self) -> None:
        """Release the engine; it may already be closed."""

    @abstractmethod
    def _place_joints(self, q: Array) -> None:
        """Put the joints, at rest, at q (n,), rad."""

    @abstractmethod
    def _measure(self) -> tuple[Array, Array]:
        """Return the joints' positions (n,), rad, and velocities (n,), rad/s."""

    @abstractmethod
    def _step_engine(self, effort: Array) -> None:
        """Move the arm for one physics step by semi-implicit Euler.

        Args:
            effort: Torques of the joints (n,), N m.
        """

    # What a simulated controller does.

    def __enter__(self) -> SimulationBackend:
        self._open_engine()
        self._sequence = 0
        self._count = 0
        self._effort = np.zeros(self.robot.n)
        self.place(self.robot.home)
        self._epoch = time.monotonic()
        return self

    def place(self, q: Array) -> None:
        """Put the arm, at rest, where its joints are at q (n,), rad, without a motion."""
        self._command = np.array(q, dtype=float)
        self._sent = self._command
        self._place_joints(self._command)

        self._q, self._qd = self._measure()
        self._rest(self._command)
        self._guard.reset(self._q)

    def __exit__(self, *_exception: object) -> None:
        self._close_engine()

    def _advance(self, command: Array) -> None:
        """Simulate one control period, from the last command to this one (n,), rad."""
        limit = self.robot.max_effort
        largest_effort = np.zeros(self.robot.n)
        reference = self._reference_motion(command)
        for q, qd, qdd in zip(reference.q, reference.qd, reference.qdd, strict=True):
            # Computed torque: the torque that gives the nominal model the acceleration of the
            # reference plus the feedback.
            acceleration = qdd + self._stiffness * (q - self._q) + self._damping * (qd - self._qd)
            torque = pin.rnea(self._model, self._data, self._q, self._qd, acceleration)
            effort = np.minimum(np.maximum(torque, -limit), limit)
            largest_effort = np.where(
                np.abs(effort) > np.abs(largest_effort), effort, largest_effort
            )

            self._step_engine(effort)
            self._q, self._qd = self._measure()

        # Record the largest effort of all physics steps, so that a saturation between two samples
        # is seen.
        self._effort = largest_effort
        self._command = command.copy()
        self._count += 1
        if self._settings.is_paced:
            time.sleep(max(0.0, self._epoch + self._count * self.period - time.monotonic()))

    def _reference_motion(self, command: Array) -> JointMotion:
        """Return where the joints should be at the start of each of a period's S physics steps.

        Args:
            command: The command of the period, joint positions (n,), rad.

        Returns:
            Positions (S, n), rad, velocities (S, n), rad/s, and accelerations (S, n), rad/s^2.
        """
        # The ideal servo: from the last command to this one in a straight line. It is interpolated
        # at the instant of the measurement, so that a steady motion is tracked without lead or lag.
        if self._law is None:
            shape = (self._steps, self.robot.n)
            fractions = np.arange(self._steps)[:, np.newaxis] / self._steps
            change = command - self._command
            return JointMotion(
                q=self._command + fractions * change,
                qd=np.broadcast_to(change / self.period, shape),
                qdd=np.zeros(shape),
            )

        # The servo law's targets (S + 2, n): the last two of the period before, which are at its
        # last step's start and end; and one at the end of each step of this period.
        path = np.concatenate([self._path[-2:], self._law.advance(command)])
        self._path = path
        at_starts = path[1:-1]

        # An engine first changes a joint's velocity and then moves the joint by the new one. So a
        # step reaches its target with the mean velocity from the target before it, and needs the
        # acceleration from the mean velocity of the step before it.
        mean_velocity = (path[1:] - path[:-1]) / self.physics_step
        velocity_before = mean_velocity[:-1]
        acceleration = (mean_velocity[1:] - velocity_before) / self.physics_step
        return JointMotion(q=at_starts, qd=velocity_before, qdd=acceleration)

    def read(self) -> ArmState:
        return self._state(0.0)

    def _state(self, plan_time: float) -> ArmState:
        """Return the present state, at a time of the plan, s."""
        law = self._law
        return ArmState(
            sequence=self._sequence,
            host_monotonic=time.monotonic(),
            timestamp=self._count * self.period,
            plan_time=plan_time,
            q=self._q,
            qd=self._qd,
            effort=self._effort,
            controller_target=self._command if law is None else law.target,
            command=self._sent,
            controller_target_velocity=None if law is None else law.motion.qd,
            controller_target_acceleration=None if law is None else law.motion.qdd,
        )

    def move_to(self, q: Array) -> None:
        path = plan_approach(
            self.robot,
            self._q,
            np.asarray(q, dtype=float),
            self.period,
            max_joint_speed=self.approach_joint_speed,
            max_tool_speed=self.approach_tool_speed,
            collision_scene=self.collision_scene,
        )
        # The guard compares the first setpoint with where the arm is, not with the last one. After
        # a violation it stays latched, and refuses all of them.
        self._guard.expect(self._q)
        for setpoint in path:
            self._sent = self._guard.check(setpoint, self._q)
            self._advance(self._sent)
        self._settle(path[-1])

    def _settle(self, q: Array) -> None:
        """Hold a command (n,), rad, until the arm is at rest, for `MAX_SETTLING_S` at most."""
        for _ in range(int(MAX_SETTLING_S / self.period)):
            self._advance(q)
            if np.abs(self._qd).max() < SETTLED_SPEED:
                return

    def stream(self, setpoints: Iterable[Array]) -> Generator[ArmState, None, None]:
        """See `Backend.stream`. Setpoints may also be made one by one, as a live session does."""
        if self._inverse is not None:
            self._inverse.reset(self._command)
        # Keep to the wall clock from now on, whatever time was spent before.
        self._epoch = time.monotonic() - self._count * self.period

        try:
            for index, setpoint in enumerate(setpoints):
                self._sent = self._guard.check(setpoint, self._q)
                if self._settings.feedforward and self._inverse is not None:
                    command = self._inverse.command(self._sent)
                    self._sent = self._guard.check_command(command, self._sent)
                self._advance(self._sent)
                self._sequence = index
                yield self._state(index * self.period)
        finally:
            self.stop()

    def stop(self) -> None:
        """Brake the arm, all joints in proportion, and wait until it is at rest."""
        self._guard.scale_speed(0.0)
        if self._law is None or self._inverse is None:
            self._settle(self._command)
            return

        # Brake from where the servo law has brought the targets, with or without feedforward.
        self._inverse.reset(self._law.motion.q, self._law.motion.qd)
        target = self._law.target
        for target in self._inverse.braking(BRAKING):
            self._advance(self._inverse.command(target))
        self._settle(target)

    def _rest(self, q: Array) -> None:
        """Let the joints' targets rest at q (n,), rad."""
        self._path = np.stack([q, q])
        if self._law is not None and self._inverse is not None:
            self._inverse.reset(q)
            self._law.reset(q)

    def recover(self) -> None:
        self._rest(self._q)
        self._settle(self._q.copy())
        self._guard.reset(self._command)
