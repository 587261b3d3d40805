"""The result of a trial of the campaign."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class Result:
    """The result of a trial.

    Attributes:
        seed: Its seed.
        robot: The arm.
        link: The link that commanded the controller: "ur_rtde" or "rtde".
        registers: The half of the registers that carried the commands: "lower" or "upper".
        phase: When the first fault came; "live session" in a trial of a session.
        faults: Names of those that came in time.
        feedforward: Whether the run was with feedforward.
        cause: As in summary.json; None without one.
        violations: What must not be.
        step_share: The largest step between two setpoints, as a share of a joint's velocity limit.
        evidence: What the run said.
    """

    seed: int
    robot: str
    link: str
    registers: str
    phase: str
    faults: list[str]
    feedforward: bool = False
    cause: str | None = None
    violations: list[str] = field(default_factory=list)
    step_share: float = 0.0
    evidence: list[str] = field(default_factory=list)
