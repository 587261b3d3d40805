"""The errors that simbridge raises on purpose: one root, and under it a class for each kind of failure.

A message is one paragraph: what is wrong, where, by how much, and what to do. The same facts are fields, so that a
program need not read the message. Each class also inherits the built-in exception that fits. Controllers, real and
emulated, have errors of their own under the same root: `simbridge/ur/errors.py` and `simbridge/emulator/errors.py`.
"""

from __future__ import annotations

import difflib
import errno
import importlib
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Literal

from simbridge.quoting import LONGEST_QUOTE, quoted, quoted_list, unquoted

# Known names that are listed, at most; and characters of a value that is no word, such as a list of numbers or a path.
MOST_KNOWN = 100
LONGEST_VALUE = 300
LONGEST_PATH = 1000

Cause = Literal[
    "completed", "refused", "protective_stop", "emergency_stop", "safeguard_stop", "safety_fault", "program_stopped",
    "program_paused", "program_replaced", "power_off", "remote_control_lost", "connection_lost", "controller_restarted",
    "arm_changed", "tool_changed", "stale_state", "late_states", "implausible_state", "guard", "interrupted",
    "terminated", "hangup", "parent_lost", "servo_process_lost", "disk_full", "internal_error", "unknown",
]  # fmt: skip
"""What ends a run, as in `ended_by` of summary.json; docs/hardware.md says what each looks like."""


class SimbridgeError(Exception):
    """Root of every error that simbridge raises on purpose.

    Attributes:
        cause: What it proves of the end of a run; "unknown" if nothing: then its message says what was seen.
        run_directory: The run that the error ended, with what was recorded until then; None if no run had begun.
        aftermath: Whether the arm was seen at rest after it, as a sentence; "" if nothing could move.
    """

    cause: Cause = "unknown"
    aftermath = ""
    run_directory: Path | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        """Let pickle restore the fields as they are, whatever the arguments of the class are."""
        fields = dict(vars(self))
        # OSError and ImportError keep these outside of the dictionary of attributes.
        for name in ("errno", "msg"):
            if getattr(self, name, None) is not None:
                fields[name] = getattr(self, name)
        return _restore_error, (type(self), self.args, fields)


def _restore_error(
    kind: type[SimbridgeError], args: tuple[Any, ...], fields: dict[str, Any]
) -> SimbridgeError:
    """An error of a class with these arguments and fields, without a call of its constructor."""
    # The built-in exception whose memory layout the class has: another's `__new__` would refuse it.
    builtin: Any = kind
    while builtin.__module__ != "builtins":
        builtin = builtin.__base__
    error: SimbridgeError = builtin.__new__(kind)
    error.args = args
    for name, value in fields.items():
        setattr(error, name, value)
    return error


class Refusal(SimbridgeError):
    """Root of what is refused before it is sent to an arm: a choice, an input, a plan, a controller."""

    cause: Cause = "refused"


# Choices that do not exist or cannot be used.


def suggest(name: str, known: Iterable[str]) -> str:
    """A sentence that names the nearest known name and lists the known ones."""
    names = sorted(known)
    # Comparing takes time with the product of the lengths.
    near = (
        difflib.get_close_matches(name, names, n=1, cutoff=0.5)
        if len(name) <= LONGEST_QUOTE
        else []
    )
    question = f"Did you mean {quoted(near[0])}? " if near else ""
    return f"{question}Known: {quoted_list(names, MOST_KNOWN)}."


class UnknownName(Refusal, LookupError):
    """A scenario, robot, solver, ... (kind) that does not exist; name: as given; known: the names that exist."""

    def __init__(
        self, kind: str, name: str, known: Iterable[str], hint: str = "", *, where: str = ""
    ) -> None:
        self.kind, self.name, self.known = kind, name, tuple(sorted(known))
        unknown = f"There is no {kind} {quoted(name)}{' ' + where if where else ''}."
        # A name that comes from a file need not be a text.
        known_names = suggest(str(name), self.known) if self.known else ""
        super().__init__(" ".join(filter(None, (unknown, known_names, hint))))


class InvalidParameter(Refusal, ValueError):
    """A parameter (name) out of its range; value: what was given; needed: what it must be ("a positive number")."""

    def __init__(self, name: str, value: object, needed: str) -> None:
        self.name, self.value, self.needed = name, value, needed
        # A setting that may be several numbers, but not a shape such as (7,).
        shown = (
            value[0]
            if isinstance(value, tuple) and len(value) == 1 and isinstance(value[0], float)
            else value
        )
        super().__init__(f"The {name} is {unquoted(shown, LONGEST_VALUE)}; it must be {needed}.")


class InvalidHome(Refusal, ValueError):
    """A home of an arm (robot) that is not one value within the limits for each joint; field: "home" or "home[2]"."""

    def __init__(self, robot: str, field: str, reason: str) -> None:
        self.robot, self.field, self.reason = robot, field, reason
        value = "" if field == "home" else f"{field}: "
        super().__init__(f"The home given for {robot} cannot be used: {value}{reason}.")


class UnstableSolver(Refusal, ValueError):
    """Solver settings at or past the stability bound: kappa = dt^2 kp/m and damping = dt kd/m of the worst axis.

    needed: virtual mass (kg) and inertia (kg m^2) at the tool above which the gains are stable; None if unknown. bare:
    whether the virtual model has no mass or no inertia at the tool, so that only its last link resists.
    """

    def __init__(
        self,
        kappa: float,
        damping: float,
        *,
        accumulating: bool = False,
        needed: tuple[float, float] | None = None,
        bare: bool = False,
    ) -> None:
        self.kappa, self.damping, self.needed, self.bare = kappa, damping, needed, bare
        bound, value = "kappa = dt^2 kp/m must stay below 8", f"it is {kappa:.4g}"
        advice = "Lower kp, kd or dt, or raise the virtual tool mass"
        if accumulating:
            less = f" (with dt kd/m = {damping:.4g} a little less)" if damping > 0.0 else ""
            bound = f"velocity accumulation needs kappa = dt^2 kp/m below 1/9{less}"
            advice = "Lower kp or kd, or raise the virtual tool mass"
        elif damping > 0.0:
            bound = "kappa + 2 dt kd/m must stay below 8 and dt kd/m below 4 (kappa = dt^2 kp/m)"
            value = f"they are {kappa + 2.0 * damping:.4g} and {damping:.4g}"
        if bare:
            value += " because with a tool_mass or tool_inertia of 0 only the virtual last link resists the pull"
        if needed is not None:
            advice += f" (tool_mass above {needed[0]:.3g} kg and tool_inertia above {needed[1]:.3g} kg m^2)"
        advice += "." if accumulating else "; kappa up to 4 converges without overshoot."
        super().__init__(
            f"The solver would diverge with these settings: {bound}, but {value}. {advice}"
        )


class NoClosedForm(Refusal, ValueError):
    """An arm (robot) for which no closed-form inverse kinematics is implemented; reason: why not, as a clause."""

    def __init__(self, robot: str, reason: str) -> None:
        self.robot, self.reason = robot, reason
        super().__init__(
            f"The solver closed-form cannot solve for {robot}: {reason}. It covers UR arms with nominal kinematics "
            "(the axes of a calibrated arm are not quite parallel) and planar arms of two links. Use another solver, "
            "such as forward-dynamics, which takes any chain."
        )


class ForeignSolverError(Refusal, RuntimeError):
    """A custom function (name), a solver by default, that cannot be imported or failed; reason: what went wrong."""

    def __init__(self, name: str, reason: str, *, what: str = "solver") -> None:
        self.name, self.reason = name, reason
        super().__init__(f"The {what} {name} {reason}.")


class UncompilableCode(Refusal, TypeError):
    """A function to be compiled (name), or one that it calls, uses something that compiled code must not use; reason:
    Numba's message, with the lines it refers to."""

    def __init__(self, name: str, reason: str) -> None:
        self.name, self.reason = name, reason
        super().__init__(
            f"{name} cannot be compiled. Compiled functions are limited to what numba supports, and a variable keeps "
            f"its type. Numba says: {reason.strip()}"
        )


class MissingPackage(Refusal, ImportError):
    """A package (its name on the package index) that is needed for a purpose is not installed; extra: simbridge's own
    that contains it, or ""; fault: why an installed one cannot be imported, or ""."""

    def __init__(self, package: str, purpose: str, *, extra: str = "", fault: str = "") -> None:
        self.package, self.purpose, self.extra, self.fault = package, purpose, extra, fault
        install = f'"simbridge[{extra}]"' if extra else package
        found = f", which cannot be imported ({fault})" if fault else ""
        super().__init__(
            f"{purpose} needs the package {package}{found}. Install it with: pip install {install}"
        )


def optional_package(module: str, package: str, purpose: str, extra: str = "") -> Any:
    """A module of a package that need not be installed.

    Raises:
        MissingPackage: It is not, or it cannot be imported.
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        missing = isinstance(error, ModuleNotFoundError) and module.startswith(error.name or module)
        raise MissingPackage(
            package, purpose, extra=extra, fault="" if missing else str(error)
        ) from error


class NoDisplay(Refusal, RuntimeError):
    """A window (what: which) was requested where none can be opened."""

    def __init__(self, what: str) -> None:
        self.what = what
        super().__init__(
            f"{what} needs a display, and DISPLAY is not set. Run without it and open the report instead, or run where "
            "there is a screen (over ssh: ssh -X)."
        )


# Inputs that cannot be used.


class InputFileError(Refusal, ValueError):
    """An input file (path) that cannot be read, or has other content than expected; reason: as a sentence; line
    (from 1) and field, or column: those at fault, or None."""

    def __init__(
        self, path: str | Path, reason: str, *, line: int | None = None, field: str | None = None
    ) -> None:
        self.path, self.line, self.field, self.reason = Path(path), line, field, reason
        where = unquoted(path, LONGEST_PATH)
        if line is not None:
            where += f", line {line}"
        if field:
            where += f", {unquoted(field, LONGEST_VALUE)}"
        super().__init__(f"{where}: {reason}")


class UnusableSamples(Refusal, ValueError):
    """Samples (name: "times", ...) that cannot be evaluated; reason: what is wrong and what to do; index: the first at
    fault, counted from 0; None if all of them are."""

    def __init__(self, name: str, reason: str, *, index: int | None = None) -> None:
        self.name, self.reason, self.index = name, reason, index
        super().__init__(f"The {name} cannot be evaluated: {reason}")


class InvalidTrajectory(Refusal, ValueError):
    """Samples that do not make a trajectory; reason: as a sentence; sample and field ("time", "x", "quaternion", ...):
    those at fault, or None; source: where the samples come from, or ""."""

    def __init__(
        self, reason: str, *, sample: int | None = None, field: str | None = None, source: str = ""
    ) -> None:
        self.reason, self.sample, self.field, self.source = reason, sample, field, source
        where = ["trajectory" + (f" {quoted(source, LONGEST_VALUE)}" if source else "")]
        where += [f"sample {sample}"] if sample is not None else []
        where += [field] if field else []
        super().__init__(f"{', '.join(where)}: {reason}")


class ScenarioError(Refusal, ValueError):
    """A scenario script (path) that cannot be used; reason: why, as a sentence; line: the line at fault, or None."""

    def __init__(self, path: str | Path, reason: str, *, line: int | None = None) -> None:
        self.path, self.reason, self.line = Path(path), reason, line
        where = f", line {line}" if line is not None else ""
        super().__init__(f"The scenario {path}{where} cannot be used: {reason}.")


class LogReadError(Refusal, ValueError):
    """A file (path) that is not the log of a run, or was cut off before the log began; reason: as a sentence."""

    def __init__(self, path: str | Path, reason: str) -> None:
        self.path, self.reason = Path(path), reason
        super().__init__(f"{path} cannot be read as a log: {reason}")


class NotARun(Refusal, ValueError):
    """A directory (path) without a run, or without all of it; missing: what is missing or broken, "" for all of it."""

    def __init__(self, path: str | Path, missing: str, reason: str = "it is not there") -> None:
        self.path, self.missing = Path(path), missing
        super().__init__(
            f"{path} is not a run that can be read: {missing}{': ' if missing else ''}{reason}."
        )


# Outputs that cannot be written.


class OutputError(SimbridgeError, OSError):
    """A file or directory (path) that cannot be written; reason: with what to do; errno: the system's error number, and
    missing: the number of bytes that did not fit; None where unknown."""

    def __init__(
        self, path: str | Path, reason: str, number: int | None = None, missing: int | None = None
    ) -> None:
        self.path, self.reason, self.missing = Path(path), reason, missing
        super().__init__(f"{path} cannot be written: {reason}.")
        self.errno = number


class LogWriteError(SimbridgeError, OSError):
    """The log of a run (path) could not be opened, or writing it failed; bytes_written: the length of what was stored
    before; reason: the system's error number."""

    def __init__(self, path: str | Path, bytes_written: int, reason: int) -> None:
        self.path, self.bytes_written, self.reason = Path(path), bytes_written, reason
        kept = (
            f"the {bytes_written} bytes before can be read"
            if bytes_written
            else "nothing was stored"
        )
        super().__init__(
            f"The log {path} cannot be written: {os.strerror(reason)} ({errno.errorcode.get(reason, reason)}); {kept}. "
            f"Check the disk's free space, its quota and the folder's permissions, or choose another folder."
        )
        self.errno = reason


# Plans that are refused before anything moves.

CollisionKind = Literal["self", "floor", "keep-out"]
Quantity = Literal[
    "position",
    "velocity",
    "velocity jump",
    "acceleration",
    "torque",
    "tool speed",
    "command lead",
    "rounding",
]


class PlanRefused(Refusal, ValueError):
    """A plan, or an approach to it, that must not be executed. Nothing has moved.

    Attributes:
        sample: The control period at fault, counted from 0 (for targets out of reach: the trajectory's sample).
        time: Its time in s.
        value, limit: What would happen, and what is allowed, in SI units.
        joint: The joint's name, or None when no single joint is meant.
    """

    def __init__(
        self,
        message: str,
        *,
        sample: int,
        time: float,
        value: float,
        limit: float,
        joint: str | None = None,
    ) -> None:
        self.sample, self.time, self.value, self.limit, self.joint = (
            sample,
            time,
            value,
            limit,
            joint,
        )
        super().__init__(message)


class TargetOutOfReach(PlanRefused):
    """A target that no joint positions attain; distance (m; `value`) and angle (rad): to the nearest posture found;
    every: whether no target at all was attained."""

    def __init__(
        self, message: str, *, distance: float, angle: float, every: bool = False, **facts: Any
    ) -> None:
        self.distance, self.angle, self.every = distance, angle, every
        super().__init__(message, value=distance, limit=0.0, **facts)


class LimitExceeded(PlanRefused):
    """Setpoints past a limit of the arm.

    quantity: "position" (rad), "velocity" (rad/s), "velocity jump" (from one period to the next, rad/s), "acceleration"
    (rad/s^2), "torque" (to hold the posture against gravity, N m), "tool speed" (m/s), "command lead" (with
    feedforward, rad) or "rounding" (of the tool's path by feedforward, m); value and limit are in these units.
    """

    def __init__(self, message: str, quantity: Quantity, **facts: Any) -> None:
        self.quantity = quantity
        super().__init__(message, **facts)


class PlannedCollision(PlanRefused):
    """A link that would come too near to another, the floor, or a keep-out zone of the cell (kind).

    bodies: the link, and what it would touch: another link, "the floor", or the name of the box or plane; value: the
    clearance in m, negative when the bodies overlap.
    """

    def __init__(
        self, message: str, kind: CollisionKind, bodies: tuple[str, str], **facts: Any
    ) -> None:
        self.kind, self.bodies = kind, bodies
        super().__init__(message, limit=0.0, **facts)


# What ends a run while it moves.


class GuardViolation(SimbridgeError, RuntimeError):
    """A setpoint that the guard refused. The arm was stopped, and nothing passes until `recover()`.

    rule: "latched", or the guard's: "velocity", "velocity jump", "distance", ...; joint: its
    name; value and limit: what was requested and what is allowed, in SI units; None where there is none.
    """

    cause = "guard"

    def __init__(
        self,
        message: str,
        *,
        rule: str,
        joint: str | None = None,
        value: float | None = None,
        limit: float | None = None,
    ) -> None:
        self.rule, self.joint, self.value, self.limit = rule, joint, value, limit
        super().__init__(message)


class Interrupted(SimbridgeError, KeyboardInterrupt):
    """Ctrl-C, or another signal to stop, during a run; number: the signal's, 2 for Ctrl-C."""

    cause: Cause = "interrupted"

    def __init__(self, message: str, number: int = 2) -> None:
        self.number = number
        super().__init__(message)


class InternalError(SimbridgeError, RuntimeError):
    """A bug in simbridge, in a process that cannot report it by itself, such as the "servo process" (where). The arm
    was stopped; trace: the traceback, as text."""

    cause = "internal_error"

    def __init__(self, where: str, trace: str) -> None:
        self.where, self.trace = where, trace
        lines = trace.strip().splitlines()
        super().__init__(
            f"The {where} ended because of a bug in simbridge: {lines[-1] if lines else 'unknown'}"
        )
