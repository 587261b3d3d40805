"""Lists the quantities that a log does not have, and what each of them would have shown."""

from __future__ import annotations

from simbridge.judging.log import ControllerLog, Missing

# The constants say what a quantity of a log shows, as clauses that follow "it would show".
TARGETS = "which motion law the controller followed, and how far the joints trail their targets"
MEASURED = "how far the arm was from where its controller wanted it"
RATES = "the tuning of servoj, or the ramps of speedj and movej"
COMMANDS = "how far the arm trails what was sent, and which commands came late or jumped"
SPEED_SCALING = "whether the controller slowed the motion down"
SAFETY_MODE = "whether and why the safety system stopped the arm"
PROGRAM_STATE = "whether a program ran, and when it ended"
RESULTS = "whether, when and why the trajectory controller gave up"


def find_missing(log: ControllerLog) -> tuple[Missing, ...]:
    """Return the quantities that a log does not have."""
    is_trajectory_controller = log.reference is not None or bool(log.goals)
    has_commands = (
        log.position_commands is not None
        or log.speed_commands is not None
        or is_trajectory_controller
    )
    # Name of each quantity, whether the log has it, and what it shows.
    quantities = [
        ("target_q", log.target_q is not None, TARGETS),
        ("actual_q", log.actual_q is not None, MEASURED),
        ("target_qd", log.target_qd is not None, RATES),
        ("target_qdd", log.target_qdd is not None, RATES),
        ("commands", has_commands, COMMANDS),
        ("results of goals", bool(log.results) or not is_trajectory_controller, RESULTS),
        ("speed scaling", log.speed_scaling is not None, SPEED_SCALING),
        ("safety mode", log.safety_mode is not None, SAFETY_MODE),
        ("program state", log.program_state is not None, PROGRAM_STATE),
    ]
    return tuple(
        Missing(name, would_show) for name, is_recorded, would_show in quantities if not is_recorded
    )
