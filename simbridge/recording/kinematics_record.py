"""What a run records of the kinematics that it used, and how that is shown."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypedDict

from simbridge.resources import AnyPath
from simbridge.robot.calibration import calibrated_chain, chain_from_base
from simbridge.robot.calibration_difference import largest_difference
from simbridge.robot.parts import DhTable, RosCalibration
from simbridge.robot.robot import Robot
from simbridge.text import millimetres, milliradians


class KinematicsSummary(TypedDict):
    """The kinematics of a run.

    `source` is "nominal", "given" (by --kinematics or the cell, from `file`) or "controller"; `calibrated` is whether
    they differ from the nominal ones; `hash` is that of ROS's calibration file; `controller_difference` is the largest
    distance and angle between the tool by these kinematics and by the controller's own, `{position_m, rotation_rad}`.
    """

    source: str
    calibrated: bool
    file: str | None
    hash: str | None
    controller_difference: dict[str, float] | None


def kinematics_settings(
    robot: Robot, source: AnyPath | None, reported: DhTable | None
) -> dict[str, Any]:
    """The table `kinematics` of settings.toml: the chain, its source, and how far the controller's own is from it.

    `source` is as given (see `with_kinematics`), `reported` the table of the run's controller. What does not apply is
    None.
    """
    file = None if source is None or source == "nominal" else str(Path(source).resolve())
    own, difference = robot.calibration, None
    if reported is not None:
        distance, angle = largest_difference(
            chain_from_base(robot), calibrated_chain(reported), robot.tcp
        )
        difference = {"position_m": distance, "rotation_rad": angle}
    return {
        "checksum": robot.checksum,
        "placements": robot.placements.reshape(-1, 16).tolist(),
        "prismatic": robot.prismatic.tolist(),
        "source": "given"
        if file
        else "nominal"
        if reported is None or source == "nominal"
        else "controller",
        "file": file,
        "dh": asdict(own) if isinstance(own, DhTable) else None,
        "ros": {"hash": own.hash, "frames": list(map(list, own.frames))}
        if isinstance(own, RosCalibration)
        else None,
        "controller_difference": difference,
    }


def kinematics_summary(recorded: Mapping[str, Any]) -> KinematicsSummary:
    """What summary.json holds of the table `kinematics` of settings.toml."""
    ros = recorded.get("ros")
    return {
        "source": recorded["source"],
        "calibrated": (recorded.get("dh") or ros) is not None,
        "file": recorded.get("file"),
        "hash": (ros["hash"] or None) if ros else None,
        "controller_difference": recorded.get("controller_difference"),
    }


def kinematics_words(kinematics: Mapping[str, Any]) -> str:
    """A `KinematicsSummary` as terminal and pages show it."""
    words = "calibrated for this arm" if kinematics["calibrated"] else "nominal"
    named = [
        name
        for name in (kinematics["file"] and Path(kinematics["file"]).name, kinematics["hash"])
        if name
    ]
    words += f" ({', '.join(named)})" if named and kinematics["calibrated"] else ""
    apart = kinematics["controller_difference"]
    if apart is None or kinematics["source"] == "controller":
        return words
    distance, angle = millimetres(apart["position_m"]), milliradians(apart["rotation_rad"])
    return f"{words}; at the tool at most {distance} mm and {angle} mrad from the controller's own"
