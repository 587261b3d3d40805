"""Explains in a sentence what limits the arm at present."""

from __future__ import annotations

from simbridge.browser.snapshot import Snapshot
from simbridge.text import degrees, millimetres

# Nearer than this, the arm is at the goal.
MAX_DISTANCE_AT_GOAL_M = 1e-4
MAX_ANGLE_AT_GOAL_RAD = 1e-3

# Kind of a session's cause -> the sentence that explains it to a user.
EXPLANATIONS = {
    "joint_velocity": "{subject} is at its velocity limit ({number} of the arm's).",
    "acceleration": "The goal moves faster than the joints can accelerate (now {number}).",
    "joint_limit": "{subject} is at the end of its range ({number} left).",
    "tool_speed": "The tool is at its speed limit ({number}).",
    "singularity": "Slowed near a singularity of {subject} (smallest singular value {number}).",
    "obstacle": "Slowed near an obstacle or the arm itself ({subject}, {number} apart).",
    "reach": "The goal is out of reach by {number}.",
    "reach_turn": "The goal is out of reach by a rotation of {number}.",
    "solver_lag": "The solver is still {number} from the goal.",
    "solver_lag_turn": "The solver's orientation is still {number} from the goal.",
    "catching_up": "Goals stopped for a while: the arm is catching up at {number} of its limits.",
    "engage_again": "After a pause, the goal reappeared {number} away: engage again.",
    "engage_again_turn": "After a pause, the goal reappeared rotated by {number}: engage again.",
    "stale": "No goal received for {number}.",
    "max_jump": "The goal jumped too far ({number}).",
    "max_turn": "The goal rotated too far ({number}).",
    "solver": "A step of the solver takes longer than a control period ({number}).",
    "loop": "The control loop has been stalled for {number}.",
    "speed_slider": "Slowed to {number} of full speed.",
    "late_commands": "Commands were late: returning to full speed (now {number} of it).",
    "payload": "The controller's payload was changed to {number}.",
    "halted": "No one is dragging the goal.",
    "disengaged": "The arm is not engaged.",
    "paused": "The program is paused at the pendant.",
    "not_engaged": "The arm is not engaged.",
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
        # The distance out of reach was said above.
        if cause.kind == "reach" and excess > 0.0:
            continue
        explanation = EXPLANATIONS[cause.kind]
        limits.append(explanation.format(subject=cause.short_subject, number=cause.number))
    if limits:
        return " ".join(limits)

    is_near = snapshot.distance < MAX_DISTANCE_AT_GOAL_M
    if is_near and snapshot.angle < MAX_ANGLE_AT_GOAL_RAD:
        return "The arm is at the goal."

    remaining = f"{millimetres(snapshot.distance)} mm"
    if task != "position":
        remaining += f" and {degrees(snapshot.angle)}°"
    return f"The arm is moving: {remaining} remaining. Nothing limits it."
