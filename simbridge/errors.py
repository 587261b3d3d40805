"""The errors that simbridge raises on purpose: one root, and a class for each kind of failure.

A message is one paragraph: what is wrong, where, by how much, and what to do. The same facts are
fields, so that a program need not read the message. Each class also inherits the built-in exception
that fits. Controllers, real and emulated, have errors of their own under the same root:
`simbridge/ur/errors.py` and `simbridge/emulator/errors.py`.
"""

from __future__ import annotations

import difflib
import errno
import importlib
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from simbridge.quoting import LONGEST_QUOTE, quoted, quoted_list, unquoted

# Known names that are listed, at most.
MOST_KNOWN = 100
# Characters of a value that is not a word, such as a list of numbers, and of a path.
LONGEST_VALUE = 300
LONGEST_PATH = 1000
# How alike a known name must be to be suggested, 0 to 1.
MIN_LIKENESS = 0.5
NO_SYNONYMS: Mapping[str, str] = {}

Cause = Literal[
    "completed",
    "refused",
    "protective_stop",
    "emergency_stop",
    "safeguard_stop",
    "safety_fault",
    "program_stopped",
    "program_paused",
    "program_replaced",
    "power_off",
    "remote_control_lost",
    "connection_lost",
    "controller_restarted",
    "arm_changed",
    "tool_changed",
    "stale_state",
    "late_states",
    "implausible_state",
    "guard",
    "interrupted",
    "terminated",
    "hangup",
    "parent_lost",
    "servo_process_lost",
    "disk_full",
    "internal_error",
    "unknown",
]
"""A cause that ends a run, as in `ended_by` of summary.json; docs/stops.md describes each."""


class SimbridgeError(Exception):
    """Root of every error that simbridge raises on purpose.

    Attributes:
        cause: What the error proves of the end of a run; "unknown" if nothing: then its message
            says what was observed.
        run_directory: The run that the error ended, with what was recorded until then; None if no
            run had begun.
        aftermath: Whether the arm was seen at rest after it, as a sentence; "" if nothing could
            move.
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
    """Return an error of a class with arguments and fields, without a call of its constructor."""
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
    """Root of what is refused before it is sent to an arm.

    A choice, an input, a plan, a controller.
    """

    cause: Cause = "refused"


# Choices that do not exist or cannot be used.


def nearest_names(
    name: str, known: Iterable[str], count: int = 1, *, likeness: float = MIN_LIKENESS
) -> list[str]:
    """Return the known names that are spelled like a name, the nearest first.

    Args:
        name: The name as it was given.
        known: The names that exist.
        count: Number of names that are returned at most.
        likeness: How like the name they must be at least, from 0 to 1 for the same spelling.
    """
    # Comparing takes time with the product of the lengths.
    if len(name) > LONGEST_QUOTE:
        return []
    return difflib.get_close_matches(name, sorted(set(known)), n=count, cutoff=likeness)


def suggest(name: str, known: Iterable[str], synonyms: Mapping[str, str] = NO_SYNONYMS) -> str:
    """Return sentences that name the nearest known name and list the known ones.

    Args:
        name: The name as the user gave it.
        known: The known names.
        synonyms: Other names of known ones, in lower case without dashes.
    """
    names = sorted(known)
    nearest = find_nearest(name, names, synonyms)
    question = f"Did you mean {quoted(nearest)}? " if nearest else ""
    return f"{question}Available: {quoted_list(names, MOST_KNOWN)}."


def find_nearest(
    name: str, known: Sequence[str], synonyms: Mapping[str, str] = NO_SYNONYMS
) -> str | None:
    """Return the known name that a user most likely means; None if no name is similar.

    The first of these counts: the same name up to capitals and dashes; the name whose synonym this
    is; the name whose initials this is (dls for damped-least-squares); the most similar name.

    Args:
        name: The name as the user wrote it.
        known: The known names.
        synonyms: Known names by their synonyms, in lower case without dashes.
    """
    plain_name = _plain_spelling(name)
    for candidate in known:
        if _plain_spelling(candidate) == plain_name:
            return candidate
    if plain_name in synonyms:
        return synonyms[plain_name]
    for candidate in known:
        parts = candidate.replace("_", "-").split("-")
        initials = "".join(part[:1] for part in parts)
        if len(parts) > 1 and initials == plain_name:
            return candidate

    nearest = nearest_names(name, known)
    return nearest[0] if nearest else None


def _plain_spelling(name: str) -> str:
    """Return a name in lower case, without dashes, underscores and blanks."""
    return name.lower().replace("-", "").replace("_", "").replace(" ", "")


class UnknownName(Refusal, LookupError):
    """A scenario, robot, solver, ... that does not exist.

    Args:
        kind: Kind of thing that does not exist: "scenario", "robot".
        name: The name as the user gave it.
        known: The names that exist.
        hint: A sentence at the end of the message.
        where: Where the name does not exist, as the end of a sentence: "of a live session".
        synonyms: Known names by their synonyms, in lower case without dashes.
        advice: Sentences in place of the question whether a similar name is meant; "" asks nothing.
            None looks for a similar name.

    Attributes:
        kind: Kind of thing that does not exist.
        name: The name as the user gave it.
        known: The names that exist, sorted.
    """

    def __init__(
        self,
        kind: str,
        name: str,
        known: Iterable[str],
        hint: str = "",
        *,
        where: str = "",
        synonyms: Mapping[str, str] = NO_SYNONYMS,
        advice: str | None = None,
    ) -> None:
        self.kind = kind
        self.name = name
        self.known = tuple(sorted(known))
        location = f" {where}" if where else ""
        statement = f"There is no {kind} {quoted(name)}{location}."
        alternatives = ""
        if advice is not None:
            alternatives = f"{advice} Available: {quoted_list(self.known, MOST_KNOWN)}.".lstrip()
        elif self.known:
            # A name that comes from a file need not be a text.
            alternatives = suggest(str(name), self.known, synonyms)
        super().__init__(" ".join(filter(None, (statement, alternatives, hint))))


class InvalidChoice(UnknownName):
    """A value that is not among the few that an option accepts.

    Attributes:
        kind: Name of the option.
        name: The value as the user gave it.
        known: The values that exist.
    """

    def __init__(self, kind: str, name: str, known: Sequence[str]) -> None:
        super().__init__(kind, name, known)
        *first_choices, last_choice = known
        choices = f"{', '.join(first_choices)} or {last_choice}" if first_choices else last_choice
        nearest = find_nearest(name, sorted(known))
        question = f" Did you mean {quoted(nearest)}?" if nearest else ""
        requirement = describe_requirement(choices, quoted(name))
        self.args = (f"{_subject(kind)} {requirement}.{question}",)


def _subject(name: str) -> str:
    """Return the name of a parameter as the subject of a sentence.

    Several words have an article; a name as it is written in code or at the command line has none.
    """
    return f"The {name}" if " " in name and not name.startswith("-") else name


def describe_requirement(needed: str, value: str) -> str:
    """Return what a parameter must be, and what it was instead, as the end of a sentence.

    Args:
        needed: What the parameter must be ("a positive number"), with a reason after a colon, if
            any.
        value: The value as it is shown.
    """
    requirement, colon, reason = needed.partition(": ")
    if colon:
        return f"must be {requirement} (got {value}): {reason}"
    return f"must be {requirement}; got {value}"


class InvalidParameter(Refusal, ValueError):
    """A parameter out of its range.

    Attributes:
        name: Name of the parameter.
        value: What the user gave.
        needed: What the parameter must be ("a positive number"), with a reason after a colon, if
            any.
    """

    def __init__(self, name: str, value: object, needed: str) -> None:
        self.name = name
        self.value = value
        self.needed = needed
        shown = value
        # A setting that may be several numbers, but not a shape such as (7,).
        if isinstance(value, tuple) and len(value) == 1 and isinstance(value[0], float):
            shown = value[0]
        requirement = describe_requirement(needed, unquoted(shown, LONGEST_VALUE))
        super().__init__(f"{_subject(name)} {requirement}.")


class MissingValue(Refusal, ValueError):
    """An option of the command line without its value, or with too few of its values.

    Attributes:
        command: Name of the command, with that of the experiment if there is one.
        option: The option, as the user gave it.
        metavar: The values that it takes, as its help names them.
    """

    def __init__(self, command: str, option: str, metavar: str) -> None:
        self.command = command
        self.option = option
        self.metavar = metavar

        if "..." in metavar:
            needed = "one or more values"
        elif len(metavar.split()) == 1:
            needed = "a value"
        else:
            needed = f"{len(metavar.split())} values"
        super().__init__(
            f"{option} needs {needed}: `{option} {metavar}`. `simbridge {command} --help` "
            "describes it."
        )


class InvalidHome(Refusal, ValueError):
    """A home of an arm that is not one value within the limits for each joint.

    Attributes:
        robot: Name of the arm.
        field: "home" or "home[2]".
        reason: What is wrong, as a clause.
    """

    def __init__(self, robot: str, field: str, reason: str) -> None:
        self.robot = robot
        self.field = field
        self.reason = reason
        value = "" if field == "home" else f"{field}: "
        super().__init__(f"The home posture given for {robot} cannot be used: {value}{reason}.")


class UnstableSolver(Refusal, ValueError):
    """Solver settings at or past the stability bound.

    Args:
        accumulating: Whether the solver keeps its velocity from step to step (the scheme
            "velocity-accumulation"), which has another bound.

    Attributes:
        kappa: dt^2 kp/m of the worst axis.
        damping: dt kd/m of the worst axis.
        needed: Virtual mass (kg) and inertia (kg m^2) at the tool above which the gains are stable;
            None if unknown.
        lacks_tool_mass: Whether the virtual model has no mass or no inertia at the tool, so that
            only its last link resists.
    """

    def __init__(
        self,
        kappa: float,
        damping: float,
        *,
        accumulating: bool = False,
        needed: tuple[float, float] | None = None,
        lacks_tool_mass: bool = False,
    ) -> None:
        self.kappa = kappa
        self.damping = damping
        self.needed = needed
        self.lacks_tool_mass = lacks_tool_mass

        # The bound, and the value that is past it.
        value = f"it is {kappa:.4g}"
        if accumulating:
            by_damping = f" (slightly less with dt kd/m = {damping:.4g})" if damping > 0.0 else ""
            bound = f"velocity accumulation needs kappa = dt^2 kp/m below 1/9{by_damping}"
        elif damping > 0.0:
            bound = "kappa + 2 dt kd/m must stay below 8 and dt kd/m below 4 (kappa = dt^2 kp/m)"
            value = f"they are {kappa + 2.0 * damping:.4g} and {damping:.4g}"
        else:
            bound = "kappa = dt^2 kp/m must stay below 8"
        if lacks_tool_mass:
            value += (
                " because with a tool_mass or tool_inertia of 0 only the virtual last link resists "
                "the pull"
            )

        # What to do.
        if accumulating:
            advice = "Lower kp or kd, or raise the virtual tool mass"
        else:
            advice = "Lower kp, kd or dt, or raise the virtual tool mass"
        if needed is not None:
            mass, inertia = needed
            advice += (
                f" (tool_mass above {mass:.3g} kg and tool_inertia above {inertia:.3g} kg m^2)"
            )
        advice += "." if accumulating else "; kappa up to 4 converges without overshoot."
        super().__init__(
            f"The solver would diverge with these settings: {bound}, but {value}. {advice}"
        )


class NoClosedForm(Refusal, ValueError):
    """An arm for which no closed-form inverse kinematics is implemented.

    Attributes:
        robot: Name of the arm.
        reason: Why not, as a clause.
    """

    def __init__(self, robot: str, reason: str) -> None:
        self.robot = robot
        self.reason = reason
        super().__init__(
            f"The closed-form solver does not support {robot}: {reason}. It covers UR arms with "
            "nominal kinematics (the axes of a calibrated arm are not quite parallel) and "
            "two-link planar arms. Use another solver, such as forward-dynamics, which works with "
            "any chain."
        )


class ForeignSolverError(Refusal, RuntimeError):
    """A custom function, a solver by default, that cannot be imported or failed.

    Attributes:
        name: Name of the function.
        reason: What went wrong.
    """

    def __init__(self, name: str, reason: str, *, what: str = "solver") -> None:
        self.name = name
        self.reason = reason
        super().__init__(f"The {what} {name} {reason}.")


class UncompilableCode(Refusal, TypeError):
    """A function to be compiled uses something that compiled code must not use.

    Attributes:
        name: Name of the function, which may also only call the one at fault.
        reason: Numba's message, with the lines it refers to.
    """

    def __init__(self, name: str, reason: str) -> None:
        self.name = name
        self.reason = reason
        super().__init__(
            f"{name} cannot be compiled. Compiled functions are limited to what numba supports, "
            f"and a variable keeps its type. Numba says: {reason.strip()}"
        )


class MissingPackage(Refusal, ImportError):
    """A package that is needed for a purpose is not installed.

    Attributes:
        package: Name of the package on the package index.
        purpose: What needs it, the beginning of a sentence.
        extra: simbridge's own that contains it, or "".
        fault: Why an installed one cannot be imported, or "".
        hint: A sentence on what else helps, or "".
        command: The command that installs it.
    """

    def __init__(
        self,
        package: str,
        purpose: str,
        *,
        extra: str = "",
        fault: str = "",
        hint: str = "",
        command: str = "",
    ) -> None:
        self.package = package
        self.purpose = purpose
        self.extra = extra
        self.fault = fault
        self.hint = hint
        install = f'"simbridge[{extra}]"' if extra else package
        self.command = command or f"pip install {install}"
        state = f", which cannot be imported ({fault})" if fault else ""
        message = f"{purpose} needs the package {package}{state}. Install it with: {self.command}"
        # A command ends a sentence without a full stop, so that it can be copied.
        super().__init__(f"{hint} {message}" if hint else message)


def optional_package(
    module: str, package: str, *, purpose: str, extra: str = "", command: str = ""
) -> Any:
    """Import a module of a package that need not be installed.

    Args:
        module: Name of the module.
        package: Name of the package on the package index.
        purpose: What needs it, for the error.
        extra: The extra of simbridge that installs the package; "" if none does.
        command: The command that installs it, where that is not pip's; for the error.

    Returns:
        The module.

    Raises:
        MissingPackage: It is not installed, or it cannot be imported.
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        is_module_missing = isinstance(error, ModuleNotFoundError)
        is_missing = is_module_missing and module.startswith(error.name or module)
        fault = "" if is_missing else str(error)
        raise MissingPackage(package, purpose, extra=extra, fault=fault, command=command) from error


class MissingEngine(Refusal, ImportError):
    """The physics engine that a simulation needs is not installed.

    Attributes:
        engine: Name of the engine.
        install: What to install, and the command: "MuJoCo with: pip install ..."; "" if there is
            no wheel of it for this Python and machine.
        installed: Names of the backends whose engines are installed.
    """

    def __init__(self, engine: str, install: str, installed: Sequence[str] = ()) -> None:
        self.engine = engine
        self.install = install
        self.installed = tuple(installed)
        message = f"The simulation needs a physics engine. Install {install}"
        if installed:
            others = " or ".join(installed)
            message = f"{engine} is not installed. Use --backend {others}, or install {install}"
            if not install:
                message = (
                    f"{engine} is not installed, and there is no wheel of it for this Python and "
                    f"machine. Use --backend {others}."
                )
        super().__init__(message)


class MissingLibrary(Refusal, ImportError):
    """A package needs a shared library of the system that is not installed.

    Attributes:
        library: File of the library, such as "libgomp.so.1".
    """

    def __init__(self, library: str) -> None:
        self.library = library
        # Debian names a package for the library and the number of its interface.
        name, _, number = library.partition(".so.")
        package = f"{name.lower()}{number.partition('.')[0]}"
        super().__init__(
            f"The shared library {library} is not installed, and a package that simbridge uses "
            "needs it; small container images often lack it. On Debian and Ubuntu it is usually "
            f"installed with: sudo apt install {package}"
        )


class NoDisplay(Refusal, RuntimeError):
    """A window was requested where none can be opened.

    Attributes:
        what: Which window.
    """

    def __init__(self, what: str) -> None:
        self.what = what
        super().__init__(
            f"{what} needs a display, and DISPLAY is not set. Run without it and open the report "
            "instead, or run where there is a screen (over ssh: ssh -X)."
        )


# Inputs that cannot be used.


class InputFileError(Refusal, ValueError):
    """An input file that cannot be read, or has other content than expected.

    Attributes:
        path: The file.
        reason: What is wrong, as a sentence.
        line: The line at fault, from 1, or None.
        field: The field or column at fault, or None.
    """

    def __init__(
        self, path: str | Path, reason: str, *, line: int | None = None, field: str | None = None
    ) -> None:
        self.path = Path(path)
        self.line = line
        self.field = field
        self.reason = reason
        location = unquoted(path, LONGEST_PATH)
        if line is not None:
            location += f", line {line}"
        if field:
            location += f", {unquoted(field, LONGEST_VALUE)}"
        super().__init__(f"{location}: {reason}")


class UnusableSamples(Refusal, ValueError):
    """Samples that cannot be evaluated.

    Attributes:
        name: Which ones: "times", ...
        reason: What is wrong and what to do.
        index: The first at fault, counted from 0; None if all of them are.
    """

    def __init__(self, name: str, reason: str, *, index: int | None = None) -> None:
        self.name = name
        self.reason = reason
        self.index = index
        super().__init__(f"The {name} cannot be evaluated: {reason}")


class InvalidTrajectory(Refusal, ValueError):
    """Samples that do not make a trajectory.

    Attributes:
        reason: What is wrong, as a sentence.
        sample: The sample at fault, or None.
        field: The field at fault ("time", "x", "quaternion", ...), or None.
        source: Source of the samples, or "".
    """

    def __init__(
        self, reason: str, *, sample: int | None = None, field: str | None = None, source: str = ""
    ) -> None:
        self.reason = reason
        self.sample = sample
        self.field = field
        self.source = source
        location = "trajectory"
        if source:
            location += f" {quoted(source, LONGEST_VALUE)}"
        if sample is not None:
            location += f", sample {sample}"
        if field:
            location += f", {field}"
        super().__init__(f"{location}: {reason}")


class ScenarioError(Refusal, ValueError):
    """A scenario script that cannot be used.

    Attributes:
        path: The script.
        reason: Why not, as a clause.
        line: The line at fault, or None.
    """

    def __init__(self, path: str | Path, reason: str, *, line: int | None = None) -> None:
        self.path = Path(path)
        self.reason = reason
        self.line = line
        location = f", line {line}" if line is not None else ""
        super().__init__(f"The scenario {path}{location} cannot be used: {reason}.")


class LogReadError(Refusal, ValueError):
    """A file that is not the log of a run, or was cut off before the log began.

    Attributes:
        path: The file.
        reason: What is wrong, as a sentence.
    """

    def __init__(self, path: str | Path, reason: str) -> None:
        self.path = Path(path)
        self.reason = reason
        super().__init__(f"{path} cannot be read as a log: {reason}")


class NotARun(Refusal, ValueError):
    """A directory without a run, or without all of it.

    Attributes:
        path: The directory.
        missing: What is missing or broken, "" for all of it.
    """

    def __init__(self, path: str | Path, missing: str, reason: str = "") -> None:
        self.path = Path(path)
        self.missing = missing
        fault = reason or "it is missing"
        if missing:
            fault = f"{missing}: {reason}" if reason else f"{missing} is missing"
        readable = " that can be read" if missing and reason else ""
        super().__init__(f"{path} is not a run directory{readable} ({fault}).")


# Outputs that cannot be written.


class OutputError(SimbridgeError, OSError):
    """A file or directory that cannot be written.

    Attributes:
        path: The file or directory.
        reason: Why not, with what to do.
        errno: The system's error number; None if unknown.
        missing: The number of bytes that did not fit; None if unknown.
    """

    def __init__(
        self, path: str | Path, reason: str, number: int | None = None, missing: int | None = None
    ) -> None:
        self.path = Path(path)
        self.reason = reason
        self.missing = missing
        super().__init__(f"{path} cannot be written: {reason}.")
        self.errno = number


class LogWriteError(SimbridgeError, OSError):
    """The log of a run could not be opened, or writing it failed.

    Attributes:
        path: The log.
        bytes_written: The length of what was stored before.
        reason: The system's error number.
    """

    def __init__(self, path: str | Path, bytes_written: int, reason: int) -> None:
        self.path = Path(path)
        self.bytes_written = bytes_written
        self.reason = reason
        kept = "nothing was stored"
        if bytes_written:
            kept = f"the {bytes_written} bytes written before can be read"
        code = errno.errorcode.get(reason, reason)
        super().__init__(
            f"The log {path} cannot be written: {os.strerror(reason)} ({code}); {kept}. Check the "
            "disk's free space, its quota and the folder's permissions, or choose another folder."
        )
        self.errno = reason


# Plans that are refused before anything moves.

CollisionKind = Literal["self", "floor", "keep-out"]
ExceededQuantity = Literal[
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
        sample: The control period at fault, counted from 0 (for targets out of reach: the
            trajectory's sample).
        time: Time of the sample in the plan, s.
        value: What would happen, in SI units.
        limit: What is allowed, in SI units.
        joint: The joint's name, or None when no single joint is meant.
        remedy: The sentence at the end of the message that says what helps; "" without one.
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
        remedy: str = "",
    ) -> None:
        self.sample = sample
        self.time = time
        self.value = value
        self.limit = limit
        self.joint = joint
        self.remedy = remedy
        super().__init__(message)

    @property
    def reason(self) -> str:
        """The message without what helps."""
        return str(self).removesuffix(self.remedy).rstrip()


class TargetOutOfReach(PlanRefused):
    """A target that no joint positions attain.

    Attributes:
        distance: Distance to the nearest posture found, m; also `value`.
        angle: Angle to the nearest posture found, rad.
        every: Whether no target at all was attained.
    """

    def __init__(
        self, message: str, *, distance: float, angle: float, every: bool = False, **facts: Any
    ) -> None:
        self.distance = distance
        self.angle = angle
        self.every = every
        super().__init__(message, value=distance, limit=0.0, **facts)


class LimitExceeded(PlanRefused):
    """Setpoints past a limit of the arm.

    Attributes:
        quantity: "position" (rad), "velocity" (rad/s), "velocity jump" (from one period to the
            next, rad/s), "acceleration" (rad/s^2), "torque" (to hold the posture against gravity,
            N m), "tool speed" (m/s), "command lead" (with feedforward, rad) or "rounding" (of the
            tool's path by feedforward, m); `value` and `limit` are in these units.
    """

    def __init__(self, message: str, quantity: ExceededQuantity, **facts: Any) -> None:
        self.quantity = quantity
        super().__init__(message, **facts)


class PlannedCollision(PlanRefused):
    """A link that would come too near to another, the floor, or a keep-out zone of the cell.

    Its `value` is the clearance in m, negative when the bodies overlap.

    Attributes:
        kind: Which of these.
        bodies: The link, and what it would touch: another link, "the floor", or the name of the box
            or plane.
    """

    def __init__(
        self, message: str, kind: CollisionKind, bodies: tuple[str, str], **facts: Any
    ) -> None:
        self.kind = kind
        self.bodies = bodies
        super().__init__(message, limit=0.0, **facts)


# What ends a run while it moves.


class GuardViolation(SimbridgeError, RuntimeError):
    """A setpoint that the guard refused. The arm was stopped, and nothing passes until `recover()`.

    Attributes:
        rule: "latched", or the guard's: "velocity", "velocity jump", "distance", ...
        joint: The joint's name, or None.
        value: What was requested, in SI units, or None.
        limit: What is allowed, in SI units, or None.
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
        self.rule = rule
        self.joint = joint
        self.value = value
        self.limit = limit
        super().__init__(message)


class Interrupted(SimbridgeError, KeyboardInterrupt):
    """Ctrl-C, or another signal to stop, during a run.

    Attributes:
        number: Number of the signal, 2 for Ctrl-C.
    """

    cause: Cause = "interrupted"

    def __init__(self, message: str, number: int = 2) -> None:
        self.number = number
        super().__init__(message)


class UnforeseenError(SimbridgeError, RuntimeError):
    """A run or a session was ended by an error that is not one of simbridge's; `__cause__` is it.

    Such as the error of a user's own function. It carries what is known of the end: cause,
    aftermath and run directory.
    """

    def __init__(self, subject: str, error: str) -> None:
        self.subject = subject
        self.error = error
        super().__init__(f"The {subject} was ended by an unexpected error: {error}")


class InternalError(SimbridgeError, RuntimeError):
    """A bug in simbridge, in a process that cannot report it by itself. The arm was stopped.

    Attributes:
        where: Which process, such as "servo process".
        trace: The traceback, as text.
    """

    cause = "internal_error"

    def __init__(self, where: str, trace: str) -> None:
        self.where = where
        self.trace = trace
        lines = trace.strip().splitlines()
        reason = lines[-1] if lines else "unknown"
        super().__init__(f"The {where} ended because of a bug in simbridge: {reason}")
