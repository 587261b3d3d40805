"""Runs experiment D: a target that moves around a square at constant speed, for each gain.

The target is sampled at 100 Hz. A solver takes one step for each target, of 50 iterations with
dt = 0.1 and without clamps. Errors are target minus setpoint at those instants, on the second lap.

In the gain sweep the targets are as in teleoperation and vision: measured at a low rate, with
noise, and each held until the next. For such targets kp leads from a smoothing filter to exact
inverse kinematics. A high gain follows the noise, and jumps with every new target; a low gain lags
and cuts corners. In between the arm stays closest to the true path.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from simbridge.experiments import KDL, TrackingParameters
from simbridge.experiments.arm import (
    DT,
    choose_arm,
    has_gain,
    is_paper_arm,
    make_solver,
    pose_errors,
    start_posture,
    unique_solvers,
)
from simbridge.experiments.lap import Lap
from simbridge.experiments.layout import PAPER_SPEED, RATE, MovingSquare, choose_layout
from simbridge.experiments.outcome import (
    Expected,
    Outcome,
    ResultTable,
    format_number,
    within,
    within_part,
)
from simbridge.experiments.tracking_plots import SWEPT_QUANTITIES, plot_laps, plot_sweep
from simbridge.robot import pose
from simbridge.robot.kinematics import tool_path
from simbridge.robot.pose import Array
from simbridge.robot.robot import Robot
from simbridge.text import plain

# Number of iterations per step in the paper.
PAPER_ITERATIONS = 50

# The solver whose gain is swept on slow, noisy targets.
SWEPT_SOLVER = "forward-dynamics"
# Gains of the sweep, N/m.
GAINS = (0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0)
# Gains of the sweep that are in the table, N/m; None stands for solvers without a gain.
TABLED_GAINS = (None, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0)
# Part of the time between two measurements that is rounding: an instant that is early by less
# belongs to the new measurement.
INSTANT_ROUNDING = 1e-9

# Known errors of the forward dynamics by gain, mm: RMS, largest error, corner miss.
FORWARD_DYNAMICS_ERRORS = {
    5: (2.285, 2.297, 1.54),
    10: (0.789, 0.791, 0.79),
    20: (0.168, 0.169, 0.17),
}
# Each of these three errors with a gain of 50, mm.
FORWARD_DYNAMICS_KP_50_ERROR = 0.0026
# Known RMS error of the Jacobian transpose by gain, mm.
TRANSPOSE_RMS = {5: 21.5, 10: 11.0, 20: 5.3, 50: 1.8}


def _expect() -> Iterator[Expected]:
    """Yield the figures that are known for a UR10 at 0.2 m/s."""
    quantities = ("RMS", "largest", "corner miss")
    for kp, errors in FORWARD_DYNAMICS_ERRORS.items():
        for quantity, error in zip(quantities, errors, strict=True):
            yield within_part(f"forward-dynamics, kp {kp}, {quantity}, mm", error, 0.01, KDL)
    for quantity in quantities:
        figure = f"forward-dynamics, kp 50, {quantity}, mm"
        yield within(figure, FORWARD_DYNAMICS_KP_50_ERROR, 5e-5, KDL)
    for kp, error in TRANSPOSE_RMS.items():
        yield within(f"jacobian-transpose, kp {kp}, RMS, mm", error, 0.05, KDL)


EXPECTED = tuple(_expect())


def slow_targets(
    robot: Robot, true: MovingSquare, *, rate: float, noise: float, seed: int = 0
) -> Array:
    """Return the square's poses (T, 7) as measured at a low rate, held in between.

    Args:
        robot: The arm; a planar one gets no noise across its plane.
        true: The square.
        rate: Rate of the measurements, Hz.
        noise: Standard deviation of the noise along each axis, m.
        seed: Seed of the noise.
    """
    # Number of the newest measurement at each instant, from 0.
    newest = np.floor(true.times * rate + INSTANT_ROUNDING)
    measured = pose.interpolate(true.times, true.poses, newest / rate)

    # Each measurement has one random offset, which is held with it.
    measurement_count = int(newest[-1]) + 1
    offsets = np.random.default_rng(seed).normal(0.0, noise, (measurement_count, 3))
    if robot.planar:
        offsets[:, 2] = 0.0
    measured[:, :3] += offsets[newest.astype(int)]
    return measured


def sweep(
    robot: Robot,
    names: Sequence[str],
    gains: Sequence[float],
    *,
    true: MovingSquare,
    targets: Array | None = None,
    iterations: int = PAPER_ITERATIONS,
) -> list[Lap]:
    """Step every solver with every gain once per target, and return the second laps.

    Args:
        robot: The arm.
        names: Names of the solvers.
        gains: Gains kp, N/m; a solver without a gain makes a single lap.
        true: The square, with which the tool is compared.
        targets: The poses (T, 7) that the solver gets; the square's by default.
        iterations: Number of iterations of a solver per step.

    Returns:
        The laps, solver by solver, by ascending gain.
    """
    if targets is None:
        targets = true.poses

    laps = []
    for name in names:
        kps: Sequence[float | None] = sorted(set(gains)) if has_gain(name) else (None,)
        for kp in kps:
            settings = {} if kp is None else {"dt": DT, "kp": (kp,)}
            solver = make_solver(robot, name, iterations=iterations, **settings)
            start = start_posture(robot, true.poses[0])
            joints = solver.track(targets, start)

            # At constant speed the tool is behind by the speed times the lag: the predicted error.
            lag = solver.lag(1.0 / RATE)
            predicted_rms = None if lag is None else true.speed * lag
            second_lap = true.second_lap
            laps.append(
                Lap(
                    solver=solver.name,
                    kp=kp,
                    square=true,
                    joints=joints,
                    points=tool_path(robot, joints[second_lap])[:, :3],
                    errors=pose_errors(robot, true.poses[second_lap], joints[second_lap]),
                    predicted=predicted_rms,
                )
            )
    return laps


def swept_solvers(names: Sequence[str]) -> list[str]:
    """Return the solvers of the gain sweep: the one that is swept, and those without a gain."""
    return [SWEPT_SOLVER, *(name for name in names if not has_gain(name))]


def figures(laps: Sequence[Lap]) -> dict[str, float]:
    """Return RMS, largest error and corner miss of every lap, by the lap's name."""
    values = {}
    for lap in laps:
        values[f"{lap.name}, RMS, mm"] = 1e3 * lap.rms
        values[f"{lap.name}, largest, mm"] = 1e3 * lap.largest
        values[f"{lap.name}, corner miss, mm"] = 1e3 * lap.corner_miss
    return values


def run(parameters: TrackingParameters) -> Outcome:
    """Run the experiment."""
    arm = choose_arm(parameters)
    layout = choose_layout(arm.robot)
    names = unique_solvers(parameters.solver)
    iterations = parameters.iterations

    # The square with the true targets.
    square = MovingSquare.of(layout, parameters.speed)
    laps = sweep(arm.robot, names, parameters.kp, true=square, iterations=iterations)

    # The gain sweep with slow, noisy targets.
    targets = slow_targets(
        arm.robot, square, rate=parameters.target_rate, noise=parameters.noise, seed=parameters.seed
    )
    swept = sweep(
        arm.robot,
        swept_solvers(names),
        GAINS,
        true=square,
        targets=targets,
        iterations=iterations,
    )

    has_paper_settings = iterations == PAPER_ITERATIONS and parameters.speed == PAPER_SPEED
    is_known = is_paper_arm(arm.robot) and has_paper_settings
    source = f"{parameters.target_rate:g} Hz, held, {1e3 * parameters.noise:g} mm of noise"
    lag_note = "Predicted: speed times T rho/(1 - rho), rho = (1 - dt^2 kp / 4 m)^N."
    return Outcome(
        figures=figures(laps),
        expected=EXPECTED if is_known else (),
        data={
            "arm": arm.as_data(),
            "square": layout.as_data(),
            "laps": [_lap_data(lap) for lap in laps],
            "dial": [_swept_data(lap) for lap in swept],
        },
        tables=[_lap_table(laps, square.speed), _sweep_table(swept, source)],
        plots={
            "tracking.png": plot_laps(laps),
            "gain_sweep.png": plot_sweep(swept, targets, parameters.noise),
        },
        notes=[lag_note, *arm.notes, layout.note],
    )


def _lap_data(lap: Lap) -> dict[str, object]:
    """Return a lap on the square for JSON."""
    return {
        "solver": lap.solver,
        "kp": lap.kp,
        "rms_m": lap.rms,
        "max_m": lap.largest,
        "corner_misses_m": lap.corner_misses.tolist(),
        "predicted_rms_m": lap.predicted,
    }


def _swept_data(lap: Lap) -> dict[str, object]:
    """Return a lap of the gain sweep for JSON."""
    return {
        "solver": lap.solver,
        "kp": lap.kp,
        "off_path_rms_m": lap.path_error,
        "delay_s": lap.delay,
        "joint_acceleration_rms_rad_s2": lap.acceleration,
    }


def _lap_table(laps: Sequence[Lap], speed: float) -> ResultTable:
    """Return a table of the errors on the square.

    Args:
        laps: The laps, one for each row.
        speed: Speed of the target, m/s.
    """
    rows = []
    for lap in laps:
        rows.append(
            (
                lap.solver,
                "–" if lap.kp is None else plain(lap.kp),
                format_number(1e3 * lap.rms),
                format_number(1e3 * lap.largest),
                format_number(1e3 * lap.corner_miss),
                "–" if lap.predicted is None else format_number(1e3 * lap.predicted),
            )
        )
    title = f"The square at {speed:.3g} m/s, second lap, mm"
    columns = ("solver", "kp", "RMS", "largest", "corner", "predicted")
    return ResultTable(title, columns, rows)


def _sweep_table(swept: Sequence[Lap], source: str) -> ResultTable:
    """Return a table of the gain sweep.

    Args:
        swept: The laps; those with `TABLED_GAINS` have a row.
        source: Rate and noise of the targets, as text.
    """
    rows = []
    for lap in swept:
        if lap.kp in TABLED_GAINS:
            name = lap.solver if lap.kp is None else plain(lap.kp)
            numbers = [format_number(value(lap)) for value in SWEPT_QUANTITIES.values()]
            rows.append((name, *numbers))
    columns = ("kp", *(label.replace("\n", " ") for label in SWEPT_QUANTITIES))
    return ResultTable(f"Gain sweep: targets at {source} ({SWEPT_SOLVER})", columns, rows)
