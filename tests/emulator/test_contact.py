"""Forces on the emulated tool.

Pushes, a table, force mode and freedrive; what the sensor reads, and protective stops.
"""

from __future__ import annotations

import numpy as np
import pytest

from simbridge.emulator.contact import STIFFNESS
from simbridge.emulator.rtde_variables import input_variables
from simbridge.errors import InvalidParameter
from simbridge.ur.tables import RuntimeState, SafetyMode
from tests.emulator.bench import DT, ROBOT, Bench
from tests.properties import variants

pytestmark = pytest.mark.slow

SIX = "[0, 0, 0, 0, 0, 0]"


class Pushed(Bench):
    """A bench with hands, a table, and what was sent of protective stops."""

    def __init__(self) -> None:
        super().__init__()
        self.codes: list[tuple[int, int]] = []
        keep = self.controller.on_event

        def note(event) -> None:
            keep(event)
            if event.kind == "safety":
                self.codes.append((event.code, event.argument))

        self.controller.on_event = note

    def push(self, *wrench: float, seconds: float = 1.0) -> None:
        self.controller.drive.contact.push([*wrench, *[0.0] * (6 - len(wrench))], seconds)

    def tick_until_stopped(self) -> None:
        """Tick until the arm rests after a protective stop, and a tenth of a second more."""
        for _ in range(50):
            stopped = self.state.safety_mode == SafetyMode.PROTECTIVE_STOP and self.at_rest
            self.tick(0.1)
            if stopped:
                return
        raise AssertionError("no protective stop within 5 s")

    def table(self, below: float) -> float:
        """Put a table below the TCP, m; its height."""
        height = float(self.state.actual_tcp_pose[2]) - below
        self.controller.settings = self.controller.settings.changed({"table": height})
        return height

    @property
    def place(self) -> np.ndarray:
        return self.state.actual_tcp_pose[:3]


@pytest.fixture
def bench() -> Pushed:
    return Pushed().running()


def test_push_is_measured_without_motion(bench):
    bench.push(3.0, -4.0, 12.0, 0.5, 0.0, 0.0, seconds=0.5)
    bench.tick(0.1)

    assert bench.state.tcp_force.tolist() == [3.0, -4.0, 12.0, 0.5, 0.0, 0.0]

    bench.load(
        "write_output_float_register(0, force())",
        "f = get_tcp_force()",
        "write_output_float_register(1, f[2])",
    )
    bench.finish()

    assert bench.state.output_double[:2] == [13.0, 12.0]

    bench.tick(0.5)

    assert not bench.state.tcp_force.any() and bench.at_rest
    assert (bench.state.actual_q == ROBOT.home).all()


@pytest.mark.parametrize(
    ("wrench", "seconds"),
    [([1.0] * 5, 1.0), ([float("nan")] * 6, 1.0), ([1e300] * 6, 1.0), ([0.0] * 6, -1.0)],
)
def test_a_push_that_is_not_one_is_refused(bench, wrench, seconds):
    with pytest.raises(InvalidParameter):
        bench.controller.drive.contact.push(wrench, seconds)


def test_zeroing_the_sensor_subtracts_what_it_measures_then(bench):
    bench.push(5.0, 0.0, 0.0, seconds=0.5)
    bench.tick(0.1)
    bench.load("zero_ftsensor()", "sleep(0.1)")
    bench.finish()

    assert bench.state.tcp_force[0] == 0.0

    bench.tick(0.5)

    assert bench.state.tcp_force[0] == -5.0


def test_the_sensor_of_a_client_replaces_the_builtin_one(bench):
    bench.state.external_wrench = np.array([1.0, 2.0, 3.0, 0.0, 0.0, 0.0])
    bench.load("ft_rtde_input_enable(True)", "sleep(0.01)")
    bench.finish()

    assert bench.state.tcp_force[:3].tolist() == [1.0, 2.0, 3.0]


@pytest.mark.parametrize("number", [float("nan"), float("inf"), 1e300])
def test_wrench_without_numbers_is_ignored(bench, number):
    write = input_variables(bench.controller.profile)["external_force_torque"].access
    write(bench.state, (1.0, 2.0, 3.0, 0.0, 0.0, 0.0), {})
    write(bench.state, (0.0, number, 0.0, 0.0, 0.0, 0.0), {})

    assert bench.state.external_wrench.tolist() == [1.0, 2.0, 3.0, 0.0, 0.0, 0.0]


# Contact


def test_a_tool_that_touches_the_table_feels_a_spring(bench):
    height = bench.table(0.02)
    bench.load(
        "p0 = get_target_tcp_pose()", "movel(pose_add(p0, p[0, 0, -0.022, 0, 0, 0]), v=0.05)"
    )
    bench.finish()
    bench.tick(0.1)

    assert bench.place[2] == pytest.approx(height - 0.002, abs=1e-6)
    assert bench.state.tcp_force[2] == pytest.approx(0.002 * STIFFNESS, rel=1e-3)


def test_contact_is_seen_against_motion(bench):
    height = bench.table(0.02)
    bench.load(
        "while True:",
        "  steps = tool_contact([0, 0, -1, 0, 0, 0])",
        "  if steps > 0:",
        "    q1 = get_actual_joint_positions_history(steps)",
        "    stopl(3)",
        "    movel(q1)",
        "    write_output_integer_register(0, steps)",
        "    write_output_integer_register(1, tool_contact([0, 0, 1, 0, 0, 0]))",
        "    break",
        "  end",
        "  speedl([0, 0, -0.02, 0, 0, 0], 0.5, t=get_steptime())",
        "end",
    )
    bench.finish()
    bench.tick(0.1)

    # 5 N are 0.25 mm, 12.5 ms at 20 mm/s.
    assert (
        bench.state.output_int[0] == pytest.approx(0.0125 / DT, abs=2)
        and bench.state.output_int[1] == 0
    )
    assert bench.place[2] == pytest.approx(height, abs=5e-5)


def test_a_push_is_a_contact_in_any_direction(bench):
    bench.load(
        "while tool_contact([0, 0, 0, 0, 0, 0]) == 0:",
        "sync()",
        "end",
        "write_output_integer_register(0, tool_contact([0, 0, 0, 0, 0, 0]))",
    )
    bench.tick(0.1)

    assert bench.state.runtime_state == RuntimeState.PLAYING

    bench.push(0.0, 6.0)
    bench.finish()

    assert bench.state.output_int[0] == 1


# Force mode


def force_mode(
    wrench: str = "[0, 0, -20, 0, 0, 0]", limit: float = 0.03, frame: str = f"p{SIX}"
) -> str:
    return (
        f"force_mode({frame}, [0, 0, 1, 0, 0, 0], {wrench}, 2, "
        f"[0.05, 0.05, {limit}, 0.1, 0.1, 0.1])"
    )


def test_force_mode_attains_its_force(bench):
    height = bench.table(0.02)
    start = bench.place.copy()
    bench.load(force_mode(), "sleep(2.0)", "end_force_mode()", "sleep(0.2)")
    bench.tick(0.5)

    assert bench.place[2] == pytest.approx(start[2] - 0.03 * 0.5, abs=2e-3)  # its limit, in the air

    bench.tick(1.4)

    assert bench.state.tcp_force == pytest.approx([0, 0, 20.0, 0, 0, 0], abs=0.05)
    assert bench.place == pytest.approx([start[0], start[1], height - 20.0 / STIFFNESS], abs=1e-5)

    bench.finish()

    assert bench.at_rest and bench.place[2] == pytest.approx(height - 20.0 / STIFFNESS, abs=1e-5)


def test_force_mode_does_not_go_faster_than_its_limit(bench):
    bench.load(force_mode("[0, 0, 40, 0, 0, 0]", limit=0.01), "sleep(1)")
    bench.tick(0.9)
    speeds = np.diff([bench.controller.arm.pose(q)[2] for q in bench.q]) / DT

    assert speeds.max() == pytest.approx(0.01, rel=1e-2)


def test_move_continues_along_free_axes(bench):
    height = bench.table(0.005)
    start = bench.place.copy()
    goal = "pose_add(p0, p[0.03, 0.01, 0.04, 0, 0, 0])"
    bench.load(
        "p0 = get_target_tcp_pose()",
        force_mode(),
        "sleep(0.3)",
        f"movel({goal}, v=0.1)",
        "sleep(0.5)",
        "end_force_mode()",
    )
    bench.finish()

    assert bench.place[:2] - start[:2] == pytest.approx([0.03, 0.01], abs=1e-5)
    assert bench.place[2] == pytest.approx(height - 20.0 / STIFFNESS, abs=1e-4)


def test_force_mode_uses_the_task_frame(bench):
    start = bench.place.copy()
    bench.load(
        force_mode("[0, 0, 20, 0, 0, 0]", frame="p[0, 0, 0, 0, 1.5707963267948966, 0]"), "sleep(1)"
    )
    bench.tick(0.9)
    moved = bench.place - start

    assert moved[0] > 0.01 and moved[1:] == pytest.approx([0.0, 0.0], abs=1e-6)


def test_force_mode_yields_along_compliant_axis(bench):
    start = bench.place.copy()
    bench.load(force_mode(f"{SIX}"), "sleep(2)")
    bench.push(10.0, 10.0, 10.0, seconds=0.5)
    bench.tick(0.9)
    moved = bench.place - start

    assert moved[2] > 0.005 and moved[:2] == pytest.approx([0.0, 0.0], abs=1e-6)
    assert bench.at_rest or np.abs(bench.state.target_qd).max() < 1e-6


def test_force_mode_ends_with_its_program(bench):
    bench.load(force_mode("[0, 0, 20, 0, 0, 0]"), "sleep(5)")
    bench.tick(0.5)
    bench.controller.pause_program()
    bench.tick(0.5)
    resting = bench.place.copy()
    bench.tick(0.5)

    assert bench.at_rest and (bench.place == resting).all()

    bench.controller.play_program()
    bench.tick(0.5)

    assert bench.place[2] > resting[2]

    bench.controller.stop_program()
    bench.tick(0.5)
    resting = bench.place.copy()
    bench.tick(0.5)

    assert bench.at_rest and (bench.place == resting).all()


# Freedrive


@pytest.mark.parametrize("mode", variants(["freedrive_mode()", "teach_mode()"], "freedrive_mode()"))
def test_freedrive_moves_with_the_push(bench, mode):
    start = bench.place.copy()
    bench.load(mode, "sleep(10)")
    bench.tick(0.1)

    assert bench.at_rest

    bench.push(0.0, 8.0, 0.0, seconds=1.0)
    bench.tick(1.0)
    # 8 N against 40 N s/m, with a mass of 10 kg
    expected = 0.2 * (1.0 - 0.25 * (1.0 - np.exp(-4.0)))
    moved = bench.place - start

    assert moved[1] == pytest.approx(expected, rel=0.02) and np.abs(moved[[0, 2]]).max() < 2e-3

    bench.tick(4.0)

    assert bench.at_rest and bench.state.safety_mode == SafetyMode.NORMAL


def test_freedrive_moves_along_free_axes(bench):
    start = bench.place.copy()
    bench.load(
        "freedrive_mode(freeAxes=[1, 0, 0, 0, 0, 0], feature=p[0, 0, 0, 0, 0, 0])",
        "sleep(0.6)",
        "end_freedrive_mode()",
        "sleep(1)",
    )
    bench.push(8.0, 8.0, 8.0, seconds=2.0)
    bench.tick(1.0)
    moved = bench.place - start

    assert moved[0] > 0.05 and np.abs(moved[1:]).max() < 2e-3

    resting = bench.place.copy()
    bench.tick(0.2)

    assert bench.at_rest and (bench.place == resting).all()


# Protective stops


def test_excessive_force_stops_the_arm(bench):
    bench.push(0.0, 0.0, 149.0)
    bench.tick(0.1)

    assert bench.state.safety_mode == SafetyMode.NORMAL

    bench.push(0.0, 0.0, 151.0)
    bench.tick(0.1)

    assert bench.state.safety_mode == SafetyMode.PROTECTIVE_STOP

    # The joint that the force loads most, of what it can hold: the torque is the force times its
    # lever about the axis.
    force = np.array([0.0, 0.0, 151.0])
    step = 1e-6
    arm = bench.controller.arm
    q = bench.state.actual_q
    levers = [
        (arm.tool(q + step * e).translation - arm.tool(q - step * e).translation) / (2 * step)
        for e in np.eye(6)
    ]
    joint = int(np.argmax(np.abs(np.array(levers) @ force) / ROBOT.max_effort))

    assert bench.codes == [(157, joint)] and "151 N" in bench.texts("safety")


def test_driving_into_the_table_stops_the_arm(bench):
    bench.table(0.02)
    bench.load("p0 = get_target_tcp_pose()", "movel(pose_add(p0, p[0, 0, -0.1, 0, 0, 0]), v=0.1)")
    bench.tick_until_stopped()

    assert bench.state.safety_mode == SafetyMode.PROTECTIVE_STOP and bench.at_rest
    assert bench.codes[0][0] == 157


def test_overloaded_joint_leaves_its_path(bench):
    bench.push(0.0, 0.0, 0.0, 0.0, 0.0, 60.0)
    bench.tick(0.1)

    assert bench.state.safety_mode == SafetyMode.PROTECTIVE_STOP

    code, joint = bench.codes[0]

    assert code == 153 and ROBOT.max_effort[joint] < 60.0
    assert ROBOT.joint_names[joint] in bench.texts("safety")


def test_unreachable_line_ends_with_urs_code(bench):
    # At the edge of the reach no joint is too fast before there are no joints at all; from home one
    # is (A1, above).
    bench.load(
        "movej([0, -1.5, 0.02, -1.5, -1.57, 0], a=5, v=3)",
        "movel(pose_add(get_target_tcp_pose(), p[0, 0, 0.3, 0, 0, 0]), a=1, v=1)",
    )
    bench.tick_until_stopped()

    assert bench.state.safety_mode == SafetyMode.PROTECTIVE_STOP and bench.codes == [(204, 5)]


@pytest.mark.parametrize(
    ("program", "code"),
    [
        (
            (
                "servoj([q[0] + 1.0, q[1], q[2], q[3], q[4], q[5]], gain=2000, "
                "lookahead_time=0.03)\nsleep(1)"
            ),
            (204, 1),
        ),
        ("speedj([0, 0, 0, 0, 0, 3.0], 10.0, 60)", (150, 0)),
        (
            "p0 = get_target_tcp_pose()\nmovel(pose_add(p0, p[0, 0, 3, 0, 0, 0]), a=2.0, v=1.0)",
            (204, 1),
        ),
        ("protective_stop()\nsleep(1)", (209, 0)),
    ],
)
def test_the_code_of_a_protective_stop_is_urs(bench, program, code):
    bench.load(program)
    bench.tick_until_stopped()

    assert bench.state.safety_mode == SafetyMode.PROTECTIVE_STOP and bench.at_rest
    assert bench.codes == [code]


@pytest.mark.parametrize(
    "call",
    variants(
        [
            force_mode("[0, 0, 20, 0, 0, 0]"),
            "end_force_mode()",
            "freedrive_mode()",
            "end_freedrive_mode()",
            "teach_mode()",
            "end_teach_mode()",
            "freedrive_mode_no_incorrect_payload_check()",
        ],
        force_mode("[0, 0, 20, 0, 0, 0]"),
        "end_force_mode()",
        "teach_mode()",
    ),
)
def test_a_secondary_program_neither_starts_nor_ends_motions_by_forces(bench, call):
    bench.load("movel(pose_add(get_target_tcp_pose(), p[0, 0.05, 0, 0, 0, 0]), v=0.2)")
    bench.tick(0.2)
    bench.controller.load_script(f"sec s():\n  {call}\nend\n")
    bench.start_secondary()
    bench.finish()

    assert "A secondary program must not move the arm" in bench.texts("error")

    moved = (
        bench.controller.arm.tool(bench.q[-1]).translation
        - bench.controller.arm.tool(bench.q[0]).translation
    )

    assert moved == pytest.approx([0, 0.05, 0], abs=1e-8)


def test_freedrive_waits_for_a_moving_thread(bench):
    bench.load(
        "thread free():",
        "  sleep(0.2)",
        "  freedrive_mode()",
        "end",
        "run free()",
        "movej([q[0] + 0.5, q[1], q[2], q[3], q[4], q[5]])",
    )
    bench.finish()

    assert "Another thread is already controlling the robot" in bench.texts("error")


@pytest.mark.parametrize(
    "move", variants(["movel(p1, v=0.1)", "movej(get_inverse_kin(p1), v=0.1)"], "movel(p1, v=0.1)")
)
def test_move_outlasts_force_mode(bench, move):
    bench.load(
        "p1 = pose_add(get_target_tcp_pose(), p[0, 0.06, 0, 0, 0, 0])",
        "thread ends():",
        "  sleep(0.5)",
        "  end_force_mode()",
        "end",
        force_mode("[0, 0, 20, 0, 0, 0]"),
        "run ends()",
        move,
    )
    bench.finish()
    places = np.array([bench.controller.arm.tool(q).translation for q in bench.q])

    assert places[-1][:2] - places[0][:2] == pytest.approx([0, 0.06], abs=1e-6)
    # Where force mode had come to after half a second; it is not pressed on, and nothing jumps.
    assert 0.005 < places[-1][2] - places[0][2] < 0.02
    assert np.abs(np.diff(places, 2, axis=0)).max() / DT < 0.01
    assert (
        bench.state.safety_mode == SafetyMode.NORMAL and bench.controller.drive.force_mode is None
    )


def test_servoj_continues_after_force_mode(bench):
    bench.load(
        force_mode("[0, 0, 20, 0, 0, 0]"),
        "i = 0",
        "while i < 600:",
        "  servoj(q)",
        "  i = i + 1",
        "  if i == 250:",
        "    end_force_mode()",
        "  end",
        "end",
    )
    bench.finish()

    assert bench.q[-1] == pytest.approx(ROBOT.home, abs=1e-4)
    assert bench.state.safety_mode == SafetyMode.NORMAL
