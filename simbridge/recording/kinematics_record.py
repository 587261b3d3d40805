"""The kinematics of a run: in its record, in its summary, and in words."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TypedDict

from simbridge.recording.run_record import DifferenceRecord, KinematicsRecord, RosKinematicsRecord
from simbridge.resources import AnyPath
from simbridge.robot.calibration import calibrated_chain, chain_from_base
from simbridge.robot.calibration_difference import largest_difference
from simbridge.robot.parts import DhTable, RosCalibration
from simbridge.robot.robot import Robot
from simbridge.text import millimetres, milliradians


class KinematicsSummary(TypedDict):
    """The kinematics of a run.

    Attributes:
        source: "nominal", "given" (by --kinematics or the cell, from `file`) or "controller".
        calibrated: Whether they differ from the nominal ones.
        file: The calibration file or the run that they come from.
        hash: The hash in ROS's calibration file.
        controller_difference: The largest distance and angle between the tool by these kinematics
            and by the controller's own, `{position_m, rotation_rad}`.
    """

    source: str
    calibrated: bool
    file: str | None
    hash: str | None
    controller_difference: dict[str, float] | None


def record_kinematics(
    robot: Robot, source: AnyPath | None, reported: DhTable | None
) -> KinematicsRecord:
    """Return the table [kinematics] of settings.toml.

    Args:
        robot: The arm.
        source: What was chosen as the source of its kinematics (see `with_kinematics`); None if
            nothing was chosen.
        reported: The table that the run's controller reports; None in simulation.
    """
    # The source of the kinematics, as it is recorded, and the file if it is one.
    file = None
    if source is not None and source != "nominal":
        file = str(Path(source).resolve())

    if file is not None:
        recorded_source = "given"
    elif reported is None or source == "nominal":
        recorded_source = "nominal"
    else:
        recorded_source = "controller"

    # The difference from the kinematics of the controller.
    difference = None
    if reported is not None:
        distance, angle = largest_difference(
            chain_from_base(robot), calibrated_chain(reported), robot.tcp
        )
        difference = DifferenceRecord(distance, angle)

    # The calibration itself, so that the run can be repeated without its file.
    calibration = robot.calibration
    dh = None
    ros = None
    if isinstance(calibration, DhTable):
        dh = asdict(calibration)
    elif isinstance(calibration, RosCalibration):
        frames = [list(frame) for frame in calibration.frames]
        ros = RosKinematicsRecord(hash=calibration.hash, frames=frames)

    return KinematicsRecord(
        checksum=robot.checksum,
        placements=robot.placements.reshape(-1, 16).tolist(),
        prismatic=robot.prismatic.tolist(),
        source=recorded_source,
        file=file,
        dh=dh,
        ros=ros,
        controller_difference=difference,
    )


def summarize_kinematics(record: KinematicsRecord) -> KinematicsSummary:
    """Return the part of summary.json about the kinematics."""
    difference = record.controller_difference
    return {
        "source": record.source,
        "calibrated": record.is_calibrated,
        "file": record.file,
        "hash": None if record.ros is None else (record.ros.hash or None),
        "controller_difference": None
        if difference is None
        else {"position_m": difference.position_m, "rotation_rad": difference.rotation_rad},
    }


def describe_kinematics(kinematics: KinematicsSummary) -> str:
    """Return the kinematics in words, as terminal and pages show them."""
    text = "calibrated for this arm" if kinematics["calibrated"] else "nominal"

    names = []
    if kinematics["file"]:
        names.append(Path(kinematics["file"]).name)
    if kinematics["hash"]:
        names.append(kinematics["hash"])
    if names and kinematics["calibrated"]:
        text += f" ({', '.join(names)})"

    difference = kinematics["controller_difference"]
    if difference is None or kinematics["source"] == "controller":
        return text
    distance = millimetres(difference["position_m"])
    angle = milliradians(difference["rotation_rad"])
    return (
        f"{text}; at the tool, they differ by at most {distance} mm and {angle} mrad from "
        "the controller's own"
    )
