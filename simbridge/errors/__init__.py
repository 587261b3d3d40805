"""The error tree: one root, and what every error carries.

An error is a fact about the world with a remedy: the message says what, where, how much and what to do, in one
paragraph; the same facts are fields, so that a program need not read the message. Controllers, real and emulated, have
their own errors under the same root: `simbridge/ur/errors.py` and `simbridge/emulator/errors.py`.
"""

from simbridge.errors.choices import (
    ForeignSolverError,
    InvalidHome,
    InvalidParameter,
    MissingPackage,
    NoClosedForm,
    NoDisplay,
    UncompilableCode,
    UnknownName,
    UnstableSolver,
    suggest,
)
from simbridge.errors.inputs import (
    InputFileError,
    InvalidTrajectory,
    LogReadError,
    NotARun,
    ScenarioError,
    UnusableSamples,
)
from simbridge.errors.outputs import LogWriteError, OutputDirectoryError, OutputFileError
from simbridge.errors.plans import (
    FloorCollision,
    JointLimitExceeded,
    KeepOutViolation,
    PlanRefused,
    SelfCollision,
    TargetOutOfReach,
    ToolSpeedExceeded,
    TorqueLimitExceeded,
    VelocityJumpExceeded,
    VelocityLimitExceeded,
)
from simbridge.errors.root import SimbridgeError
from simbridge.errors.running import GuardViolation, InternalError, Interrupted

__all__ = [
    "FloorCollision",
    "ForeignSolverError",
    "GuardViolation",
    "InputFileError",
    "InternalError",
    "Interrupted",
    "InvalidHome",
    "InvalidParameter",
    "InvalidTrajectory",
    "JointLimitExceeded",
    "KeepOutViolation",
    "LogReadError",
    "LogWriteError",
    "MissingPackage",
    "NoClosedForm",
    "NoDisplay",
    "NotARun",
    "OutputDirectoryError",
    "OutputFileError",
    "PlanRefused",
    "ScenarioError",
    "SelfCollision",
    "SimbridgeError",
    "TargetOutOfReach",
    "ToolSpeedExceeded",
    "TorqueLimitExceeded",
    "UncompilableCode",
    "UnknownName",
    "UnstableSolver",
    "UnusableSamples",
    "VelocityJumpExceeded",
    "VelocityLimitExceeded",
    "suggest",
]
