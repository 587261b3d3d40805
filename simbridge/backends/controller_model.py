"""Say which model the arm of a controller may be, and which file is used for it."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

from simbridge.resources import robot_files
from simbridge.robot.arm_models import describe_type, models_of_type, runs_on
from simbridge.robot.robot import Robot
from simbridge.text import join_words
from simbridge.ur.controller_facts import ControllerFacts


def robot_file_name(model: str) -> str | None:
    """Return the name in robots/ of a model, such as "ur8long" for "UR8 Long"; None without one."""
    name = model.lower().replace(" ", "")
    return name if name in robot_files() else None


def robot_remedy(models: Sequence[str]) -> str:
    """Return how to choose the file of an arm, as an imperative without a full stop.

    Args:
        models: The models that it may be.
    """
    names = [name for name in map(robot_file_name, models) if name is not None]
    if not names:
        return "Describe the arm in a file (robots/README.md)"
    return f"Use --robot {join_words(names, 'or')}"


def wrong_model_remedy(robot: Robot, models: Sequence[str]) -> str:
    """Return what to do if a controller's arm is not of the chosen arm's model.

    Args:
        robot: The chosen arm.
        models: The models that the controller's arm may be.
    """
    remedy = f"{robot_remedy(models)} if that is the intended arm."
    is_toml = robot.source is not None and robot.source.suffix == ".toml"
    if is_toml and not robot.ur_model:
        lines = join_words([f'model = "{model}"' for model in models], "or")
        remedy += f" If {robot.source} describes it, add {lines} to its table [controller]."
    return remedy


def chosen_model(robot: Robot) -> str:
    """Return the model of the chosen arm, or its title where its file names no model."""
    return robot.ur_model or robot.title


def unconfirmed_reason(
    robot_type: int | None, version: tuple[int, int, int], model: str
) -> str | None:
    """Return why a controller cannot confirm that its arm is the chosen one, as a clause.

    Args:
        robot_type: The type of the arm that the controller reports; None if it reports none.
        version: Version of its software: major, minor, bugfix.
        model: Model of the chosen arm, which the controller does not contradict.

    Returns:
        None if the controller confirms it.
    """
    models = models_of_type(robot_type, version[0])
    if not models:
        return describe_type(robot_type)

    others = [other for other in models if other != model and runs_on(other, version[:2])]
    if not others:
        return None
    return f"the controller reports the same type for a {join_words(others, 'or')}"


def model_text(robot_type: int | None, version: tuple[int, int, int], robot: Robot) -> str:
    """Return the model of the chosen arm, and why its controller cannot confirm it.

    Args:
        robot_type: Type of the robot: see `unconfirmed_reason`.
        version: Version of the software: see `unconfirmed_reason`.
        robot: The chosen arm, which the controller does not contradict.
    """
    model = chosen_model(robot)
    reason = unconfirmed_reason(robot_type, version, robot.ur_model)
    return model if reason is None else f"{model}, as chosen with --robot ({reason})"


def warn_of_model(facts: ControllerFacts, robot: Robot) -> None:
    """Warn if a controller cannot confirm that its arm is the chosen one."""
    reason = unconfirmed_reason(facts.arm.robot_type, facts.state.version, robot.ur_model)
    if reason is not None:
        warnings.warn(
            f"The arm is taken for a {chosen_model(robot)}, as chosen with --robot: {reason}. "
            "Check the nameplate.",
            stacklevel=3,
        )
