"""PyBullet as a backend: rigid-body dynamics under gravity, with torque-controlled joints.

The simulated controller makes joint targets of the commands by UR's servo law (`simbridge.servo`), and its joints
follow the targets half a millisecond later, as those of real e-Series arms do. With the ideal servo instead, a computed
torque with a critically damped feedback follows the commands themselves.

Torques come from the arm's nominal model and saturate at the robot's limits. Whatever the nominal model lacks (an
unmodelled payload) remains as error. Physics runs at 1 kHz in simulated time, without friction, elasticity or contact:
the plan check has ruled out contact, and UR publishes data on neither of the other two.
"""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
import time
from collections.abc import Generator, Iterable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pinocchio as pin

from simbridge.backends.backend import ArmState, Ask, Backend, Capabilities, Facts
from simbridge.errors import InvalidParameter, NoDisplay, optional_package
from simbridge.planning.approach import plan_approach
from simbridge.planning.guard import Guard
from simbridge.robot.arm_drawing import draw_arm
from simbridge.robot.parts import Mesh
from simbridge.robot.pose import Array
from simbridge.robot.robot import Robot
from simbridge.servo.feedforward import BRAKING
from simbridge.servo.inverse import InverseServoj
from simbridge.servo.law import LOOKAHEAD
from simbridge.servo.plant import controller_cycle
from simbridge.servo.simulated_joints import SimulatedJoints

if TYPE_CHECKING:  # loads the solvers
    from simbridge.planning.options import Options

PHYSICS_STEP = 0.001  # s
# Bandwidth of the feedback: of the ideal servo, and of joints that follow the servo law's targets.
IDEAL_BANDWIDTH = 12.0  # Hz
JOINT_BANDWIDTH = 80.0  # Hz


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


def _loaded(robot: Robot, mass: float) -> Robot:
    """The arm with `mass` kg at the TCP in addition to its payload."""
    if not (np.isfinite(mass) and mass >= 0.0):
        raise InvalidParameter("unmodelled payload", mass, "a mass in kg, not negative")
    if mass == 0.0:
        return robot
    last = robot.links[-1]
    at_tcp = pin.Inertia(mass, (robot.tool0 * robot.tcp).translation, np.zeros((3, 3)))
    return replace(robot, links=(*robot.links[:-1], replace(last, inertia=last.inertia + at_tcp)))


def _without_meshes(robot: Robot) -> Robot:
    """The arm without its meshes."""
    return replace(
        robot, base_meshes=(), links=tuple(replace(link, meshes=()) for link in robot.links)
    )


def _with_mesh_files(robot: Robot, directory: Path) -> Robot:
    """The arm with its meshes as they are drawn, each written to an OBJ file in a directory."""
    meshes: list[list[Mesh]] = [[] for _ in range(robot.n + 1)]
    for number, drawn in enumerate(draw_arm(robot).meshes):
        file = directory / f"mesh{number}.obj"
        lines = [f"v {x} {y} {z}" for x, y, z in drawn.vertices.tolist()]
        lines += [f"f {a} {b} {c}" for a, b, c in (drawn.triangles + 1).tolist()]
        file.write_text("\n".join([*lines, ""]))
        frame = robot.links[drawn.body - 1].placement if drawn.body else pin.SE3.Identity()
        meshes[drawn.body].append(Mesh(file, (1.0, 1.0, 1.0), frame.inverse(), color=drawn.color))
    links = [
        replace(link, meshes=tuple(own)) for link, own in zip(robot.links, meshes[1:], strict=True)
    ]
    return replace(robot, base_meshes=tuple(meshes[0]), links=tuple(links))


class PyBulletBackend(Backend):
    """A simulated arm, at home when it is entered.

    The servo's model is the robot's nominal one, including `robot.payload`. With feedforward, `stream` is given the
    motion that the arm is to make, and inverts the servo law.
    """

    capabilities = Capabilities(simulated_time=True, effort_unit="N m")
    approach_joint_speed = 1.0
    approach_tool_speed = 1.0

    def __init__(
        self, robot: Robot, options: Options, *, plan_facts: Facts = (), ask: Ask | None = None
    ) -> None:
        super().__init__(robot, options, plan_facts=plan_facts, ask=ask)
        plant = options.plant_model if options.servo == "servoj" else None
        self._steps = round(self.period / PHYSICS_STEP)
        if self._steps < 1 or abs(self._steps * PHYSICS_STEP - self.period) > 1e-9:
            raise InvalidParameter(
                "period", f"{self.period} s", "a multiple of the physics step of 1 ms"
            )
        if options.gui and sys.platform == "linux" and not os.environ.get("DISPLAY"):
            # PyBullet itself would terminate the process.
            raise NoDisplay("PyBullet's window (--gui)")
        self._real = _loaded(robot, options.unmodelled_payload)
        self._model, self._data = robot.model, robot.model.createData()
        bandwidth = 2.0 * np.pi * (IDEAL_BANDWIDTH if plant is None else JOINT_BANDWIDTH)
        self._stiffness, self._damping = bandwidth**2, 2.0 * bandwidth
        cycle = controller_cycle(robot.period, self.period)
        self._law = (
            None
            if plant is None
            else SimulatedJoints(plant, robot.home, self.period, cycle, PHYSICS_STEP)
        )
        self._inverse = None if plant is None else InverseServoj(plant.law(cycle), robot.home)
        self._feedforward = options.feedforward == "on"
        self._guard = Guard(
            robot, self.period, lookahead=LOOKAHEAD if plant is None else plant.lookahead
        )
        self._bullet: Any = None
        self._path: Array = np.empty((0, robot.n))

    def __enter__(self) -> PyBulletBackend:
        self._bullet = import_pybullet()
        self._client = self._bullet.connect(
            self._bullet.GUI if self.options.gui else self._bullet.DIRECT
        )
        self._joints = list(range(self.robot.n))
        self._body = self._load()
        self._sequence = self._count = 0
        self._effort = np.zeros(self.robot.n)
        self.place(self.robot.home)
        self._epoch = time.monotonic()
        return self

    def place(self, q: Array) -> None:
        """Put the arm, at rest, where its joints are at q (n,), rad, without a motion."""
        self._command = self._sent = np.array(q, dtype=float)
        for joint, position in enumerate(self._command):
            self._bullet.resetJointState(self._body, joint, position, physicsClientId=self._client)
        self._q, self._qd = self._measured()
        self._rest(self._command)
        self._guard.reset(self._q)

    def __exit__(self, *_exception: object) -> None:
        with contextlib.suppress(self._bullet.error):
            self._bullet.disconnect(physicsClientId=self._client)

    def _load(self) -> int:
        b, client = self._bullet, self._client
        b.setGravity(*self.robot.gravity, physicsClientId=client)
        b.setPhysicsEngineParameter(
            fixedTimeStep=PHYSICS_STEP,
            numSubSteps=0,
            deterministicOverlappingPairs=1,
            physicsClientId=client,
        )
        with tempfile.TemporaryDirectory() as directory:
            path = Path(directory, "robot.urdf")
            # Meshes are only drawn, and take a while to load.
            shown = (
                _with_mesh_files(self._real, path.parent)
                if self.options.gui
                else _without_meshes(self._real)
            )
            path.write_text(shown.urdf, encoding="utf-8")
            # Without this flag PyBullet derives inertias from the shapes.
            flags = b.URDF_USE_INERTIA_FROM_FILE
            body = b.loadURDF(str(path), useFixedBase=True, flags=flags, physicsClientId=client)
        undamped = dict.fromkeys(("linearDamping", "angularDamping", "jointDamping"), 0.0)
        for link in range(-1, b.getNumJoints(body, physicsClientId=client)):
            b.changeDynamics(body, link, **undamped, physicsClientId=client)
        # By default, PyBullet brakes every joint with a velocity motor: switch it off.
        idle = [0.0] * self.robot.n
        b.setJointMotorControlArray(
            body, self._joints, b.VELOCITY_CONTROL, forces=idle, physicsClientId=client
        )
        return body

    def _measured(self) -> tuple[Array, Array]:
        states = self._bullet.getJointStates(self._body, self._joints, physicsClientId=self._client)
        return np.array([s[0] for s in states]), np.array([s[1] for s in states])

    def _advance(self, command: Array) -> None:
        """One control period: from the last command to this one."""
        b = self._bullet
        limit = self.robot.max_effort
        largest = np.zeros(self.robot.n)
        for wanted, velocity, acceleration in zip(*self._wanted(command), strict=True):
            pull = (
                acceleration
                + self._stiffness * (wanted - self._q)
                + self._damping * (velocity - self._qd)
            )
            torque = pin.rnea(self._model, self._data, self._q, self._qd, pull)
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
            self._q, self._qd = self._measured()
        # The largest of the period's physics steps, so that a saturation between two samples is recorded.
        self._effort = largest
        self._command = command.copy()
        self._count += 1
        if self.options.realtime or self.options.gui:
            time.sleep(max(0.0, self._epoch + self._count * self.period - time.monotonic()))

    def _wanted(self, command: Array) -> tuple[Array, Array, Array]:
        """Where the joints should be at the begin of each physics step, with velocity and acceleration, each (S, n)."""
        if self._law is None:
            # Interpolated at the instant of the measurement, so that a steady motion is tracked without lead or lag.
            shares = np.arange(self._steps)[:, np.newaxis] / self._steps
            way = command - self._command
            still = np.zeros((self._steps, self.robot.n))
            return self._command + shares * way, still + way / self.period, still
        path = np.concatenate([self._path[-2:], self._law.advance(command)])
        self._path = path
        velocity = (path[1:] - path[:-1]) / PHYSICS_STEP
        # What brings the joints, integrated as PyBullet does, from one point of the path to the next.
        return path[1:-1], velocity[:-1], (velocity[1:] - velocity[:-1]) / PHYSICS_STEP

    def read(self) -> ArmState:
        return self._state(0.0)

    def _state(self, plan_time: float) -> ArmState:
        return ArmState(
            sequence=self._sequence,
            host_monotonic=time.monotonic(),
            timestamp=self._count * self.period,
            plan_time=plan_time,
            q=self._q,
            qd=self._qd,
            effort=self._effort,
            controller_target=self._command if self._law is None else self._law.target,
            command=self._sent,
            controller_target_velocity=None if self._law is None else self._law.motion.qd,
            controller_target_acceleration=None if self._law is None else self._law.motion.qdd,
        )

    def move_to(self, q: Array) -> None:
        path = plan_approach(
            self.robot,
            self._q,
            np.asarray(q, dtype=float),
            self.period,
            max_joint_speed=self.approach_joint_speed,
            max_tool_speed=self.approach_tool_speed,
            collision_scene=self.options.collision_scene,
        )
        self._guard.expect(self._q)
        for setpoint in path:
            self._sent = self._guard.check(setpoint, self._q)
            self._advance(self._sent)
        self._settle(path[-1])

    def _settle(self, q: Array) -> None:
        """Wait until the arm is at rest, at most one simulated second."""
        for _ in range(int(1.0 / self.period)):
            self._advance(q)
            if np.abs(self._qd).max() < 1e-6:
                return

    def stream(self, setpoints: Iterable[Array]) -> Generator[ArmState, None, None]:
        """See `Backend.stream`. Setpoints may also be made one by one, as a live session does."""
        if self._inverse is not None:
            self._inverse.reset(self._command)
        self._epoch = time.monotonic() - self._count * self.period
        try:
            for index, setpoint in enumerate(setpoints):
                self._sent = self._guard.check(setpoint, self._q)
                if self._feedforward and self._inverse is not None:
                    self._sent = self._guard.check_command(
                        self._inverse.command(self._sent), self._sent
                    )
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
        # From where the servo law has brought the targets, with or without feedforward.
        self._inverse.reset(self._law.motion.q, self._law.motion.qd)
        wanted = self._law.target
        for wanted in self._inverse.braking(BRAKING):
            self._advance(self._inverse.command(wanted))
        self._settle(wanted)

    def _rest(self, q: Array) -> None:
        """Wanted at rest at q (n,), rad."""
        self._path = np.stack([q, q])
        if self._law is not None and self._inverse is not None:
            self._inverse.reset(q)
            self._law.reset(q)

    def recover(self) -> None:
        self._rest(self._q)
        self._settle(self._q.copy())
        self._guard.reset(self._command)
