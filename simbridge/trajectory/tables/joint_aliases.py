"""The names that files give to joint positions: one line per alias.

A name is compared in lower case, without its unit and whatever separates its words: `Joint_1 [rad]`
and `joint.1` are alike.
"""

from __future__ import annotations

# Vectors of joint positions with numbered components: `q_0`, `joint_1`, `actual_q[5]`. The end of a
# vector's name, its words joined; other words may come before.
JOINT_VECTORS = (
    "q",
    "qactual",
    "qmeasured",
    "qtarget",
    "qcommand",
    "qcmd",
    "qdesired",
    "qdes",
    "actualq",
    "targetq",
    "j",
    "jpos",
    "joint",
    "joints",
    "jointpos",
    "jointposition",
    "jointpositions",
    "jointangle",
    "jointangles",
    "jointvalue",
    "jointvalues",
    "jointcommand",
    "jointcommands",
    "jointtarget",
    "jointtargets",
    "theta",
    "command",
    "commands",
    "setpoint",
    "setpoints",
)
# The words of an alias at most: "joint positions".
MAX_JOINT_ALIAS_WORDS = 2

# What may follow a joint's name or number: `shoulder_pan_joint/position`, `joint_1_angle`.
POSITION_WORDS = ("position", "positions", "pos", "angle", "angles", "q")
# Words of names that are those of other quantities of a joint than its position.
OTHER_QUANTITIES = (
    "velocity",
    "velocities",
    "vel",
    "speed",
    "speeds",
    "qd",
    "dq",
    "acceleration",
    "accelerations",
    "acc",
    "accel",
    "qdd",
    "ddq",
    "jerk",
    "effort",
    "efforts",
    "torque",
    "torques",
    "tau",
    "moment",
    "moments",
    "force",
    "forces",
    "current",
    "currents",
    "voltage",
    "temperature",
    "temperatures",
    "error",
    "errors",
    "delta",
    "deltas",
    "offset",
    "offsets",
    "min",
    "max",
    "limit",
    "limits",
    "tolerance",
    "tolerances",
    "std",
    "variance",
    "covariance",
    "gain",
    "gains",
    "mode",
    "modes",
    "status",
    "raw",
    "encoder",
    "encoders",
)
# What comes before `position` in the name of a field of JointState, its words joined.
JOINT_STATES = ("jointstate", "jointstates")
