"""Defines the results of the suite: the content of its results.json.

All values are in SI units; None stands for a quantity that a motion or a solver does not have. The
page and the tables are made from these results alone.
"""

from __future__ import annotations

from typing import Any

import msgspec

from simbridge.ik import VelocityLimits


class CallFault(msgspec.Struct, frozen=True, kw_only=True):
    """A kind of failure in a solver's calls.

    Attributes:
        kind: The name of the exception, "not a number" for an answer with NaN or infinity, or
            "invalid answer" for any other answer that is not joint positions.
        count: Number of calls that failed in this way.
        first_call: Index of the first such call: the sample of a motion, the pose of a set.
        message: Message of the first such failure.
    """

    kind: str
    count: int
    first_call: int
    message: str


class PoseErrors(msgspec.Struct, frozen=True, kw_only=True):
    """Distances and angles between two motions of the tool.

    Attributes:
        rms_m: RMS distance, m.
        max_m: Largest distance, m.
        rms_rad: RMS angle, rad.
        max_rad: Largest angle, rad.
    """

    rms_m: float
    max_m: float
    rms_rad: float
    max_rad: float


class LimitShares(msgspec.Struct, frozen=True, kw_only=True):
    """Joint speed, acceleration and jerk as shares of their limits; above 1 exceeds the limit.

    Attributes:
        speed: Largest speed of any joint.
        acceleration: Largest acceleration of any joint.
        acceleration_rms: RMS acceleration over samples and joints: lower is smoother.
        jerk: Largest jerk of any joint.
    """

    speed: float
    acceleration: float
    acceleration_rms: float
    jerk: float


class CallTimes(msgspec.Struct, frozen=True, kw_only=True):
    """Durations of a solver's calls along a motion.

    Attributes:
        median_s: Median over the calls of all passes, s.
        p99_s: 99th percentile over the calls of all passes, s.
        ratio: Median duration in a pass divided by that of the baseline solver in the same pass;
            the median over the passes. None if the baseline solver has no such pass.
        calls: Number of calls.
        passes: Number of times that the motion was completed.
    """

    median_s: float
    p99_s: float
    ratio: float | None
    calls: int
    passes: int


class WorstMoment(msgspec.Struct, frozen=True, kw_only=True):
    """The path of target and tool around the largest position error of a motion.

    Attributes:
        time_s: Time of the largest error on the motion's clock, s.
        times_s: Times (K,) of the samples, s; at most 100.
        target_m: Positions (K, 3) of the target in base_link, m.
        tool_m: Positions (K, 3) of the tool at the solver's joint positions, m.
    """

    time_s: float
    times_s: list[float]
    target_m: list[list[float]]
    tool_m: list[list[float]]


class MotionResult(msgspec.Struct, frozen=True, kw_only=True):
    """The result of one solver along one motion.

    Attributes:
        motion: Name of the motion.
        solver: Name of the solver.
        steps: Number of calls that the motion asks for.
        steps_done: Number of calls within the time that a solver has for a motion. The other
            figures cover these calls only.
        too_slow: Whether the solver's time was over before the end of the motion.
        faults: Failures by kind; after a failed call the arm stays where it is.
        error: Target minus solution.
        reference_error: Ideal motion minus solution; None if the targets are the ideal motion.
        lag_s: Delay of the solution behind the ideal motion, s; None if it cannot be determined.
        shares: Joint speed, acceleration and jerk as shares of their limits; None for fewer than
            three steps.
        beyond_limits_rad: Largest excess over a joint's position limit, rad (m for a slide).
        flips: Number of periods in which a joint jumps although the target does not.
        chatter: RMS joint acceleration while the target is out of reach, as a share of the limit;
            None if the target is always in reach.
        drift_rad: Largest change of a joint from the end of the first lap to the end of the last,
            rad; None for a motion that is not a closed loop.
        times: Durations of the calls.
        worst: Target and tool around the largest error.
    """

    motion: str
    solver: str
    steps: int
    steps_done: int
    too_slow: bool
    faults: list[CallFault]
    error: PoseErrors
    reference_error: PoseErrors | None
    lag_s: float | None
    shares: LimitShares | None
    beyond_limits_rad: float
    flips: int
    chatter: float | None
    drift_rad: float | None
    times: CallTimes
    worst: WorstMoment


class PoseSetResult(msgspec.Struct, frozen=True, kw_only=True):
    """The result of one solver on one set of single poses.

    Attributes:
        pose_set: Name of the set.
        solver: Name of the solver.
        poses: Number of poses in the set, all of which were attempted.
        faults: Failures by kind; a failed call ends the attempt.
        solved: Share of poses that were solved within the budget.
        solved_at_once: Share of poses that were solved from their first start, without a restart.
        median_calls: Median number of calls for a solved pose; None if none was solved.
        median_time_s: Median computing time for a solved pose, s; None if none was solved.
        p99_time_s: 99th percentile of the computing time for a solved pose, s; None if none was
            solved.
        median_error_m: Median over all poses of the distance that remains, m.
        median_error_rad: Median over all poses of the angle that remains, rad.
    """

    pose_set: str
    solver: str
    poses: int
    faults: list[CallFault]
    solved: float
    solved_at_once: float
    median_calls: float | None
    median_time_s: float | None
    p99_time_s: float | None
    median_error_m: float
    median_error_rad: float


class MotionFacts(msgspec.Struct, frozen=True, kw_only=True):
    """A motion that every solver follows.

    Attributes:
        name: Name of the motion.
        group: "tracking" for dense targets, "stream" for the held targets of a stream.
        description: Sentence that describes the motion.
        steps: Number of targets, one per control period.
        duration_s: Duration of the motion, s.
        loops: Number of laps of a closed loop; 1 for any other motion.
        out_of_reach: Share of targets that the arm does not reach.
        jumps: Whether the target ever jumps by more than 0.1 m or 0.5 rad in a period.
    """

    name: str
    group: str
    description: str
    steps: int
    duration_s: float
    loops: int
    out_of_reach: float
    jumps: bool


class PoseSetFacts(msgspec.Struct, frozen=True, kw_only=True):
    """A set of single poses that every solver solves.

    Attributes:
        name: Name of the set.
        description: Sentence that describes the set.
        poses: Number of poses.
        reachable: Whether the arm reaches the poses.
    """

    name: str
    description: str
    poses: int
    reachable: bool


class SolverFacts(msgspec.Struct, frozen=True, kw_only=True):
    """A solver that takes part.

    Attributes:
        name: Name of the solver in the tables.
        origin: "simbridge", "rival" for a solver of another library, or "custom".
        velocity_limits: "enforced" if the solver keeps the joint velocity limits in each step, else
            "none".
        task: Part of a target that the solver attains: "pose", "axis" or "position".
        settings: All settings of the solver by name.
        versions: Version of each package that the solver calls, by name.
    """

    name: str
    origin: str
    velocity_limits: VelocityLimits
    task: str
    settings: dict[str, Any]
    versions: dict[str, str]


class AbsentSolver(msgspec.Struct, frozen=True, kw_only=True):
    """A solver that cannot take part.

    Attributes:
        name: Name of the solver.
        reason: Why it cannot take part, and what to do, such as the command that installs it.
    """

    name: str
    reason: str


class ArmFacts(msgspec.Struct, frozen=True, kw_only=True):
    """The arm of the suite.

    Attributes:
        name: Name of the arm for `--robot`.
        title: Name of the arm for people.
        joints: Number of joints.
        period_s: Control period, s: the time between two calls.
        task: Part of a target that the arm attains.
        checksum: SHA-256 of the arm's kinematics.
        speed_limits: Velocity limits of the joints, rad/s (m/s for a slide).
        acceleration_limit: Acceleration limit of every joint, rad/s^2.
        jerk_limit: Jerk limit of every joint, rad/s^3.
    """

    name: str
    title: str
    joints: int
    period_s: float
    task: str
    checksum: str
    speed_limits: list[float]
    acceleration_limit: float
    jerk_limit: float


class Budget(msgspec.Struct, frozen=True, kw_only=True):
    """The time and the calls that each solver has for a motion, and for a single pose.

    Attributes:
        motion_time_s: Time for a motion with all its passes, s.
        passes: Number of times that every motion is followed.
        pose_time_s: Computing time for a pose with all its attempts, s.
        pose_calls: Number of calls for a pose with all its attempts.
        pose_motion_s: Time in which an arm makes these calls, one per control period, s.
        tolerance_m: Distance within which a pose is solved, m.
        tolerance_rad: Angle within which a pose is solved, rad.
    """

    motion_time_s: float
    passes: int
    pose_time_s: float
    pose_calls: int
    pose_motion_s: float
    tolerance_m: float
    tolerance_rad: float


class SuiteResults(msgspec.Struct, kw_only=True):
    """Contents of results.json of `simbridge experiment solvers`.

    Attributes:
        experiment: Name of the experiment, "solvers".
        simbridge: Version of simbridge.
        python: Version of Python.
        processor: Number and model of the processors.
        parameters: The parameters of the command.
        arm: The arm.
        budget: Time and calls that each solver has for a motion, and for a single pose.
        baseline: Name of the solver with which all times are compared.
        solvers: The solvers that take part.
        absent: The solvers that cannot take part.
        motions: The motions.
        pose_sets: The sets of single poses.
        motion_results: A result for each motion and solver, as far as they are complete.
        pose_results: A result for each set and solver, as far as they are complete.
        notes: Sentences on what was chosen or left out.
        complete: Whether all results are there.
    """

    experiment: str
    simbridge: str
    python: str
    processor: str
    parameters: dict[str, Any]
    arm: ArmFacts
    budget: Budget
    baseline: str
    solvers: list[SolverFacts]
    absent: list[AbsentSolver]
    motions: list[MotionFacts]
    pose_sets: list[PoseSetFacts]
    motion_results: list[MotionResult]
    pose_results: list[PoseSetResult]
    notes: list[str]
    complete: bool
