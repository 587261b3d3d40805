"""The error tree: one root, and what every error carries.

An error is a fact about the world with a remedy: the message says what, where, how much and what to do, in one
paragraph; the same facts are fields, so that a program need not read the message. Controllers, real and emulated, have
their own errors under the same root: `simbridge/ur/errors.py` and `simbridge/emulator/errors.py`.
"""

from __future__ import annotations

import difflib
import errno
import os
from collections.abc import Iterable
from pathlib import Path


class SimbridgeError(Exception):
    """Root of every error that simbridge raises on purpose.

    Attributes:
        run_directory: Where what was recorded until then is, when a run had begun; else None.
    """

    run_directory: Path | None = None


def suggest(name: str, known: Iterable[str]) -> str:
    """A sentence that names the nearest known name and lists them all."""
    names = sorted(known)
    near = difflib.get_close_matches(name, names, n=1, cutoff=0.5)
    question = f"Did you mean '{near[0]}'? " if near else ""
    return f"{question}Known: {', '.join(names)}."


class UnknownName(SimbridgeError, LookupError):
    """A scenario, robot, solver or backend that does not exist.

    Attributes:
        kind: What was looked for ("robot", "solver", ...).
        name: The name as given.
        known: The names that exist.
    """

    def __init__(self, kind: str, name: str, known: Iterable[str], hint: str = "") -> None:
        self.kind = kind
        self.name = name
        self.known = tuple(sorted(known))
        super().__init__(f"There is no {kind} '{name}'. {suggest(name, self.known)}{' ' + hint if hint else ''}")


class InputFileError(SimbridgeError, ValueError):
    """A file the user gave cannot be read or holds something else than was expected.

    Attributes:
        path: The file.
        line: The line at fault, counted from 1, or None when the whole file is meant.
        field: The field or column at fault, or None.
        reason: What is wrong, as a sentence.
    """

    def __init__(self, path: str | Path, reason: str, *, line: int | None = None, field: str | None = None) -> None:
        self.path = Path(path)
        self.line = line
        self.field = field
        self.reason = reason
        where = f"{path}" + (f", line {line}" if line is not None else "") + (f", {field}" if field else "")
        super().__init__(f"{where}: {reason}")


class UnusableSamples(SimbridgeError, ValueError):
    """Samples that cannot be evaluated: none at all, of another shape than the rest, or not numbers.

    Attributes:
        name: The quantity ("attained poses", "times", ...).
        reason: What is wrong with it and what to do, as a sentence.
        index: The first sample at fault, counted from 0, or None when all of them are.
    """

    def __init__(self, name: str, reason: str, *, index: int | None = None) -> None:
        self.name = name
        self.reason = reason
        self.index = index
        super().__init__(f"The {name} cannot be evaluated: {reason}")


class InvalidTrajectory(SimbridgeError, ValueError):
    """Samples that do not make a trajectory.

    Attributes:
        reason: What is wrong, as a sentence.
        sample: Index of the sample at fault, or None when the whole is meant.
        field: The part of the sample at fault ("time", "x", "quaternion", ...), or None.
        source: Where the samples come from, or "".
    """

    def __init__(self, reason: str, *, sample: int | None = None, field: str | None = None, source: str = "") -> None:
        self.reason = reason
        self.sample = sample
        self.field = field
        self.source = source
        where = ["trajectory" + (f" '{source}'" if source else "")]
        where += [f"sample {sample}"] if sample is not None else []
        where += [field] if field else []
        super().__init__(f"{', '.join(where)}: {reason}")


class InvalidParameter(SimbridgeError, ValueError):
    """A parameter out of its range.

    Attributes:
        name: The parameter.
        value: What was given.
        needed: What it must be, as in "a positive number".
    """

    def __init__(self, name: str, value: object, needed: str) -> None:
        self.name = name
        self.value = value
        self.needed = needed
        super().__init__(f"The {name} is {value}; it must be {needed}.")


class LogWriteError(SimbridgeError, OSError):
    """The log of a run could not be opened, or no longer be written: the disk is full, a file may not grow, ...

    Attributes:
        path: The log.
        bytes_written: Length in bytes of what was stored before.
        reason: The system's error number (errno.ENOSPC, errno.EFBIG, ...).
    """

    def __init__(self, path: str | Path, bytes_written: int, reason: int) -> None:
        self.path = Path(path)
        self.bytes_written = bytes_written
        self.reason = reason
        kept = f"the {bytes_written} bytes before can be read" if bytes_written else "nothing was stored"
        super().__init__(
            f"The log {path} cannot be written: {os.strerror(reason)} ({errno.errorcode.get(reason, reason)}); {kept}. "
            f"Look at the disk's free space, its quota and the folder's permissions, or choose another folder."
        )
        self.errno = reason


class LogReadError(SimbridgeError, ValueError):
    """A file is no log of a run, or was cut off before the log began.

    Attributes:
        path: The file.
        reason: What is wrong, as a sentence.
    """

    def __init__(self, path: str | Path, reason: str) -> None:
        self.path = Path(path)
        self.reason = reason
        super().__init__(f"{path} cannot be read as a log: {reason}")


class ScenarioError(SimbridgeError, ValueError):
    """A scenario script that cannot be used.

    Attributes:
        path: The script.
        reason: Why, as a sentence.
        line: The line at fault, or None.
    """

    def __init__(self, path: str | Path, reason: str, *, line: int | None = None) -> None:
        self.path = Path(path)
        self.reason = reason
        self.line = line
        where = f", line {line}" if line is not None else ""
        super().__init__(f"The scenario {path}{where} cannot be used: {reason}.")


class UnstableSolver(SimbridgeError, ValueError):
    """Solver settings at or past the stability bound.

    Attributes:
        kappa: dt^2 kp/m of the worst axis.
        damping: dt kd/m of the same axis.
    """

    def __init__(self, kappa: float, damping: float) -> None:
        self.kappa = kappa
        self.damping = damping
        bound = "kappa = dt^2 kp/m must stay below 8"
        value = f"it is {kappa:.4g}"
        if damping > 0.0:
            bound = "kappa + 2 dt kd/m must stay below 8 and dt kd/m below 4 (kappa = dt^2 kp/m)"
            value = f"they are {kappa + 2.0 * damping:.4g} and {damping:.4g}"
        super().__init__(
            f"The solver would diverge with these settings: {bound}, but {value}. "
            "Lower kp, kd or dt, or raise the virtual tool mass; kappa up to 4 converges without overshoot."
        )


class PlanRefused(SimbridgeError, ValueError):
    """A plan, or an approach to it, that must not be executed. Nothing has moved.

    Attributes:
        sample: The control period at fault, counted from 0 (for targets out of reach: the trajectory's sample).
        time: Its time in s.
        value: What would happen, in SI units.
        limit: What is allowed, in SI units.
        joint: The joint's name, or None when no single joint is meant.
    """

    def __init__(
        self, message: str, *, sample: int, time: float, value: float, limit: float, joint: str | None = None
    ) -> None:
        self.sample = sample
        self.time = time
        self.value = value
        self.limit = limit
        self.joint = joint
        super().__init__(message)


class TargetOutOfReach(PlanRefused):
    """A target that no joint positions attain.

    Attributes:
        distance: How far the nearest posture found stays away, m.
        angle: And by how much it is turned, rad.
    """

    def __init__(self, message: str, *, sample: int, time: float, distance: float, angle: float) -> None:
        self.distance = distance
        self.angle = angle
        super().__init__(message, sample=sample, time=time, value=distance, limit=0.0)


class JointLimitExceeded(PlanRefused):
    """A setpoint outside of a joint's range (value and limit in rad)."""


class VelocityLimitExceeded(PlanRefused):
    """Two setpoints further apart than a joint can go in a period (value and limit in rad/s)."""


class VelocityJumpExceeded(PlanRefused):
    """A joint velocity that changes too much from one period to the next (value and limit in rad/s)."""


class ToolSpeedExceeded(PlanRefused):
    """A tool faster than allowed (value and limit in m/s)."""


class TorqueLimitExceeded(PlanRefused):
    """A posture that the arm cannot hold against gravity with the payload it is told of (value and limit in N m)."""


class FloorCollision(PlanRefused):
    """A link that would go through the floor (value: clearance in m, negative when inside).

    Attributes:
        link: The link.
    """

    def __init__(self, message: str, *, sample: int, time: float, clearance: float, link: str) -> None:
        self.link = link
        super().__init__(message, sample=sample, time=time, value=clearance, limit=0.0)


class KeepOutViolation(PlanRefused):
    """A link that would enter a box or pass a plane of the cell (value: clearance in m, negative when inside).

    Attributes:
        link: The link.
        zone: The name of the box or plane.
    """

    def __init__(self, message: str, *, sample: int, time: float, clearance: float, link: str, zone: str) -> None:
        self.link = link
        self.zone = zone
        super().__init__(message, sample=sample, time=time, value=clearance, limit=0.0)


class SelfCollision(PlanRefused):
    """Two links that would touch (value: their distance in m, negative when they overlap).

    Attributes:
        links: The two links.
    """

    def __init__(self, message: str, *, sample: int, time: float, distance: float, links: tuple[str, str]) -> None:
        self.links = links
        super().__init__(message, sample=sample, time=time, value=distance, limit=0.0)


class GuardViolation(SimbridgeError, RuntimeError):
    """A setpoint that the guard did not let out. The arm was stopped, and nothing passes until `recover()`.

    Attributes:
        rule: "shape", "finite", "position", "velocity", "distance", "collision" (live only) or "latched".
        joint: The joint's name, or None.
        value: What was asked for, in SI units, or None.
        limit: What is allowed, in SI units, or None.
    """

    def __init__(
        self,
        message: str,
        *,
        rule: str,
        joint: str | None = None,
        value: float | None = None,
        limit: float | None = None,
    ) -> None:
        self.rule = rule
        self.joint = joint
        self.value = value
        self.limit = limit
        super().__init__(message)


class Interrupted(SimbridgeError, KeyboardInterrupt):
    """Ctrl-C during a run. The arm was stopped."""


class OutputDirectoryError(SimbridgeError, OSError):
    """The run directory cannot be made.

    Attributes:
        path: The directory.
        reason: Why.
    """

    def __init__(self, path: str | Path, reason: str) -> None:
        self.path = Path(path)
        self.reason = reason
        super().__init__(f"The run directory {path} cannot be used: {reason}.")


class OutputFileError(SimbridgeError, OSError):
    """A file cannot be written.

    Attributes:
        path: The file.
        reason: Why, and what to do.
    """

    def __init__(self, path: str | Path, reason: str) -> None:
        self.path = Path(path)
        self.reason = reason
        super().__init__(f"The file {path} cannot be written: {reason}.")


class MissingPackage(SimbridgeError, ImportError):
    """A package that a command needs is not installed.

    Attributes:
        package: Its name on the package index.
        purpose: What it is needed for.
    """

    def __init__(self, package: str, purpose: str) -> None:
        self.package = package
        self.purpose = purpose
        super().__init__(f"{purpose} needs the package {package}. Install it with: pip install {package}")


class InvalidHome(SimbridgeError, ValueError):
    """A home given by hand that is not one position within the limits for each joint.

    Attributes:
        robot: The arm.
        field: "home", or the position at fault as "home[2]".
        reason: What is wrong, as a sentence.
    """

    def __init__(self, robot: str, field: str, reason: str) -> None:
        self.robot = robot
        self.field = field
        self.reason = reason
        super().__init__(f"The home given for {robot} cannot be used: {field}: {reason}.")


class NoDisplay(SimbridgeError, RuntimeError):
    """A window was asked for where none can be opened.

    Attributes:
        what: Which window.
    """

    def __init__(self, what: str) -> None:
        self.what = what
        super().__init__(
            f"{what} needs a display, and DISPLAY is not set. Run without it and open the report instead, or run where "
            "there is a screen (over ssh: ssh -X)."
        )


class NotARun(SimbridgeError, ValueError):
    """A directory that does not hold a run, or not all of it.

    Attributes:
        path: The directory.
        missing: The file that is missing or broken.
    """

    def __init__(self, path: str | Path, missing: str, reason: str = "it is not there") -> None:
        self.path = Path(path)
        self.missing = missing
        super().__init__(f"{path} is not a run that can be read: {missing}: {reason}.")
