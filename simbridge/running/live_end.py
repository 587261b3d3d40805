"""The beginning and the end of a live session's directory: its settings, its summary and its report."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, cast

import numpy as np

from simbridge.backends.backend import Backend, Capabilities, cause_of
from simbridge.backends.live_driver import LiveDriver
from simbridge.backends.live_loop import LiveSetup
from simbridge.errors import SimbridgeError
from simbridge.ik.settings import fallback_solver
from simbridge.ik.solver import Solver
from simbridge.planning.check import Peaks
from simbridge.planning.live.between_inputs import filter_delay
from simbridge.planning.options import Options
from simbridge.planning.plan import Plan
from simbridge.planning.scenario import Scenario
from simbridge.recording.run_directory import RunDirectory
from simbridge.robot.kinematics import tool_path
from simbridge.robot.robot import Robot
from simbridge.running.run_setup import Prepared, resolved_settings
from simbridge.running.runner import EndNotVerified, finalize, record_end, rest_words
from simbridge.trajectory.trajectory import Trajectory
from simbridge.ur.controller import ControllerFacts


class _Arm:
    """What settings.toml records of a backend."""

    def __init__(self, capabilities: Capabilities) -> None:
        self.capabilities = capabilities


def session_settings(
    robot: Robot,
    setup: LiveSetup,
    options: Options,
    backend: str,
    controller: ControllerFacts | None,
    capabilities: Capabilities,
) -> dict[str, Any]:
    """The content of settings.toml: that of a run whose plan is not known yet, and the table [live]."""
    home = robot.home[None]
    rest = Trajectory(np.zeros(1), tool_path(robot, home), source="live inputs")
    still = np.zeros(1)
    plan = Plan(robot.checksum, setup.period, rest, "zero-order", still, home, home, np.zeros(1, dtype=bool))
    nothing = Peaks(np.zeros(robot.n), np.zeros(robot.n), np.zeros(robot.n), 0.0, None)
    solver = setup.solver if isinstance(setup.solver, Solver) else fallback_solver(robot, robot.task)
    scenario = Scenario(rest, "A live session.", hold="zero-order", on_limits="limit", name="live")
    prepared = Prepared(robot, scenario, solver, plan, nothing, options, backend, controller)
    settings = resolved_settings(prepared, cast(Backend, _Arm(capabilities)))
    if isinstance(setup.solver, str):
        settings["solver"] = {"name": setup.solver, "task": robot.task, "parameters": {}}
    live = asdict(setup.options)
    live = {name: list(value) if isinstance(value, tuple) else value for name, value in live.items()}
    live["filter_delay_s"] = filter_delay(setup.options.filter, setup.options.filter_cutoff)
    live["preview"] = setup.preview
    settings["live"] = {name: value for name, value in live.items() if value is not None}
    return settings


def finish_session(
    directory: RunDirectory, driver: LiveDriver, error: BaseException | None, report: bool = True
) -> None:
    """Write summary.json and report.html of a session that has ended.

    Args:
        directory: Of the session.
        driver: Its loop, which has ended.
        error: What ended it early, or stopped the arm last.
        report: Otherwise summary.json says only how it ended.

    Raises:
        OutputError: A file cannot be written.
        EndNotVerified: The controller was not seen to have ended the motion.
    """
    outcome = "completed"
    if error is not None:
        cause = cause_of(error, driver.ending)
        outcome = f"{type(error).__name__}: {error}" if isinstance(error, SimbridgeError) else cause
    arm = cast(Backend, driver)
    if report:
        finalize(directory, outcome, None, arm, error)
    else:
        record_end(directory, outcome, arm, error)
    ending = driver.ending
    if error is None and ending is not None and not (ending.arm_at_rest and ending.script_ended):
        raise EndNotVerified(ending)
    if isinstance(error, Exception):
        error.aftermath, error.run_directory = rest_words(ending), directory.path  # type: ignore[attr-defined]
