"""Results of the suite that no solver has made: two solvers, three motions, one set of poses."""

from __future__ import annotations

from typing import Any

from simbridge.experiments.suite.results import (
    ArmFacts,
    Budget,
    CallTimes,
    LimitShares,
    MotionFacts,
    MotionResult,
    PoseErrors,
    PoseSetFacts,
    PoseSetResult,
    SolverFacts,
    SuiteResults,
    WorstMoment,
)

OWN = "damped-least-squares"
RIVAL = "pink"
MOTIONS = {
    "square": "tracking",
    "wrist_singularity": "tracking",
    "stream_10_hz": "stream",
}


def motion_result(motion: str, solver: str, error: float, **changes: Any) -> MotionResult:
    is_stream = MOTIONS[motion] == "stream"
    errors = PoseErrors(rms_m=error, max_m=2.0 * error, rms_rad=0.0, max_rad=0.0)
    values: dict[str, Any] = {
        "motion": motion,
        "solver": solver,
        "steps": 100,
        "steps_done": 100,
        "too_slow": False,
        "faults": [],
        "error": errors,
        "reference_error": errors if is_stream else None,
        "lag_s": 0.0,
        "shares": LimitShares(speed=0.5, acceleration=0.2, acceleration_rms=0.1, jerk=0.3),
        "beyond_limits_rad": 0.0,
        "flips": 0,
        "chatter": None,
        "drift_rad": None,
        "times": CallTimes(median_s=1e-5, p99_s=2e-5, ratio=1.0, calls=300, passes=3),
        "worst": WorstMoment(
            time_s=0.5,
            times_s=[0.4, 0.5, 0.6],
            target_m=[[0.0, 0.0, 0.0], [0.1, 0.0, 0.0], [0.2, 0.1, 0.0]],
            tool_m=[[0.0, 0.0, 0.0], [0.1, error, 0.0], [0.2, 0.1, 0.0]],
        ),
    }
    return MotionResult(**(values | changes))


def pose_result(solver: str, solved: float, **changes: Any) -> PoseSetResult:
    values: dict[str, Any] = {
        "pose_set": "random_poses",
        "solver": solver,
        "poses": 10,
        "faults": [],
        "solved": solved,
        "solved_at_once": solved,
        "median_calls": 5.0,
        "median_time_s": 1e-4,
        "p99_time_s": 1e-3,
        "median_error_m": 1e-9,
        "median_error_rad": 1e-9,
    }
    return PoseSetResult(**(values | changes))


def solver_facts(name: str, origin: str, velocity_limits: Any) -> SolverFacts:
    return SolverFacts(
        name=name,
        origin=origin,
        velocity_limits=velocity_limits,
        task="pose",
        settings={},
        versions={"pin-pink": "3.1"} if origin == "rival" else {},
    )


def make_results() -> SuiteResults:
    """Two solvers: the rival is better on the stream, and worse elsewhere."""
    motion_results = []
    for motion in MOTIONS:
        own_error, rival_error = (0.004, 0.002) if motion == "stream_10_hz" else (0.0, 0.001)
        motion_results.append(motion_result(motion, OWN, own_error))
        motion_results.append(motion_result(motion, RIVAL, rival_error))
    return SuiteResults(
        experiment="solvers",
        simbridge="0.1.0",
        python="3.11",
        processor="2 × a processor",
        parameters={},
        arm=ArmFacts(
            name="ur10",
            title="UR10",
            joints=6,
            period_s=0.008,
            task="pose",
            checksum="",
            speed_limits=[2.0] * 6,
            acceleration_limit=20.0,
            jerk_limit=10000.0,
        ),
        budget=Budget(
            motion_time_s=20.0,
            passes=3,
            pose_time_s=1.0,
            pose_calls=2500,
            pose_motion_s=20.0,
            tolerance_m=1e-3,
            tolerance_rad=2e-3,
        ),
        baseline=OWN,
        solvers=[
            solver_facts(OWN, "simbridge", "none"),
            solver_facts(RIVAL, "rival", "enforced"),
        ],
        absent=[],
        motions=[
            MotionFacts(
                name=name,
                group=group,
                description=f"About {name}.",
                steps=100,
                duration_s=0.8,
                loops=1,
                out_of_reach=0.0,
                jumps=False,
            )
            for name, group in MOTIONS.items()
        ],
        pose_sets=[
            PoseSetFacts(name="random_poses", description="Random.", poses=10, reachable=True)
        ],
        motion_results=motion_results,
        pose_results=[pose_result(OWN, 1.0), pose_result(RIVAL, 0.9)],
        notes=["A note."],
        complete=True,
    )
