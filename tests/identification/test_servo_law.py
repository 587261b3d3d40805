"""The servo law found in a run on a controller, against a controller written from the law's
formulas.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from simbridge.evaluation.evaluation import Evaluation
from simbridge.evaluation.servo_law import ServoLawCheck, check_servo_law, servo_law_sentence
from simbridge.evaluation.summary import summarize
from simbridge.identification import servo_law
from simbridge.identification.servo_law import LawNotFound, find_servo_law
from simbridge.servo.law import JointMotion, ServojLaw
from tests.report.made_up_run import MadeUp

pytestmark = pytest.mark.slow

Array = NDArray[np.float64]
SOAK = pytest.mark.soak
# A cycle of a CB3 controller and of an e-Series controller, s.
H = 0.008
E_SERIES_CYCLE = 0.002
CYCLES = 400


def motion(cycles: int = CYCLES, speed: float = 1.0, cycle: float = H) -> Array:
    """Commands of six joints, at rest first."""
    t = cycle * np.arange(cycles)[:, None]
    grow = np.clip(t - 0.1, 0.0, None) ** 2 / (1.0 + np.clip(t - 0.1, 0.0, None) ** 2)
    return np.array([0.3, -1.2, 1.7, -2.0, -1.5, 0.4]) + grow * 0.2 * speed * np.sin(
        t * (1.0 + 0.4 * np.arange(6))
    )


def controller(
    commands: Array,
    gain: float,
    lookahead: float,
    received: NDArray[np.int64],
    phase: float = 0.0,
    cycle: float = H,
) -> JointMotion:
    """Return joint targets of a controller that takes command `received[k]` at call k.

    The call begins `phase` s after cycle k, and lasts a cycle, s.
    """
    sent = commands.astype(np.float32).astype(float)
    lookahead = float(np.float32(lookahead))
    q = sent[0].copy()
    v = np.zeros(6)
    old = sent[0]
    rows = []
    for k in range(len(commands)):
        before = v.copy()
        new = sent[max(received[k], 0)]
        steps = (
            [(phase, old), (cycle - phase, old + (cycle - phase) / cycle * (new - old))]
            if phase
            else [(cycle, new)]
        )
        for length, s in steps:
            v = v + length * (gain * (s - q) - gain * lookahead * v)
            q = q + length * v
        old = new
        rows.append((q, v, (v - before) / cycle))
    return JointMotion(*(np.array(column) for column in zip(*rows, strict=True)))


def jitter(cycles: int, around: int, seed: int = 0) -> NDArray[np.int64]:
    """Calls that take the command of some cycles ago: mostly the same, now and then one more or
    none, and a stall.
    """
    rng = np.random.default_rng(seed)
    late = around + rng.choice([0, 1, -1, 2], size=cycles, p=[0.8, 0.1, 0.05, 0.05])
    received = np.arange(cycles) - late
    received[360:375] = received[360]
    return np.maximum.accumulate(received)


@pytest.mark.parametrize(
    ("gain", "lookahead", "delay"),
    [(2000.0, 0.03, 5)]
    + [
        pytest.param(gain, lookahead, delay, marks=SOAK)
        for gain, lookahead, others in (
            (2000.0, 0.03, (0, 2)),
            (300.0, 0.1, (0, 2, 5)),
            # test_another_tuning_is_found_where_the_link_jitters has another tuning, too.
            (700.0, 0.06, (0, 2, 5)),
        )
        for delay in others
    ],
)
def test_jitter_hides_neither_tuning_nor_delay(gain: float, lookahead: float, delay: int) -> None:
    commands = motion()
    received = jitter(len(commands), delay)

    search = find_servo_law(
        ServojLaw(H),
        np.arange(len(commands)),
        commands,
        **controller(commands, gain, lookahead, received)._asdict(),
    )

    assert search.gain == pytest.approx(gain, rel=1e-6)
    assert search.lookahead == pytest.approx(lookahead, rel=1e-6)
    assert search.delay == pytest.approx(
        H * np.mean((np.arange(len(commands)) - received)[15:]), abs=1e-4
    )
    assert search.phase == 0.0
    assert np.percentile(search.residuals, 99) < 1e-9


@pytest.mark.parametrize("phase", [0.0016, 0.004, 0.006])
def test_the_phase_of_calls_is_identified(phase: float) -> None:
    commands = motion()
    received = np.arange(len(commands)) - 2
    targets = controller(commands, 2000.0, 0.03, received, phase)

    search = find_servo_law(ServojLaw(H), np.arange(len(commands)), commands, **targets._asdict())

    assert (search.gain, search.lookahead) == pytest.approx((2000.0, 0.03), rel=1e-4)
    assert search.phase == pytest.approx(phase, abs=1e-6)


def varied(cycles: int, delays: dict[int, float]) -> NDArray[np.int64]:
    """Calls that take the newest command that has arrived; these delays in cycles have these
    probabilities.
    """
    late = np.random.default_rng(1).choice(list(delays), size=cycles, p=list(delays.values()))
    arrived = np.zeros(cycles, dtype=np.int64)
    for k in range(cycles):
        if k + late[k] < cycles:
            arrived[k + late[k]] = max(arrived[k + late[k]], k)
    return np.maximum.accumulate(arrived)


FEW = {1: 0.02, 2: 0.96, 3: 0.02}
MANY = {1: 0.2, 2: 0.6, 3: 0.2}
WIDE = dict.fromkeys(range(1, 6), 0.2)


@pytest.mark.parametrize("delays", [FEW, MANY, WIDE], ids=["few", "many", "wide"])
@pytest.mark.parametrize("phase", [0.0016, 0.0048])
def test_phase_and_jitter_hide_no_configured_law(phase: float, delays: dict[int, float]) -> None:
    commands = motion()
    received = varied(len(commands), delays)
    targets = controller(commands, 2000.0, 0.03, received, phase)

    search = find_servo_law(ServojLaw(H), np.arange(len(commands)), commands, **targets._asdict())

    assert (search.gain, search.lookahead, search.phase) == pytest.approx(
        (2000.0, 0.03, phase), rel=1e-6
    )
    assert search.delay == pytest.approx(
        H * np.mean((np.arange(len(commands)) - received)[15:]), abs=1e-4
    )
    assert np.percentile(search.residuals, 99) < 1e-6


def test_skipped_and_held_commands_hide_no_phase() -> None:
    commands = motion(1250)
    late = np.random.default_rng(0).integers(1, 6, len(commands))
    received = np.clip(np.maximum.accumulate(np.arange(len(commands)) - late), 0, None)
    targets = controller(commands, 300.0, 0.1, received, 0.0028)

    search = find_servo_law(
        ServojLaw(H, 300.0, 0.1), np.arange(len(commands)), commands, **targets._asdict()
    )

    assert (search.gain, search.lookahead, search.phase) == pytest.approx(
        (300.0, 0.1, 0.0028), rel=1e-6
    )


@pytest.mark.parametrize(
    ("gain", "lookahead", "phase", "delays"),
    [
        pytest.param(2000.0, 0.034, 0.0, MANY, marks=SOAK),
        # As in the cycles of an e-Series, below.
        pytest.param(2000.0, 0.05, 0.0, MANY, marks=SOAK),
        pytest.param(300.0, 0.1, 0.0048, MANY, marks=SOAK),
        (1900.0, 0.03, 0.0048, WIDE),
    ],
)
def test_another_tuning_is_found_where_the_link_jitters(
    gain: float, lookahead: float, phase: float, delays: dict[int, float]
) -> None:
    commands = motion()
    targets = controller(commands, gain, lookahead, varied(len(commands), delays), phase)

    search = find_servo_law(ServojLaw(H), np.arange(len(commands)), commands, **targets._asdict())

    assert (search.gain, search.lookahead) == pytest.approx((gain, lookahead), rel=1e-6)


def test_another_tuning_is_found_in_the_cycles_of_an_e_series(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # More than the search uses: it takes blocks of them.
    monkeypatch.setattr(servo_law, "MAX_SEARCHED_ROWS", 450)
    commands = motion(700, cycle=E_SERIES_CYCLE)
    received = varied(len(commands), WIDE)
    targets = controller(commands, 2000.0, 0.05, received, cycle=E_SERIES_CYCLE)

    search = find_servo_law(
        ServojLaw(E_SERIES_CYCLE), np.arange(len(commands)), commands, **targets._asdict()
    )

    assert (search.gain, search.lookahead) == pytest.approx((2000.0, 0.05), rel=1e-6)


@pytest.mark.parametrize(
    ("gain", "lookahead"), [pytest.param(4000.0, 0.02, marks=SOAK), (50.0, 0.3)]
)
def test_no_unacceptable_tuning_is_named(gain: float, lookahead: float) -> None:
    commands = motion()
    targets = controller(commands, gain, lookahead, varied(len(commands), MANY))

    with pytest.raises(LawNotFound) as caught:
        find_servo_law(ServojLaw(H), np.arange(len(commands)), commands, **targets._asdict())

    # The configured law does not explain it either.
    assert np.percentile(caught.value.residuals, 99) > 1e-4


def test_unrecorded_commands_do_not_count() -> None:
    commands = motion(2500)
    targets = controller(commands, 2000.0, 0.03, varied(len(commands), MANY), 0.0048)
    kept = np.flatnonzero(np.random.default_rng(1).random(len(commands)) > 0.1)

    search = find_servo_law(
        ServojLaw(H),
        kept,
        commands[kept],
        q=targets.q[kept],
        qd=targets.qd[kept],
        qdd=targets.qdd[kept],
    )

    assert (search.gain, search.lookahead) == pytest.approx((2000.0, 0.03), rel=1e-6)
    assert np.percentile(search.residuals, 99) < 1e-6


def test_missing_rows_do_not_matter() -> None:
    commands = motion()
    targets = controller(commands, 2000.0, 0.03, jitter(len(commands), 1))
    kept = np.flatnonzero(np.random.default_rng(1).random(len(commands)) > 0.1)

    search = find_servo_law(
        ServojLaw(H),
        kept,
        commands[kept],
        q=targets.q[kept],
        qd=targets.qd[kept],
        qdd=targets.qdd[kept],
    )

    assert (search.gain, search.lookahead) == pytest.approx((2000.0, 0.03), rel=1e-6)


def test_an_arm_at_rest_shows_no_law() -> None:
    still = np.tile(motion(1), (500, 1))

    with pytest.raises(LawNotFound, match="moved in only 0 consecutive cycles"):
        find_servo_law(
            ServojLaw(H), np.arange(500), still, q=still, qd=0.0 * still, qdd=0.0 * still
        )


@pytest.fixture
def on_controller(tmp_path: Path) -> Any:
    """Makes a run whose joint targets come from a controller with some tuning, configured with 2000
    and 0.03 s.
    """

    def made(
        gain: float = 2000.0, lookahead: float = 0.03, cycles: int = CYCLES, **log: Array
    ) -> Evaluation:
        backend = {
            "simulated_time": False,
            "effort_unit": "A",
            "servo": "servoj",
            "servo_gain": 2000.0,
            "servo_lookahead": 0.03,
        }
        run = MadeUp(samples=cycles, joints=6, period=H, settings={"backend": backend}).evaluation(
            tmp_path
        )
        commands = motion(cycles)
        q, qd, qdd = controller(commands, gain, lookahead, np.arange(len(commands)) - 1)
        columns = {
            "command": commands,
            "setpoint": commands,
            "position": q,
            "controller_target": q,
            "controller_target_velocity": qd,
            "controller_target_acceleration": qdd,
        }
        return replace(run, log=replace(run.log, **(columns | log)))

    return made


def checked(run: Evaluation) -> ServoLawCheck:
    assert run.servo is not None
    return check_servo_law(run.servo, run.log, lambda law: run.tool(run.predict_joints(law)))


def test_the_link_is_apart_from_the_law(on_controller: Any) -> None:
    check = checked(on_controller())

    assert check["holds"] is True
    assert check["delay_s"] == pytest.approx(H)
    assert check["prediction_off_m"] is None
    assert "is the configured one" in servo_law_sentence(check)
    assert "8.00 ms" in servo_law_sentence(check)


@pytest.mark.parametrize(
    ("gain", "lookahead", "holds"),
    [
        (2030.0, 0.03, True),
        (2050.0, 0.03, False),
        (2000.0, 0.031, False),
    ],
)
def test_the_law_holds_within_two_percent(
    on_controller: Any, gain: float, lookahead: float, holds: bool
) -> None:
    check = checked(on_controller(gain, lookahead))

    assert check["holds"] is holds
    assert (check["gain"], check["lookahead_s"]) == pytest.approx((gain, lookahead), rel=1e-6)


def test_another_tuning_is_named(on_controller: Any) -> None:
    run = on_controller(1000.0, 0.05, cycles=600)
    check = checked(run)

    assert check["prediction_off_m"] is not None

    # The tool trails by 20 ms more.
    speed = np.linalg.norm(np.gradient(run.setpoint[:, :3], H, axis=0), axis=1)

    assert check["prediction_off_m"]["rms"] == pytest.approx(
        0.020 * np.sqrt(np.mean(speed**2)), rel=0.05
    )
    assert "is not the configured one" in servo_law_sentence(check)
    assert "off by" in servo_law_sentence(check)


def test_a_controller_without_the_law_is_named(on_controller: Any) -> None:
    run = on_controller()
    noise = np.random.default_rng(0).normal(0.0, 1.0, run.log.controller_target.shape)

    check = checked(on_controller(controller_target=run.log.controller_target + 1e-3 * noise))

    assert check["holds"] is False
    assert check["gain"] is None
    assert check["lookahead_s"] is None
    assert check["residual_rad"] is not None
    assert check["residual_rad"]["p99"] > 1e-3

    sentence = servo_law_sentence(check)

    assert "does not follow the configured servo law (gain 2000, lookahead 0.03 s)" in sentence
    assert "It cannot be determined which law it follows" in sentence


def test_what_is_not_reported_is_said(on_controller: Any) -> None:
    check = checked(on_controller(controller_target_acceleration=np.full((CYCLES, 6), np.nan)))

    assert check["holds"] is None
    assert check["reason"] == "the controller does not report target_q, target_qd and target_qdd"
    assert "the configured one: the controller does not report" in servo_law_sentence(check)


def test_a_steady_motion_cannot_tell_lookahead_from_delay(on_controller: Any) -> None:
    run = on_controller()
    steady = np.arange(CYCLES)[:, None] * H * 0.1 * np.ones(6)
    noise = 1e-6 * np.random.default_rng(0).normal(0.0, 1.0, steady.shape)
    columns = {
        "command": steady,
        "controller_target": steady - 0.028 * 0.1 + noise,
        "controller_target_velocity": np.full_like(steady, 0.1),
        "controller_target_acceleration": noise,
    }

    check = checked(replace(run, log=replace(run.log, **columns)))

    assert check["holds"] is None
    assert "uncertain" in str(check["reason"])


def test_simulations_have_no_check(tmp_path: Path) -> None:
    run = MadeUp().evaluation(tmp_path)

    assert summarize(run, "completed")["servo_law"] is None
    assert run.predicted is None
    assert run.tracking["rest_error"] is None


def test_without_delay_the_prediction_is_exact(on_controller: Any) -> None:
    commands = motion()
    q, qd, qdd = controller(commands, 2000.0, 0.03, np.arange(len(commands)))

    run = on_controller(
        controller_target=q, controller_target_velocity=qd, controller_target_acceleration=qdd
    )

    assert np.abs(run.predicted_joints - q).max() < 1e-12

    # A missing row: the command before it holds.
    received = np.arange(len(commands))
    received[300:303] = 299
    q, qd, qdd = controller(commands, 2000.0, 0.03, received)
    kept = np.delete(np.arange(len(commands)), [300, 301, 302])
    log = run.log
    rows = {
        name: getattr(log, name)[kept]
        for name in ("command", "stamp", "position", "setpoint", "solution", "target")
    }
    rows |= {"controller_target": q[kept], "controller_target_velocity": qd[kept]}

    assert np.abs(replace(run, log=replace(log, **rows)).predicted_joints - q[kept]).max() < 1e-12
