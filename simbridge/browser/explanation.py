"""Explains in a sentence what limits the arm at present."""

from __future__ import annotations

from simbridge.browser.snapshot import Snapshot
from simbridge.text import degrees, millimetres

# Nearer than this, the arm is at the goal.
MAX_DISTANCE_AT_GOAL_M = 1e-4
MAX_ANGLE_AT_GOAL_RAD = 1e-3

# A session's causes, as a person says them.
CAUSES = {
    "joint_velocity": "A joint is at its velocity limit",
    "joint_limit": "A joint is near the end of its range",
    "tool_speed": "The tool is at its speed limit",
    "singularity": "The arm is slowed near a singularity",
    "obstacle": "The arm is slowed near an obstacle, or near itself",
    "reach": "The goal is out of reach",
    "stale": "No goal has come for a while",
    "max_jump": "The goal jumped too far",
    "max_turn": "The goal turned too far",
    "solver": "The solver takes longer than a period",
    "speed_slider": "The speed is scaled down",
    "late_commands": "Commands come late",
    "payload": "The controller's payload was changed",
    "halted": "Nobody holds the goal",
    "disengaged": "The arm is not engaged",
    "paused": "The program is paused at the pendant",
    "not_engaged": "The arm is not engaged",
}


def explain_motion(snapshot: Snapshot, excess: float, task: str) -> str:
    """Return what limits the arm, or that it is at the goal or on its way.

    Args:
        snapshot: The arm now.
        excess: Distance by which the goal is out of reach, m.
        task: The part of the target that the solver is to attain.
    """
    limits = []
    if excess > 0.0:
        limits.append(f"The goal is {millimetres(excess)} mm out of reach.")
    for cause in snapshot.causes:
        name, _, facts = cause.partition(" ")
        # The distance out of reach was said above.
        if name == "reach" and excess > 0.0:
            continue
        sentence = CAUSES.get(name, name)
        limits.append(f"{sentence}: {facts}." if facts else f"{sentence}.")
    if limits:
        return " ".join(limits)

    is_near = snapshot.distance < MAX_DISTANCE_AT_GOAL_M
    if is_near and snapshot.angle < MAX_ANGLE_AT_GOAL_RAD:
        return "The arm is at the goal."

    remaining = f"{millimetres(snapshot.distance)} mm"
    if task != "position":
        remaining += f" and {degrees(snapshot.angle)}°"
    return f"The arm is on its way: {remaining} are left. Nothing limits it."
