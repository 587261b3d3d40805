"""What was asked for does not exist, does not fit, or cannot be had here."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from simbridge.errors.root import SimbridgeError


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


class UnstableSolver(SimbridgeError, ValueError):
    """Solver settings at or past the stability bound.

    Attributes:
        kappa: dt^2 kp/m of the worst axis.
        damping: dt kd/m of the same axis.
        needed: Virtual mass (kg) and inertia (kg m^2) at the tool above which the gains are borne; None where unknown.
        bare: Whether the twin has no mass or no inertia at the tool, so that only its last link resists the pull.
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
        self.kappa = kappa
        self.damping = damping
        self.needed = needed
        self.bare = bare
        if accumulating:
            reason = f" (with dt kd/m = {damping:.4g} a little less)" if damping > 0.0 else ""
            super().__init__(
                "The solver would diverge with these settings: velocity accumulation needs kappa = dt^2 kp/m below "
                f"1/9{reason}, but it is {kappa:.4g}. Lower kp or kd, or raise the virtual tool mass."
            )
            return
        bound = "kappa = dt^2 kp/m must stay below 8"
        value = f"it is {kappa:.4g}"
        if damping > 0.0:
            bound = "kappa + 2 dt kd/m must stay below 8 and dt kd/m below 4 (kappa = dt^2 kp/m)"
            value = f"they are {kappa + 2.0 * damping:.4g} and {damping:.4g}"
        if bare:
            value += " because with a tool_mass or tool_inertia of 0 only the twin's last link resists the pull"
        masses = ""
        if needed is not None:
            masses = f" (tool_mass above {needed[0]:.3g} kg and tool_inertia above {needed[1]:.3g} kg m^2)"
        super().__init__(
            f"The solver would diverge with these settings: {bound}, but {value}. Lower kp, kd or dt, or raise the "
            f"virtual tool mass{masses}; kappa up to 4 converges without overshoot."
        )


class NoClosedForm(SimbridgeError, ValueError):
    """An arm whose inverse kinematics has no closed form here.

    Attributes:
        robot: The arm.
        reason: What sets it apart, as a clause.
    """

    def __init__(self, robot: str, reason: str) -> None:
        self.robot = robot
        self.reason = reason
        super().__init__(
            f"The solver closed-form cannot solve for {robot}: {reason}. It knows UR arms with their nominal "
            "kinematics (the axes of a calibrated arm are not quite parallel) and planar arms of two links. Use "
            "another solver, such as forward-dynamics, which takes any chain."
        )


class ForeignSolverError(SimbridgeError, RuntimeError):
    """A solver given as a function that cannot be had, or that failed.

    Attributes:
        name: The function.
        reason: What went wrong, as a predicate.
    """

    def __init__(self, name: str, reason: str) -> None:
        self.name = name
        self.reason = reason
        super().__init__(f"The solver {name} {reason}.")


class UncompilableCode(SimbridgeError, TypeError):
    """A function that is to be compiled holds what compiled code may not.

    Attributes:
        name: The function that was to be compiled, with all that it calls.
        reason: What numba says, with the lines it is about.
    """

    def __init__(self, name: str, reason: str) -> None:
        self.name = name
        self.reason = reason
        super().__init__(
            f"{name} cannot be compiled: such code holds only the Python that simbridge/ik/codegen/dialect.py lists: "
            f"math.sqrt, not np.sqrt; no arrays of its module, one kind for each name. Numba says: {reason.strip()}"
        )


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
