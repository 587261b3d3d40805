"""Programs that end themselves, and what of them must not act after that."""

from __future__ import annotations

import pytest

from simbridge.ur.tables import RobotMode, RuntimeState, SafetyMode
from tests.emulator.bench import ROBOT, Bench

SPEED = "speedj([0.5, 0, 0, 0, 0, 0], 2.0, 5)"


@pytest.fixture
def bench() -> Bench:
    return Bench().running()


@pytest.mark.parametrize(
    ("call", "setting"), [("powerdown()", "pause"), ("protective_stop()", "stop")]
)
@pytest.mark.parametrize("inside", ["{}", "thread t():\n  {}\nend\nrun t()\nsleep(10)"])
def test_nothing_runs_after_its_end(bench, call, setting, inside):
    bench.controller.set({"on_protective_stop": setting})
    bench.load(inside.format(f"{call}\n{SPEED}\nset_flag(0, True)"))
    bench.tick(0.5)

    assert bench.controller.program is None
    assert bench.state.runtime_state == RuntimeState.STOPPED
    assert [text for kind, text, _ in bench.messages if kind in ("started", "stopped")] == [
        "test",
        "test",
    ]
    assert not bench.state.flags[0]
    assert not bench.texts("error")

    if call == "powerdown()":
        assert bench.state.robot_mode == RobotMode.POWER_OFF
        bench.running()
    else:
        assert bench.state.safety_mode == SafetyMode.PROTECTIVE_STOP
        bench.tick(6.0)
        bench.controller.unlock_protective_stop()
    bench.tick(1.0)

    assert (bench.state.target_q == ROBOT.home).all()


def test_paused_program_continues_after_protective_stop(bench):
    bench.load("protective_stop()", "sync()", "set_flag(0, True)")
    bench.tick(6.0)

    assert bench.state.runtime_state == RuntimeState.PAUSED
    assert not bench.state.flags[0]

    bench.controller.unlock_protective_stop()

    assert bench.controller.play_program()

    bench.finish()

    assert bench.state.flags[0]
