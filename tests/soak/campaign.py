"""A campaign of random faults: runs on an emulated controller are disturbed, and judged by the
controller's own record. A campaign has one link to the controller: ur_rtde, or simbridge's own.

A trial is one run, one or two faults at random instants of a random phase, and what was found: the
cause that summary.json gives, the violations, and the largest step of a setpoint as a share of its
limit. A quarter of the trials are live sessions instead (session_trial.py). The same seed gives the
same faults.
"""

from __future__ import annotations

import contextlib
import json
import random
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simbridge.backends.received_states import STALE_S
from simbridge.planning.link_choices import LinkName
from simbridge.recording.run_directory import RunDirectory
from simbridge.robot import load_robot
from simbridge.robot.pose import Array
from simbridge.servo.feedforward import MAX_ACCELERATION
from tests.backends.trial import write_line
from tests.soak.faults import FAULTS, JUMP, LOCAL, REPLACED, Fault, Trial, with_jumping_clock
from tests.soak.hostile_solver import HANGS, SLOW, hostile_solver
from tests.soak.result import Result
from tests.soak.session_trial import SESSION, SESSION_FAULTS, run_session_trial
from tests.soak.station import Station

PHASES = ("starting", "script starts", "approach", "streaming", "ending")
# Duration of the motion, s.
RUN_SECONDS = 1.5
# By what a command that arrives a cycle late, which no sender knows beforehand, raises the
# acceleration: from rest, servoj's law makes 45 rad/s^2 of 40 then, and of two cycles 50.
LATE_COMMAND = 1.25
# A joint slower than this is at rest, rad/s.
REST = 1e-3
# So many trials in a hundred are live sessions.
SESSION_PERCENT = 25
# How much of the log may be missing at the end of a run, s.
LOST = 0.5


def run_trial(seed: int, station: Station, robot: str, link: LinkName, directory: Path) -> Result:
    """One run with one or two random faults, or one live session with one."""
    chance = random.Random(seed)
    if chance.randrange(100) < SESSION_PERCENT:
        return run_session_trial(seed, chance, station, robot, link, directory)

    possible = [
        fault
        for fault in FAULTS
        if (robot == "ur10e" or not fault.e_series) and fault.link in ("", link)
    ]
    wanted = [chance.choice(possible) for _ in range(chance.choice((1, 1, 2)))]
    # A plan is solved before anything else happens: the solver's fault comes first.
    wanted.sort(key=lambda fault: not fault.hostile)
    hostile = wanted[0].hostile
    phase = "starting" if hostile else chance.choice(PHASES)
    delays = [chance.uniform(0.0, 0.5), chance.expovariate(5.0)]
    feedforward = chance.random() < 0.3
    registers = chance.choice(("lower", "upper"))
    result = Result(seed, robot, link, registers, phase, [], feedforward=feedforward)
    station.ready(network=any(fault.network for fault in wanted))
    begin = int(station.state()["tick"])
    braked = None
    flags = [
        "--robot",
        robot,
        "--backend",
        "real" if station.is_polyscope_x else "ursim",
        "--link",
        link,
        "--registers",
        registers,
        "--feedforward",
        "on" if result.feedforward else "off",
    ]
    if hostile:
        flags += ["--solver", _solver(hostile, chance, robot, directory)]
    program = with_jumping_clock(directory) if JUMP in (fault.name for fault in wanted) else None
    faults = []
    in_motion = False
    scenario = write_line(directory, RUN_SECONDS)
    with Trial(station, directory, scenario, *flags, program=program) as trial:  # type: ignore[arg-type]
        trial.station = station
        trial.chance = chance
        if not hostile:
            with contextlib.suppress(AssertionError):
                trial.wait_until_connecting()
        trial.during(phase, delays[0])
        for fault, delay in zip(wanted, [*delays[1:], 0.0], strict=False):
            moving = phase in ("approach", "streaming") and not trial.has_ended
            with contextlib.suppress(Exception):
                if fault.brakes and braked is None:
                    braked = int(station.state()["tick"])
                fault.act(trial)
                faults.append(fault)
                in_motion = in_motion or moving
            time.sleep(delay)
        result.faults = [fault.name for fault in faults] or ["none"]
        try:
            _, message = trial.wait_for_end()
        except AssertionError as error:
            result.violations.append(f"the run did not end in one paragraph: {error}"[:2000])
            return result
        result.evidence.append(message)
        _judge_end(result, trial, faults, begin, in_motion=in_motion)
        if hostile and len(wanted) == 1:
            _judge_solver(result, trial, hostile, begin)
        with contextlib.suppress(OSError, RuntimeError):  # a killed controller has no record
            _judge_record(result, trial, faults, -1 if station.restarted else begin, braked)
    return result


def _solver(hostile: str, chance: random.Random, robot: str, directory: Path) -> str:
    """The name of a solver that is hostile somewhere in the plan."""
    steps = round(RUN_SECONDS / load_robot(robot).period)
    return hostile_solver(
        directory,
        robot,
        hostile,
        good_steps=chance.randrange(steps),
        seconds=chance.uniform(0.0, 0.005),
    )


def _judge_solver(result: Result, trial: Trial, hostile: str, begin: int) -> None:
    """A plan that a solver did not make is not tried, and the reason names the solver."""
    if hostile == SLOW:
        return
    target = trial.station.record(after=begin).target_q
    if np.ptp(target, axis=0).max(initial=0.0) > 0.0:
        result.violations.append("the arm moved although its solver failed")
    if hostile != HANGS and "hostile.py" not in result.evidence[0]:
        result.violations.append("the message does not name the solver")


def _ended_by(trial: Trial) -> dict[str, Any] | None:
    with contextlib.suppress(Exception):
        ended_by: dict[str, Any] = RunDirectory.open(trial.out).summary()["ended_by"]
        return ended_by
    return None


def _stood_still(trial: Trial, begin: int) -> bool:
    """Return whether the emulated controller stood still after a tick.

    Its states were old then, whatever the fault.
    """
    with contextlib.suppress(OSError, RuntimeError):
        ticks = int(trial.station.state()["tick"]) - begin
        return ticks > 0 and max(trial.station.do("timing")["period"][-ticks:]) > STALE_S
    return False


def _changes(setpoint: Array, sent: NDArray[np.bool_]) -> NDArray[np.intp]:
    """Return the rows (K,) with another setpoint than the row before.

    How long a setpoint was in force says nothing: a script that is paused keeps it.

    Args:
        setpoint: The setpoint in force at each tick (T, n), rad.
        sent: Mask (T,) of the rows with a setpoint.
    """
    return 1 + np.flatnonzero((setpoint[1:] != setpoint[:-1]).any(axis=1) & sent[1:])


def _judge_end(
    result: Result, trial: Trial, faults: list[Fault], begin: int, *, in_motion: bool
) -> None:
    """Judge by what the run left behind."""
    ended_by = _ended_by(trial)
    if ended_by is None and trial.out.exists() and "disk full" not in result.faults:
        result.violations.append("no summary says what ended the run")
    if ended_by is not None:
        result.cause = ended_by["cause"]
        result.evidence += ended_by["evidence"]
    expected = {cause for fault in faults for cause in fault.causes}
    if not in_motion:
        # Before the motion a fault is a reason to refuse it, and after it the run was complete.
        expected |= {"completed", "refused"}
    if trial.station.is_polyscope_x and LOCAL in result.faults:
        # Before 10.12 nothing tells why the control script does not start.
        expected.add("unknown")
    if result.cause == "stale_state" and _stood_still(trial, begin):
        expected.add("stale_state")
    if result.cause is not None and result.cause not in expected:
        result.violations.append(f"the cause is {result.cause}")
    servo = Path(f"/proc/{getattr(trial, 'servo', 0)}/cmdline")
    if servo.exists() and "servo_process" in servo.read_text():
        result.violations.append("the servo process is left")


def _judge_record(
    result: Result, trial: Trial, faults: list[Fault], begin: int, braked: int | None
) -> None:
    """Judge by the controller's record after a tick; `braked`: when it first braked the arm by
    itself.
    """
    controller = trial.station
    robot = load_robot(result.robot)
    ended_by = _ended_by(trial) or {"arm_at_rest": None, "at_s": None}
    state = controller.state()
    end = int(state["tick"])
    period = robot.period
    # In local control, or without a connection, nobody can stop a paused script from outside; the
    # message says so.
    excused = {REPLACED, LOCAL}.intersection(result.faults) or ended_by["arm_at_rest"] is None
    if state["runtime_state"] != "STOPPED" and not excused:
        result.violations.append(f"a program is left: {state['runtime_state']}")
    if state["runtime_state"] == "STOPPED" and result.faults == [REPLACED]:
        result.violations.append("another's program was stopped")
    while int(controller.state()["tick"]) < end + 1.0 / period:
        time.sleep(0.05)
    record = controller.record()
    mine = record.tick > begin
    tick = record.tick[mine]
    target = record.target_q[mine]
    setpoint = record.setpoint[mine]
    speed = np.abs(np.diff(target, axis=0)) / period
    if speed[tick[1:] > end].max(initial=0.0) > REST:
        result.violations.append("the arm moves after the end")
    if ended_by["arm_at_rest"] and speed[tick[1:] >= end].max(initial=0.0) > REST:
        result.violations.append("summary.json says that the arm is at rest")
    share = float((speed / robot.max_velocity).max(initial=0.0))
    if share > 1.0 + 1e-6:
        result.violations.append(f"the arm moved at {share:.3f} of its velocity limit")
    if result.cause is None and speed.max(initial=0.0) > REST and "disk full" not in result.faults:
        result.violations.append("the arm moved, and no summary says what ended the run")
    sent = np.isfinite(setpoint).all(axis=1)
    both = sent[1:] & sent[:-1]
    acceleration = np.abs(np.diff(target, n=2, axis=0)).max(axis=1, initial=0.0) / period**2
    ours = both[1:] & both[:-1] & (tick[2:] < (np.inf if braked is None else braked))
    most = acceleration[ours].max(initial=0.0)
    is_late = any(fault.delays for fault in faults)
    if most > (LATE_COMMAND if is_late else 1.05) * MAX_ACCELERATION:
        result.violations.append(f"the arm accelerated by {most:.0f} rad/s^2 under servoj")
    if not sent.any() or "disk full" in result.faults:
        return
    # The logged setpoints; before them comes the approach, after them commands that brake, which
    # may step.
    command = RunDirectory.open(trial.out).log().command
    if not len(command):
        # Between the first change of the setpoint and the last; an approach counts, too.
        changes = _changes(setpoint, sent)
        lasted = np.ptp(changes) * period if len(changes) else 0.0
        if result.phase in ("streaming", "ending") and lasted > LOST:
            result.violations.append("the log is empty")
        return
    first = np.flatnonzero((np.abs(setpoint - command[0]) < 1e-6).all(axis=1))
    # The last ones may have come too late to be in force, or never through a network that had
    # failed.
    arrived = (np.flatnonzero((np.abs(setpoint - row) < 1e-6).all(axis=1)) for row in command[::-1])
    last = next((ticks for ticks in arrived if len(ticks)), [])
    if not len(first) or not len(last):
        if not trial.station.restarted:
            result.violations.append("the log has setpoints that never arrived")
        return
    from_ = int(first[0])
    to = int(last[-1])
    missing = (_changes(setpoint, sent).max(initial=0) - to) * period
    if missing > LOST and result.cause != "completed":
        result.violations.append(f"the log ends {missing:.2f} s before the last setpoint")
    steps = np.abs(np.diff(setpoint[from_ : to + 1], axis=0)) / (period * robot.max_velocity)
    result.step_share = float(steps[both[from_:to]].max(initial=0.0))
    if result.step_share > 1.0 + 1e-6 and not result.feedforward:
        result.violations.append(
            f"a setpoint stepped by {result.step_share:.3f} of a joint's velocity limit"
        )


def run_campaign(
    seeds: Iterable[int],
    host: str,
    robot: str,
    link: LinkName,
    *,
    polyscope: str,
    results: Path,
    seconds: float,
) -> list[Result]:
    """Run trials one after the other and append their results to a file, until the seeds or the
    time are used up.

    Args:
        seeds: A trial for each.
        host: A loopback address for the emulated controller.
        robot: "ur10e" or "ur10".
        link: The link that commands it.
        polyscope: Its version of PolyScope X; "" for another PolyScope.
        results: Takes a line for each trial.
        seconds: Time after which no trial begins, s.
    """
    found = []
    deadline = time.monotonic() + seconds
    station = Station(host, robot, polyscope)
    try:
        for seed in seeds:
            if time.monotonic() > deadline:
                break
            directory = Path(tempfile.mkdtemp(prefix="simbridge-fault-"))
            result = run_trial(seed, station, robot, link, directory)
            station.leave()
            found.append(result)
            with results.open("a") as file:
                file.write(json.dumps(vars(result)) + "\n")
            if result.violations:
                print(
                    f"seed {result.seed}: {'; '.join(result.violations)}; kept in {directory}",
                    flush=True,
                )
                continue
            for path in directory.parent.glob(f"{directory.name}*"):
                shutil.rmtree(path) if path.is_dir() else path.unlink()
    finally:
        station.close()
    return found


def table(results: Iterable[Result]) -> str:
    """Trials and violations of each fault, in all and in each phase, as Markdown.

    A trial with two faults counts for both.
    """
    results = list(results)
    phases = (*PHASES, SESSION)
    trials: Counter[tuple[str, str]] = Counter()
    violated: Counter[tuple[str, str]] = Counter()
    for result in results:
        for fault in set(result.faults):
            trials[fault, result.phase] += 1
            violated[fault, result.phase] += bool(result.violations)

    lines = ["| fault | trials | violations | " + " | ".join(phases) + " |"]
    lines.append("|---" * (3 + len(phases)) + "|")
    not_tried = []
    for fault in (*FAULTS, *SESSION_FAULTS):
        trials_of_fault = sum(trials[fault.name, phase] for phase in phases)
        if trials_of_fault == 0:
            not_tried.append(fault.name)
            continue
        violated_of_fault = sum(violated[fault.name, phase] for phase in phases)
        cells = [f"{trials[fault.name, phase]}: {violated[fault.name, phase]}" for phase in phases]
        lines.append(
            f"| {fault.name} | {trials_of_fault} | {violated_of_fault} | "
            + " | ".join(cells)
            + " |"
        )

    steps = max((result.step_share for result in results if not result.feedforward), default=0.0)
    violated_trials = sum(bool(result.violations) for result in results)
    lines.append("")
    lines.append(
        f"{len(results)} trials, {violated_trials} with a violation "
        "(in a phase: trials: of these with a violation)."
    )
    links = Counter((result.link, result.registers) for result in results)
    for (link, registers), count in sorted(links.items()):
        lines.append(f"{count} of them through {link}, by the {registers} registers.")
    lines.append(f"Largest step of a setpoint: {steps:.3f} of its joint's velocity limit.")
    if not_tried:
        lines.append(f"Not tried: {', '.join(not_tried)}.")
    return "\n".join(lines)


def read_results(files: Iterable[Path]) -> list[Result]:
    """The results of earlier campaigns."""
    lines = (json.loads(text) for file in files for text in file.read_text().splitlines())
    return [Result(**line) for line in lines if "seed" in line]  # a stream has none
