"""PyBullet as a backend: rigid-body dynamics under gravity, with torque-controlled joints.

The simulated controller makes joint targets of the commands by UR's servo law (`simbridge.servo`),
and its joints follow the targets half a millisecond later, as those of real e-Series arms do. With
the ideal servo instead, a computed torque with a critically damped feedback follows the commands
themselves.

Torques come from the arm's nominal model and saturate at the robot's limits. Whatever the nominal
model lacks (an unmodelled payload) remains as error. Physics runs at 1 kHz in simulated time,
without friction, elasticity or contact: the plan check has ruled out contact, and UR publishes data
on neither of the other two.
"""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
import time
from collections.abc import Generator, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pinocchio as pin

from simbridge.backends.backend import ArmState, Ask, Backend, Capabilities, Facts
from simbridge.backends.pybullet_model import (
    add_tool_mass,
    make_loadable,
    remove_meshes,
    write_meshes,
)
from simbridge.errors import InvalidParameter, NoDisplay, optional_package
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


def import_pybullet() -> Any:
    """Import pybullet without the banner that it prints from C.

    Raises:
        MissingPackage: It is not installed.
    """
    sys.stderr.flush()
    saved = os.dup(2)
    try:
        with open(os.devnull, "wb") as null:
            os.dup2(null.fileno(), 2)
        return optional_package("pybullet", "pybullet", "The simulation")
    finally:
        os.dup2(saved, 2)
        os.close(saved)


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


class PyBulletBackend(Backend):
    """A simulated arm, at home when it is entered.

    The servo's model is the robot's nominal one, including `robot.payload`. With feedforward,
    `stream` is given the motion that the arm is to make, and inverts the servo law.

    Raises:
        InvalidParameter: The period is not a multiple of the physics step, or the payload is not a
            mass.
        NoDisplay: There is no display for the window.
    """

    capabilities = Capabilities(simulated_time=True, effort_unit="N m")
    approach_joint_speed = 1.0
    approach_tool_speed = 1.0

    def __init__(
        self, robot: Robot, options: Options, *, plan_facts: Facts = (), ask: Ask | None = None
    ) -> None:
        super().__init__(robot, options, plan_facts=plan_facts, ask=ask)
        self._settings = SimulationSettings.of(robot, options)
        plant = self._settings.plant

        # Number of physics steps in a period.
        self._steps = round(self.period / PHYSICS_STEP)
        rounding = abs(self._steps * PHYSICS_STEP - self.period)
        if self._steps < 1 or rounding > STEP_ROUNDING:
            raise InvalidParameter(
                "period", f"{self.period} s", "a multiple of the physics step of 1 ms"
            )

        # Without a display PyBullet itself would terminate the process.
        if self._settings.gui and sys.platform == "linux" and not os.environ.get("DISPLAY"):
            raise NoDisplay("PyBullet's window (--gui)")

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
            self._law = SimulatedJoints(plant, robot.home, self.period, cycle, PHYSICS_STEP)
            self._inverse = InverseServoj(plant.law(cycle), robot.home)
        lookahead = LOOKAHEAD if plant is None else plant.lookahead
        self._guard = Guard(robot, self.period, lookahead=lookahead)

        # The module pybullet; None before the backend is entered.
        self._bullet: Any = None
        # PyBullet's number of its simulation.
        self._client: int
        # PyBullet's number of the arm in it.
        self._body: int
        # PyBullet's numbers of the arm's joints.
        self._joints: list[int]

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
        # The joint targets of the last period (., n), rad, a physics step apart; the last two
        # count.
        self._path: Array = np.empty((0, robot.n))

    def __enter__(self) -> PyBulletBackend:
        self._bullet = import_pybullet()
        mode = self._bullet.GUI if self._settings.gui else self._bullet.DIRECT
        self._client = self._bullet.connect(mode)
        self._joints = list(range(self.robot.n))
        self._body = self._load()

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
        for joint, position in enumerate(self._command):
            self._bullet.resetJointState(self._body, joint, position, physicsClientId=self._client)

        self._q, self._qd = self._measure()
        self._rest(self._command)
        self._guard.reset(self._q)

    def __exit__(self, *_exception: object) -> None:
        with contextlib.suppress(self._bullet.error):
            self._bullet.disconnect(physicsClientId=self._client)

    def _load(self) -> int:
        """Load the arm into PyBullet and return its number there."""
        b = self._bullet
        client = self._client
        b.setGravity(*self.robot.gravity, physicsClientId=client)
        # Pairs in a fixed order: the same run gives the same numbers.
        b.setPhysicsEngineParameter(
            fixedTimeStep=PHYSICS_STEP,
            numSubSteps=0,
            deterministicOverlappingPairs=1,
            physicsClientId=client,
        )

        with tempfile.TemporaryDirectory() as directory:
            path = Path(directory, "robot.urdf")
            # Meshes are only drawn, and take a while to load.
            if self._settings.gui:
                arm = write_meshes(self._real, path.parent)
            else:
                arm = remove_meshes(self._real)
            path.write_text(make_loadable(arm).urdf, encoding="utf-8")
            # Without this flag PyBullet derives inertias from the shapes.
            flags = b.URDF_USE_INERTIA_FROM_FILE
            body: int = b.loadURDF(
                str(path), useFixedBase=True, flags=flags, physicsClientId=client
            )

        # By default, PyBullet damps every link, of which it counts the base as number -1.
        undamped = dict.fromkeys(("linearDamping", "angularDamping", "jointDamping"), 0.0)
        for link in range(-1, b.getNumJoints(body, physicsClientId=client)):
            b.changeDynamics(body, link, **undamped, physicsClientId=client)

        # Also a tensor that no body has is simulated as it is.
        for joint, inertia in zip(self._joints, self._real.link_inertias, strict=True):
            # Along the principal axes, as in the URDF.
            moments = np.linalg.eigh(inertia.inertia)[0].tolist()
            b.changeDynamics(body, joint, localInertiaDiagonal=moments, physicsClientId=client)

        # By default, PyBullet brakes every joint with a velocity motor: switch it off.
        no_force = [0.0] * self.robot.n
        b.setJointMotorControlArray(
            body, self._joints, b.VELOCITY_CONTROL, forces=no_force, physicsClientId=client
        )
        return body

    def _measure(self) -> tuple[Array, Array]:
        """Return the joints' positions (n,), rad, and velocities (n,), rad/s."""
        states = self._bullet.getJointStates(self._body, self._joints, physicsClientId=self._client)
        return np.array([s[0] for s in states]), np.array([s[1] for s in states])

    def _advance(self, command: Array) -> None:
        """Simulate one control period, from the last command to this one (n,), rad."""
        b = self._bullet
        limit = self.robot.max_effort
        largest = np.zeros(self.robot.n)
        reference = self._reference_motion(command)
        for q, qd, qdd in zip(reference.q, reference.qd, reference.qdd, strict=True):
            # Computed torque: that of the nominal model, for the acceleration of the reference with
            # the feedback on it.
            acceleration = qdd + self._stiffness * (q - self._q) + self._damping * (qd - self._qd)
            torque = pin.rnea(self._model, self._data, self._q, self._qd, acceleration)
            effort = np.minimum(np.maximum(torque, -limit), limit)
            largest = np.where(np.abs(effort) > np.abs(largest), effort, largest)

            b.setJointMotorControlArray(
                self._body,
                self._joints,
                b.TORQUE_CONTROL,
                forces=effort,
                physicsClientId=self._client,
            )
            b.stepSimulation(physicsClientId=self._client)
            self._q, self._qd = self._measure()

        # The largest of the period's physics steps, so that a saturation between two samples is
        # recorded.
        self._effort = largest
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
            fractions = np.arange(self._steps)[:, np.newaxis] / self._steps
            change = command - self._command
            zeros = np.zeros((self._steps, self.robot.n))
            return JointMotion(
                q=self._command + fractions * change, qd=zeros + change / self.period, qdd=zeros
            )

        # The servo law's targets (S + 2, n): one before the period, one at its start, and one at
        # the end of each step.
        path = np.concatenate([self._path[-2:], self._law.advance(command)])
        self._path = path
        at_starts = path[1:-1]

        # PyBullet moves a joint by its velocity at the end of a step. So a target is reached from
        # the one before by the mean velocity between them (S + 1, n), and these accelerations
        # change the velocity before a step to that of the step.
        velocity = (path[1:] - path[:-1]) / PHYSICS_STEP
        before_steps = velocity[:-1]
        acceleration = (velocity[1:] - before_steps) / PHYSICS_STEP
        return JointMotion(q=at_starts, qd=before_steps, qdd=acceleration)

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
