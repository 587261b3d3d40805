"""Programs of one line that follow each other, as clients stream speeds and servoj."""

from __future__ import annotations

import numpy as np
import pytest

from simbridge.ur.tables import RuntimeState
from tests.emulator.bench import DT, ROBOT, Bench
from tests.properties import variants

pytestmark = pytest.mark.slow

# Time from one line to the next, s.
LINE_PERIOD = 0.008
SPEED = "speedj([0, 0, 0, 0, 0, -0.5], 2.0, 0.02)"


@pytest.fixture
def bench() -> Bench:
    return Bench().running()


def send(bench: Bench, line: str, ticks: int = 4) -> None:
    """Send a program of one line, and let some ticks pass, the first without the program."""
    bench.controller.load_script(f"{line}\n")
    bench.tick()
    bench.controller.program.compilation.join()
    bench.tick((ticks - 1) * DT)


def stream(bench: Bench, line: str, seconds: float, ticks: int = 4) -> None:
    for _ in range(round(seconds / (ticks * DT))):
        send(bench, line, ticks)


@pytest.mark.parametrize(
    "line", variants([SPEED, "speedj([0, 0, 0, 0, 0, -0.5], 2.0, 0.008)"], SPEED)
)
def test_streamed_speedj_reaches_its_speed(bench, line):
    stream(bench, line, 0.3)

    assert bench.state.target_qd[5] == pytest.approx(-0.5)

    stream(bench, line, 0.2)

    assert bench.speeds()[-100:, 5] == pytest.approx(-0.5)


def test_streamed_speedj_without_time_pulsates(bench):
    """As on a UR5 (ur_modern_driver, issue 92): each program ends once its speed is reached."""
    stream(bench, "speedj([0, 0, 0, 0, 0, -0.5], 2.0)", 0.5)
    speed = np.abs(bench.speeds()[-100:, 5])

    assert speed.max() == pytest.approx(0.5, abs=0.005)
    assert 0.4 < speed.min() < 0.495


def test_streamed_speedl_reaches_its_speed(bench):
    stream(bench, "speedl([0, 0, 0.05, 0, 0, 0], 0.5, 0.02)", 0.4)

    assert bench.state.target_tcp_speed[:3] == pytest.approx([0.0, 0.0, 0.05], abs=1e-6)


def test_the_program_plays_from_line_to_line(bench):
    states = set()
    stream(bench, SPEED, 0.1)
    for _ in range(10):
        send(bench, SPEED)
        states.add(bench.state.runtime_state)

    assert states == {RuntimeState.PLAYING}


def test_arm_slows_down_after_the_last_line(bench):
    stream(bench, SPEED, 0.3)
    bench.q = [bench.state.target_q]
    bench.tick(0.5)
    speed = np.abs(bench.speeds()[:, 5])

    assert bench.state.runtime_state == RuntimeState.STOPPED
    # 0.02 s of the last call, then 0.16 s of a program's end.
    assert np.count_nonzero(speed) * DT == pytest.approx(0.18, abs=0.02)
    assert np.abs(np.diff(speed)).max() / DT == pytest.approx(0.5 / 0.16, rel=0.05)


def test_late_lines_take_over_from_the_present_speed(bench):
    """With 40 ms between lines of 20 ms the arm slows down for half of the time."""
    stream(bench, SPEED, 0.3)
    bench.q = [bench.state.target_q]
    stream(bench, SPEED, 0.4, ticks=20)
    speed = np.abs(bench.speeds()[:, 5])

    assert 0.3 < speed.min() < 0.5
    assert speed.max() == pytest.approx(0.5)


def test_lines_faster_than_ticks_move_the_arm(bench):
    """Each line arrives before the program before it has begun."""
    for _ in range(100):
        bench.controller.load_script(f"{SPEED}\n")
        bench.tick()
        bench.controller.program.compilation.join()
        bench.controller.load_script(f"{SPEED}\n")
        bench.tick()

    assert bench.state.target_qd[5] == pytest.approx(-0.5)


def test_streamed_servoj_follows_its_setpoints(bench):
    goal = ROBOT.home.copy()
    for step in range(60):
        goal[5] = ROBOT.home[5] + 0.3 * step * LINE_PERIOD
        send(bench, f"servoj({goal.tolist()}, t=0.012, lookahead_time=0.05)")
    bench.q = bench.q[-60:]

    assert bench.speeds()[:, 5] == pytest.approx(0.3, abs=0.02)


@pytest.mark.parametrize(
    "program",
    variants(["sleep(1.0)", "textmsg(1)", "x = y", "x = = 1"], "textmsg(1)", "x = = 1"),
)
def test_other_programs_do_not_keep_the_speed(bench, program):
    stream(bench, SPEED, 0.3)

    send(bench, program)
    bench.tick(0.4)

    assert not bench.state.target_qd.any()


def test_a_stop_ends_the_stream(bench):
    stream(bench, SPEED, 0.3)

    bench.controller.stop_program()
    bench.tick(0.3)

    assert bench.state.runtime_state == RuntimeState.STOPPED
    assert not bench.state.target_qd.any()


def test_moves_come_to_rest_between_lines(bench):
    """UR's support: only speeds have no profile of their own (python-urx, issue 2)."""
    goal = ROBOT.home + np.array([0.0, 0.0, 0.0, 0.0, 0.0, 1.0])
    bench.controller.load_script(f"movej({goal.tolist()}, a=5)\n")
    bench.controller.program.compilation.join()
    bench.tick(0.3)
    bench.q = [bench.state.target_q]

    send(bench, f"movej({ROBOT.home.tolist()}, a=5)")
    bench.tick(0.3)

    assert (bench.speeds()[:, 5] == 0.0).any()
    assert bench.state.runtime_state == RuntimeState.PLAYING
