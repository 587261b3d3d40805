"""What `simbridge identify --json` prints, as a type: SI units; one standard deviation for every uncertainty."""

from __future__ import annotations

from typing import TypedDict


class Spread(TypedDict):
    """Residuals, rad: the Euclidean distance over all joints."""

    median: float
    p99: float


class TuningDeviation(TypedDict):
    """One standard deviation each, 1/s^2 and s."""

    gain: float
    lookahead_s: float


class ServojResult(TypedDict):
    """Tuning of servoj; `phase_s`: how long after the beginning of a cycle calls begin (null without commands)."""

    gain: float
    lookahead_s: float
    phase_s: float | None
    call_s: float | None
    uncertainty: TuningDeviation
    residual_rad: Spread


class PredictionResult(TypedDict):
    """Predicted minus recorded joint targets, over all joints."""

    rms_rad: float
    median_rad: float
    max_rad: float
    restarts: int


class Rms(TypedDict):
    rms: float


class JointLag(TypedDict):
    """One joint; a lag of null: it moved too little."""

    lag_s: float | None
    residual_rad: Rms


class JointServoResult(TypedDict):
    """Lag of all joints together, with one standard deviation, and of each."""

    lag_s: float
    uncertainty: dict[str, float]
    residual_rad: Rms
    per_joint: list[JointLag]


class KinematicsResult(TypedDict):
    """TCP poses compared; `tcp` in the flange: x y z (m) and a rotation vector (rad), null where it is uncertain."""

    residual_m: Rms
    tcp: list[float] | None
    source: str
    uncertainty: dict[str, list[float] | None]


class Measured(TypedDict):
    value: float
    uncertainty: float


class FrictionResult(TypedDict):
    """Of each joint, null where it moved too little; and one standard deviation of each, by the same names."""

    coulomb_a: list[float | None]
    viscous_a_s_per_rad: list[float | None]
    uncertainty: dict[str, list[float | None]]


class Identification(TypedDict):
    """What a recording shows; null what it does not, with the reason under `not_identified`."""

    robot: str | None
    cycle_s: float | None
    servoj: ServojResult | None
    prediction: PredictionResult | None
    joint_servo: JointServoResult | None
    kinematics: KinematicsResult | None
    payload_kg: Measured | None
    friction: FrictionResult | None
    not_identified: dict[str, str]
    notes: list[str]
