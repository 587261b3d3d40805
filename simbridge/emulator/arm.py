"""The emulated arm: kinematics as a UR controller speaks of them, and motions: speeds, stops, servoj.

Poses are of the TCP in the pendant's base, as rotation vectors. The kinematics are pinocchio's: what the solvers of
`simbridge.ik` compile would take most of the emulator's start.

Each motion computes the joints' next target, tick by tick. Speeds and stops are ramps as URSim makes them: its
recordings are repeated to 1e-6 rad (`test_ursim_recordings.py`). Moves along a path are in `moves.py`.
"""

from __future__ import annotations

import copy
import math
from abc import ABC, abstractmethod
from collections.abc import Iterator

import numpy as np
import pinocchio as pin

from simbridge.errors import SimbridgeError
from simbridge.ik.targets import wrap_into_limits
from simbridge.robot.kinematics import restart_postures
from simbridge.robot.pose import Array
from simbridge.robot.robot import Robot
from simbridge.servo.joints import ServojJoints
from simbridge.servo.law import ServojLaw

# base_link is the pendant's base turned by half a turn about z.
_TURN = pin.SE3(np.diag([-1.0, -1.0, 1.0]), np.zeros(3))
# Inverse kinematics by damped least squares (Levenberg and Marquardt, damped by the error as Sugihara has it).
_TOLERANCE = 1e-9  # m and rad, together
_DAMPING, _DAMPING_BY_ERROR = 1e-9, 0.05
_LARGEST_STEP = 0.5  # rad
_ITERATIONS, _CHECKED = 60, 10  # at most; and after how many the squared error must have halved
_RESTARTS = 60
_UNIT = np.eye(6)


class Unreachable(SimbridgeError, ValueError):
    """No joint positions put the tool at its target."""


def pose_of(frame: pin.SE3) -> Array:
    """x y z rx ry rz (6,) of a frame."""
    return np.concatenate([frame.translation, pin.log3(frame.rotation)])


def frame_of(pose: Array) -> pin.SE3:
    """The frame of x y z rx ry rz (6,)."""
    return pin.SE3(pin.exp3(np.asarray(pose[3:], dtype=float)), np.asarray(pose[:3], dtype=float))


class Arm:
    """A robot with a TCP that programs may move; the robot's own is ignored."""

    def __init__(self, robot: Robot) -> None:
        self._robot = robot
        self._model = robot.model
        self._data = self._model.createData()
        self._flange = self._model.getFrameId("tool0")
        self.set_tcp(np.zeros(6))

    def set_tcp(self, pose: Array) -> None:
        """Put the TCP at x y z rx ry rz (6,) in the flange."""
        self.tcp = np.array(pose, dtype=float)
        self._tcp = frame_of(self.tcp)

    def snapshot(self) -> Arm:
        """The arm with the present TCP, whatever TCP this one gets later."""
        return copy.copy(self)

    def tool(self, q: Array) -> pin.SE3:
        """The TCP in the pendant's base at joint positions q (n,), rad."""
        pin.forwardKinematics(self._model, self._data, q)
        return _TURN * pin.updateFramePlacement(self._model, self._data, self._flange) * self._tcp

    def pose(self, q: Array) -> Array:
        """The same as x y z rx ry rz (6,)."""
        return pose_of(self.tool(q))

    def jacobian(self, q: Array) -> Array:
        """Of the TCP in the pendant's base (6, n), translation first."""
        flange = self._flange_jacobian(q)
        turned = (_TURN * self._data.oMf[self._flange] * self._tcp).rotation
        at_tcp = self._tcp.toActionMatrixInverse() @ flange
        return np.vstack([turned @ at_tcp[:3], turned @ at_tcp[3:]])

    def _flange_jacobian(self, q: Array) -> Array:
        """Of the flange in its own frame (6, n); the flange's placement is up to date then."""
        pin.computeJointJacobians(self._model, self._data, q)
        pin.updateFramePlacement(self._model, self._data, self._flange)
        jacobian: Array = pin.getFrameJacobian(self._model, self._data, self._flange, pin.LOCAL)
        return jacobian

    def joints(self, target: pin.SE3, near: Array) -> Array:
        """Joint positions (n,) that put the TCP at a target in the pendant's base, near others; else Unreachable."""
        q, distance, angle, found = self._search(target, near)
        if not found:
            away = f"{distance * 1e3:.1f} mm and {np.degrees(angle):.2f} degrees"
            raise Unreachable(f"the joints stay {away} away from the tool's target")
        return q

    def _search(self, target: pin.SE3, near: Array) -> tuple[Array, float, float, bool]:
        """Joint positions (n,), how far they leave the flange from its target, m and rad, and whether it is there."""
        flange, q = _TURN.actInv(target) * self._tcp.inverse(), np.array(near, dtype=float)
        before = np.inf
        for i in range(_ITERATIONS + 1):
            jacobian = self._flange_jacobian(q)
            error = pin.log6(self._data.oMf[self._flange].actInv(flange)).vector
            square = float(error @ error)
            if square < _TOLERANCE**2 or i == _ITERATIONS:
                break
            if i % _CHECKED == 0:
                if square > 0.5 * before:
                    break
                before = square
            damped = jacobian @ jacobian.T + (_DAMPING + _DAMPING_BY_ERROR * square) * _UNIT
            step = jacobian.T @ np.linalg.solve(damped, error)
            q += step * (_LARGEST_STEP / max(_LARGEST_STEP, float(np.abs(step).max())))
        distance, angle = float(np.linalg.norm(error[:3])), float(np.linalg.norm(error[3:]))
        return q, distance, angle, distance <= _TOLERANCE and angle <= _TOLERANCE

    def any_joints(self, target: pin.SE3, near: Array) -> Iterator[Array | None]:
        """Search joint positions (n,) for a target anywhere, the first that are found when nothing near fits.

        Yields:
            None after each attempt that finds none, which takes about half a millisecond; at last the joints.

        Raises:
            Unreachable: None were found within the joint limits.
        """
        robot, nearest = self._robot, np.inf
        for start in (near, *restart_postures(robot, _RESTARTS)):
            q, distance, _, found = self._search(target, start)
            nearest = min(nearest, distance)
            if found and wrap_into_limits(robot, near, q):
                yield q
                return
            yield None
        raise Unreachable(
            f"no joint positions put the tool there; the nearest stay {nearest * 1e3:.1f} mm away"
        )


class Motion(ABC):
    """A motion of the arm.

    Attributes:
        done: Whether it has ended; its last target then holds.
        has_path: Whether it can be slowed along a path. Otherwise it is halted by braking the joints, and `moved`
            passes it their state.
        blending: Whether the next move may take over, within the blend radius of this one.
        speed: The joints' speeds (n,), rad/s, at the end of the last tick; None where they are that tick's mean.
    """

    done = False
    has_path = True
    blending = False
    speed: Array | None = None

    @abstractmethod
    def step(self, q: Array, qd: Array, dt: float, scaling: float) -> Array:
        """The joints' next target (n,), rad.

        Args:
            q, qd: Present targets (n,), rad and rad/s.
            dt: Control period, s.
            scaling: Speed factor, 0..1: a scaled motion takes the same path, slower.

        Raises:
            Unreachable: A tool-space motion has left the reach of the arm.
        """

    def moved(self, q: Array, qd: Array) -> None:  # noqa: B027
        """Continue from q (n,), rad, and qd (n,), rad/s: the joints were moved by something else."""

    def goal(self) -> Array | None:
        """The TCP's final pose (6,) in the pendant's base; None for a motion without an end."""
        return None


class Hold(Motion):
    """Brake to rest and stay."""

    done = True

    def __init__(self, acceleration: float = 20.0) -> None:
        self._acceleration = acceleration

    def step(self, q: Array, qd: Array, dt: float, scaling: float) -> Array:
        return q + dt * ramped(qd, np.zeros_like(qd), self._acceleration * dt)


def ramped(qd: Array, target: Array, max_change: float) -> Array:
    """Velocities (n,) one tick closer to the target, all joints in proportion."""
    change = target - qd
    largest = float(np.abs(change).max(initial=0.0))
    return target if largest <= max_change else qd + change * (max_change / largest)


class Trapezoid:
    """Distance over time along a path of a given length, rad or m, to rest at its end.

    Args:
        duration: s; above zero it takes precedence, and the speed follows from it.
        max_speed: Upper limit of the speed whatever the duration.
        begin: The speed at the start.
        through: The distance up to which it does not brake; it then brakes evenly to the end.
    """

    def __init__(
        self, length: float, acceleration: float, speed: float, duration: float = 0.0, max_speed: float = math.inf,
        *, begin: float = 0.0, through: float = 0.0,
    ) -> None:  # fmt: skip
        self.length, self.duration = length, 0.0
        self._pieces: list[
            tuple[float, float, float, float]
        ] = []  # begin, distance, speed, acceleration
        if length <= 0.0:
            return
        if duration > 0.0:
            # Half the time to accelerate, half to brake, unless the acceleration allows less.
            root = max(0.0, (acceleration * duration) ** 2 - 4.0 * acceleration * length)
            speed = (
                0.5 * (acceleration * duration - math.sqrt(root))
                if root > 0.0
                else 2.0 * length / duration
            )
            acceleration = max(acceleration, 4.0 * length / duration**2)
        speed = min(speed, max_speed)
        if through <= 0.0:
            # It must be able to brake, and from the start if it began too fast.
            peak = max(min(speed, math.sqrt(length * acceleration + 0.5 * begin**2)), 0.0)
            braking = max(acceleration, 0.5 * max(peak, begin) ** 2 / length)
            peak = begin if braking > acceleration else peak
            through = length - 0.5 * peak**2 / braking
        else:
            change = math.copysign(2.0 * acceleration * through, speed - begin)
            peak = math.sqrt(max(0.0, begin**2 + change))
            peak = min(peak, speed) if speed > begin else max(peak, speed)
        ramp = abs(peak - begin) / acceleration
        self._add(ramp, begin, math.copysign(acceleration, peak - begin))
        self._add(max(0.0, through - 0.5 * (begin + peak) * ramp) / peak, peak, 0.0)
        self._add(
            2.0 * (length - through) / peak, peak, -0.5 * peak**2 / max(length - through, 1e-300)
        )

    def _add(self, duration: float, speed: float, acceleration: float) -> None:
        if duration > 0.0:
            self._pieces.append(
                (self.duration, self._covered(self.duration)[0], speed, acceleration)
            )
            self.duration += duration

    def _covered(self, time: float) -> tuple[float, float]:
        for begin, distance, speed, acceleration in reversed(self._pieces):
            if time >= begin:
                t = time - begin
                return distance + t * (speed + 0.5 * t * acceleration), speed + t * acceleration
        return 0.0, 0.0

    def at(self, time: float) -> float:
        """Distance covered after `time` s."""
        return self.length if time >= self.duration else min(self._covered(time)[0], self.length)

    def speed(self, time: float) -> float:
        """Speed after `time` s."""
        return 0.0 if time >= self.duration else self._covered(time)[1]


def joint_speeds(arm: Arm, q: Array, twist: Array, damping: float = 1e-8) -> Array:
    """Joint speeds (n,), rad/s, that move the tool by a twist (6,) at q (n,); damped, so finite at singularities."""
    jacobian = arm.jacobian(q)
    speeds: Array = jacobian.T @ np.linalg.solve(jacobian @ jacobian.T + damping * np.eye(6), twist)
    return speeds


class Ramp(Motion):
    """A ramp of the joints' or the tool's speeds (6,) to those wanted, which it keeps; or to rest, where it ends."""

    def __init__(self, wanted: Array, stops: bool) -> None:
        self._wanted, self._stops = wanted.copy(), stops
        self._commanded: Array | None = None

    @property
    def reached(self) -> bool:
        """Whether the commanded speed is the one wanted."""
        return self._commanded is not None and bool((self._commanded == self._wanted).all())

    def moved(self, q: Array, qd: Array) -> None:
        self._commanded = None

    def _before(self, speed: Array, scaling: float) -> Array:
        """The commanded speed so far; at first the one of which the present speed is the scaled one."""
        if self._commanded is not None:
            return self._commanded
        return speed / scaling if scaling > 0.0 else np.zeros_like(speed)

    def _command(self, speed: Array) -> None:
        self._commanded = speed
        self.done = self._stops and self.reached


class JointSpeed(Ramp):
    """speedj, and stopj (`stops`): at an acceleration, rad/s^2, of the joint with the largest change."""

    def __init__(self, speeds: Array, acceleration: float, stops: bool = False) -> None:
        super().__init__(speeds, stops)
        self._acceleration = acceleration

    def step(self, q: Array, qd: Array, dt: float, scaling: float) -> Array:
        before = self._before(qd, scaling)
        after = ramped(before, self._wanted, self._acceleration * dt)
        self._command(after)
        self.speed = scaling * after
        return q + 0.5 * dt * scaling * (before + after)


class ToolSpeed(Ramp):
    """speedl, and stopl (`stops`): a tool speed (6,), m/s and rad/s, in the pendant's base.

    The tool's orientation is the exponential of its angular velocity's integral, from the call on: where the axis
    changes, that is not the integral of the rotation, by 9 mrad in a second of the recordings. They were made by calls
    every half second, so what a longer call does is not known; here it begins anew after half a second.

    Args:
        acceleration, angular: Of the linear and the angular velocity, m/s^2 and rad/s^2; both change in step.
    """

    _RENEWED = 0.5  # s

    def __init__(
        self, arm: Arm, speed: Array, acceleration: float, angular: float, stops: bool = False
    ) -> None:
        super().__init__(speed, stops)
        self._arm, self._accelerations = arm.snapshot(), (acceleration, angular)
        self._left = 0.0

    def moved(self, q: Array, qd: Array) -> None:
        self._commanded, self._left = None, 0.0

    def step(self, q: Array, qd: Array, dt: float, scaling: float) -> Array:
        before = self._before(self._arm.jacobian(q) @ qd, scaling)
        if self._left < 0.5 * dt:
            self._left, self._start, self._way = self._RENEWED, self._arm.tool(q), np.zeros(6)
        self._left -= dt
        change = self._wanted - before
        linear, angular = np.linalg.norm(change[:3]), np.linalg.norm(change[3:])
        ticks = max(linear / self._accelerations[0], angular / self._accelerations[1]) / dt
        after = self._wanted if ticks <= 1.0 else before + change / ticks
        self._command(after)
        self._way = self._way + 0.5 * dt * scaling * (before + after)
        rotation = pin.exp3(self._way[3:]) @ self._start.rotation
        target = self._arm.joints(pin.SE3(rotation, self._start.translation + self._way[:3]), q)
        self.speed = joint_speeds(self._arm, target, scaling * after)
        return target


class Servo(Motion):
    """servoj: the servo law of UR's controllers, until another motion follows; its time passes slower with the speed
    scaling if it is `slowed`. It begins at q (n,), rad, with qd (n,), rad/s; the period is in s."""

    has_path = False

    def __init__(self, q: Array, qd: Array, period: float, slowed: bool = False) -> None:
        self._joints, self._slowed = ServojJoints(ServojLaw(period), q, compiled=False), slowed
        self.setpoint = q.copy()
        self.moved(q, qd)

    def moved(self, q: Array, qd: Array) -> None:
        self._joints.reset(q, qd)
        self._before = self._after = q
        self._share = 1.0  # of the law's cycle from `_before` to `_after`

    def aim(self, setpoint: Array, duration: float, lookahead: float, gain: float) -> None:
        """Begin a call with a setpoint (n,), rad, that lasts `duration` s."""
        law = self._joints.law
        if (law.gain, law.lookahead) != (gain, lookahead):
            self._joints.law = ServojLaw(law.cycle, gain, lookahead)
        self._joints.command(setpoint, duration)
        self.setpoint = setpoint

    def step(self, q: Array, qd: Array, dt: float, scaling: float) -> Array:
        if not self._slowed:
            return self._joints.step()
        self._share += scaling
        if self._share > 1.0:
            self._share -= 1.0
            self._before, self._after = self._after, self._joints.step()
        return self._before + self._share * (self._after - self._before)
