"""The servo law against its closed form, a recursion written from the facts alone, and a recording
of a real arm.
"""

from __future__ import annotations

import gzip
import math
import os
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simbridge.errors import InvalidParameter
from simbridge.servo.joints import ServojJoints
from simbridge.servo.law import GAIN_RANGE, LOOKAHEAD_RANGE, JointMotion, ServojLaw
from simbridge.servo.observation import observe_setpoints
from tests.properties import few_examples

CYCLE = 0.002
lookaheads = st.floats(*LOOKAHEAD_RANGE)
gains = st.floats(*GAIN_RANGE)
# At 2 ms every tuning in UR's range is stable.
laws = st.builds(lambda gain, lookahead: ServojLaw(CYCLE, gain, lookahead), gains, lookaheads)
angles = st.floats(-6.0, 6.0, width=32)


def smooth(cycles: int, joints: int = 2) -> np.ndarray:
    times = np.arange(cycles) * CYCLE
    return np.stack([np.sin((1.0 + joint) * times) + joint for joint in range(joints)], axis=1)


def recursion(commands, call, phase, gain, lookahead, cycles):
    """One joint, at rest at the first command: what is known of real arms, in the plainest way."""
    commands = [float(np.float32(command)) for command in commands]
    lookahead = float(np.float32(lookahead))

    def ramp(time):
        number = math.ceil(round((time - phase) / call, 9)) - 1
        if number < 0:
            return commands[0]
        if number >= len(commands):
            return commands[-1]
        begin = commands[max(number - 1, 0)]
        return begin + ((time - phase) / call - number) * (commands[number] - begin)

    q = commands[0]
    v = 0.0
    positions = []
    # Without a new command the script calls servoj again with the last one.
    edges = [phase + m * call for m in range(int(cycles * CYCLE / call) + 1)]
    for k in range(cycles):
        inside = [edge for edge in edges if k * CYCLE + 1e-7 < edge < (k + 1) * CYCLE - 1e-7]
        instants = [k * CYCLE, *inside, (k + 1) * CYCLE]
        for begin, end in pairwise(instants):
            v += (end - begin) * gain * (ramp(end) - q - lookahead * v)
            q += (end - begin) * v
        positions.append(q)
    return np.array(positions)


@pytest.mark.slow
@given(laws, angles, angles, st.floats(-2.0, 2.0), st.integers(1, 2000))
def test_a_held_command_is_approached_exactly(law, command, q, qd, cycles):
    command = float(np.float32(command))
    motion = law.follow(
        np.array([[command]]),
        previous=np.array([command]),
        q=np.array([q]),
        qd=np.array([qd]),
        cycles=cycles,
    )
    h = law.cycle
    g = law.gain
    damping = law.gain * float(np.float32(law.lookahead))
    step = np.array([[1.0 - h * h * g, h * (1.0 - h * damping)], [-h * g, 1.0 - h * damping]])
    offset, velocity = np.linalg.matrix_power(step, cycles) @ [q - command, qd]

    assert motion.q[-1, 0] == pytest.approx(command + offset, abs=1e-9)
    assert motion.qd[-1, 0] == pytest.approx(velocity, abs=1e-8)


@given(laws, st.floats(-1.0, 1.0))
def test_a_steady_motion_lags_the_lookahead(law, speed):
    # Ten seconds are many times the slowest decay in UR's range.
    commands = (speed * CYCLE * np.arange(5000))[:, np.newaxis]
    trail = commands[-1, 0] - law.follow(commands).q[-1, 0]

    assert trail == pytest.approx(speed * law.lag, abs=1e-6)


@few_examples(8, soak=400)
@given(
    laws,
    st.lists(angles, min_size=1, max_size=12),
    st.sampled_from([0.002, 0.004, 0.008, 0.01, 0.005, 0.0072]),
    st.just(0.0) | st.floats(1e-5, 0.0019),
)
def test_calls_are_integrated_as_on_the_arm(law, commands, call, phase):
    cycles = int((phase + call * len(commands)) / CYCLE) + 5
    motion = law.follow(np.array(commands)[:, np.newaxis], call=call, begin=phase, cycles=cycles)
    expected = recursion(commands, call, phase, law.gain, law.lookahead, cycles)
    np.testing.assert_allclose(motion.q[:, 0], expected, rtol=0.0, atol=1e-9)


@given(laws)
def test_the_commands_for_a_motion_make_that_motion(law):
    wanted = smooth(500)
    # Commands are single precision.
    np.testing.assert_allclose(law.follow(law.commands_for(wanted)).q, wanted, rtol=0.0, atol=5e-7)


@given(laws)
def test_the_inverse_finds_the_commands_of_a_motion(law):
    commands = smooth(500).astype(np.float32).astype(float)
    np.testing.assert_allclose(
        law.commands_for(law.follow(commands).q), commands, rtol=0.0, atol=1e-9
    )


@few_examples(8, soak=400)
@given(laws, st.integers(1, 299), st.sampled_from([0.002, 0.008]))
def test_commands_in_two_parts_make_the_same_motion(law, split, call):
    commands = smooth(300)
    whole = law.follow(commands, call=call)
    first = law.follow(commands[:split], call=call)
    second = law.follow(
        commands[split:], call=call, previous=commands[split - 1], q=first.q[-1], qd=first.qd[-1]
    )
    np.testing.assert_allclose(np.concatenate([first.q, second.q]), whole.q, rtol=0.0, atol=1e-12)


@few_examples(8, soak=400)
@given(laws, st.sampled_from([0.002, 0.004, 0.01]), st.sampled_from([0.0, 0.0007, 0.001375]))
def test_single_cycles_equal_the_whole(law, call, phase):
    commands = smooth(60)
    whole = law.follow(commands, call=call, begin=phase)
    joints = ServojJoints(law, commands[0], phase)
    single = []
    for command in commands:
        joints.command(command, call)
        single += [joints.step() for _ in range(round(call / CYCLE))]
    np.testing.assert_allclose(np.array(single), whole.q[: len(single)], rtol=0.0, atol=1e-12)


@given(laws)
def test_the_commands_show_in_position_velocity_and_acceleration(law):
    commands = smooth(300)
    whole = np.full(len(commands), CYCLE)
    seen, weight = observe_setpoints(
        law.follow(commands),
        CYCLE,
        gain=law.gain,
        lookahead=float(np.float32(law.lookahead)),
        last_step=whole,
    )
    np.testing.assert_allclose(seen, commands.astype(np.float32), rtol=0.0, atol=1e-9)

    assert (weight == 1.0).all()


@given(laws, st.floats(0.01, 0.99))
def test_split_cycles_show_a_point_between_two_commands(law, share):
    phase = share * CYCLE
    sent = smooth(300).astype(np.float32).astype(float)
    motion = law.follow(sent, begin=phase, cycles=len(sent))
    rest = np.full(len(sent), CYCLE - phase)
    seen, weight = observe_setpoints(
        motion, CYCLE, gain=law.gain, lookahead=float(np.float32(law.lookahead)), last_step=rest
    )
    last = sent[:-1] + (1.0 - share) * np.diff(sent, axis=0)
    expected = (1.0 - weight[1:, None]) * sent[:-1] + weight[1:, None] * last
    np.testing.assert_allclose(seen[1:], expected, rtol=0.0, atol=1e-9)


def test_the_compiled_law_gets_floats_only(monkeypatch):
    # Compiled for the first call's types, it would cut all later values to whole numbers.
    given = []
    monkeypatch.setattr(
        "simbridge.servo.law.compiled_integrate", lambda: lambda *arguments: given.extend(arguments)
    )
    ServojLaw(CYCLE, 300, 0.1).follow(smooth(300), call=1, begin=0, cycles=300)

    assert given[2].dtype == float
    assert [type(value) for value in given[3:7]] == [float] * 4


call_durations = st.lists(
    st.sampled_from([0.001, 0.0007, 0.002, 0.0031, 0.008, 0.010]), min_size=1, max_size=25
)


def integrate_densely(commands, durations, law, cycles):
    """One joint at rest at the first command; the setpoint by interpolation, every edge a step."""
    edges = np.concatenate([[0.0], np.cumsum(durations)])
    # Calls go on as long as the last one.
    repeats = int(cycles * law.cycle / durations[-1]) + 2
    later = edges[-1] + durations[-1] * np.arange(1, repeats)
    single = np.float32(commands).astype(float)
    setpoints = np.concatenate([single[:1], single, np.full(len(later), single[-1])])
    edges = np.concatenate([edges, later])
    lookahead = float(np.float32(law.lookahead))

    q = single[0]
    v = 0.0
    positions = []
    for k in range(cycles):
        begin = k * law.cycle
        end = begin + law.cycle
        inside = edges[(edges > begin + 1e-8) & (edges < end - 1e-8)]
        for first, last in pairwise([begin, *inside, end]):
            v += (last - first) * law.gain * (np.interp(last, edges, setpoints) - q - lookahead * v)
            q += (last - first) * v
        positions.append(q)
    return np.array(positions)


@few_examples(8, soak=400)
@given(
    st.sampled_from([ServojLaw(0.002), ServojLaw(0.008, 100.0, 0.2), ServojLaw(0.008, 300.0, 0.1)]),
    call_durations,
    st.randoms(use_true_random=False),
)
def test_calls_may_differ_in_duration(law, durations, random):
    commands = np.cumsum([random.uniform(-0.02, 0.02) for _ in durations])
    cycles = int(sum(durations) / law.cycle) + 4

    motion = law.follow(commands[:, np.newaxis], call=np.array(durations), cycles=cycles)

    expected = integrate_densely(commands, durations, law, cycles)
    np.testing.assert_allclose(motion.q[:, 0], expected, rtol=0.0, atol=1e-9)


@few_examples(8, soak=400)
@given(call_durations, st.randoms(use_true_random=False))
def test_joints_take_calls_that_begin_inside_a_cycle(durations, random):
    law = ServojLaw(0.008, 100.0, 0.2)
    commands = np.cumsum([random.uniform(-0.02, 0.02) for _ in durations])
    cycles = int(sum(durations) / law.cycle) + 1
    joints = ServojJoints(law, commands[:1], compiled=False)

    positions = []
    number = 0
    for _ in range(cycles):
        # A program calls servoj again in the cycle in which its last call ends.
        while (
            number < len(durations)
            and sum(durations[:number]) < law.cycle * (len(positions) + 1) - 1e-9
        ):
            joints.command(commands[number : number + 1], durations[number])
            number += 1
        positions.append(joints.step()[0])

    expected = law.follow(commands[:, np.newaxis], call=np.array(durations), cycles=cycles)
    np.testing.assert_allclose(positions, expected.q[:, 0], rtol=0.0, atol=1e-12)


def test_a_command_is_held_between_calls():
    law = ServojLaw(CYCLE)
    joints = ServojJoints(law, np.zeros(1))

    joints.command(np.array([0.01]), 0.0005)
    positions = [joints.step()[0] for _ in range(3)]
    joints.command(np.array([0.02]))
    positions.append(joints.step()[0])

    # The program repeats its call: each end splits a cycle.
    sent = np.array([[0.01]] * 12 + [[0.02]])
    durations = np.array([0.0005] * 12 + [0.002])
    expected = law.follow(sent, call=durations, previous=np.zeros(1), cycles=4)
    np.testing.assert_allclose(positions, expected.q[:, 0], rtol=0.0, atol=1e-12)


@pytest.mark.parametrize("duration", [0.0, -0.001, math.nan])
def test_a_call_has_a_duration(duration):
    with pytest.raises(InvalidParameter, match="duration of a servoj call"):
        ServojLaw(CYCLE).follow(np.zeros((2, 1)), call=np.array([0.002, duration]))


def test_joints_go_on_from_a_given_motion():
    joints = ServojJoints(ServojLaw(CYCLE), np.zeros(1))
    joints.reset(np.array([1.0]), np.array([0.5]))

    q = joints.step()

    assert 1.0 < q[0] < 1.001
    assert joints.qd[0] < 0.5


@pytest.mark.parametrize("lookahead", [0.0, 0.029, 0.201, math.nan, math.inf, -0.1])
def test_a_lookahead_has_urs_range(lookahead):
    with pytest.raises(InvalidParameter, match=r"lookahead.*0\.03 and 0\.2"):
        ServojLaw(CYCLE, lookahead=lookahead)


@pytest.mark.parametrize("gain", [0.0, 99.0, 2001.0, math.nan, math.inf, -300.0])
def test_a_gain_has_urs_range(gain):
    with pytest.raises(InvalidParameter, match=r"gain.*100 and 2000"):
        ServojLaw(CYCLE, gain)


@given(gains, lookaheads, st.sampled_from([0.002, 0.008]))
def test_only_stable_tunings_are_taken(gain, lookahead, cycle):
    damping = gain * lookahead
    step = np.array(
        [
            [1.0 - cycle**2 * gain, cycle * (1.0 - cycle * damping)],
            [-cycle * gain, 1.0 - cycle * damping],
        ]
    )
    radius = np.abs(np.linalg.eigvals(step)).max()
    if radius < 1.0 - 1e-9:
        ServojLaw(cycle, gain, lookahead)
    elif radius > 1.0 + 1e-9:
        with pytest.raises(InvalidParameter, match="unstable"):
            ServojLaw(cycle, gain, lookahead)


def test_an_unstable_tuning_is_refused_with_the_bound():
    with pytest.raises(InvalidParameter, match=r"below 0\.121 .*2000.*8 ms"):
        ServojLaw(0.008, 2000.0, 0.13)


def test_a_real_arm_obeys_the_law():
    """In the recording of a real UR5e under servoj, the setpoints that its targets reveal are the
    commands sent.
    """
    if "SIMBRIDGE_RECORDINGS" not in os.environ:
        pytest.skip("SIMBRIDGE_RECORDINGS names no folder with recordings of real arms")
    folder = Path(os.environ["SIMBRIDGE_RECORDINGS"]) / "ur5e_servoj"

    def read(name):
        with gzip.open(folder / name, "rt") as file:
            names = file.readline().split()
            data = np.loadtxt(file)
        return [
            data[:, [names.index(f"target_{kind}_{j}") for j in range(6)]]
            for kind in ("q", "qd", "qdd")
        ]

    commands, _, _ = read("recorded_in_freedrive.csv.gz")
    q, qd, qdd = read("replay_begin.csv.gz")
    moving = np.abs(qd).max(axis=1) > 1e-4
    targets = JointMotion(q[moving], qd[moving], qdd[moving])
    seen, _ = observe_setpoints(
        targets,
        CYCLE,
        gain=300.0,
        lookahead=float(np.float32(0.1)),
        last_step=np.full(len(targets.q), CYCLE),
    )
    begin = commands[:-1]
    way = np.diff(commands, axis=0)
    length = np.maximum((way**2).sum(axis=1), 1e-30)
    distances = []
    for setpoint in seen:
        share = np.clip(((setpoint - begin) * way).sum(axis=1) / length, 0.0, 1.0)
        distances.append(
            np.sqrt(((setpoint - begin - share[:, np.newaxis] * way) ** 2).sum(axis=1).min())
        )

    assert np.median(distances) < 1e-7
    assert np.percentile(distances, 99) < 5e-5


stable_laws = st.builds(
    lambda cycle, gain, lookahead: ServojLaw(cycle, gain, lookahead),
    st.sampled_from([0.002, 0.008]),
    gains,
    st.floats(0.03, 0.1),
)


@few_examples(8, soak=400)
@given(
    stable_laws,
    st.lists(st.tuples(st.floats(-1.0, 1.0), st.integers(1, 60)), min_size=1, max_size=20),
)
def test_no_commands_exceed_the_velocity_gain(law, parts):
    velocity = np.concatenate([np.full(count, value) for value, count in parts])
    commands = law.cycle * np.cumsum(velocity)[:, np.newaxis]

    peak = np.abs(law.follow(commands, previous=np.zeros(1), cycles=len(commands) + 200).qd).max()

    assert peak <= law.velocity_gain().of_any_motion


@pytest.mark.parametrize("cycle", [0.002, 0.008])
@pytest.mark.parametrize("gain", [100.0, 300.0, 2000.0])
def test_the_velocity_gain_is_attained(cycle, gain):
    law = ServojLaw(cycle, gain, 0.03)
    # An impulse of velocity is a step of the command.
    response = law.follow(
        np.full((1, 1), cycle), previous=np.zeros(1), cycles=round(10.0 / cycle)
    ).qd[:, 0]
    worst = np.sign(response[::-1])
    commands = cycle * np.cumsum(worst)[:, np.newaxis]
    reached = law.follow(commands, previous=np.zeros(1)).qd[-1, 0]

    predicted = law.velocity_gain()

    assert reached == pytest.approx(predicted.of_any_motion - predicted.late, rel=1e-3)


def test_a_reversal_has_the_closed_forms_gain():
    """At a short cycle the overshoot of a step is exp(-pi z / sqrt(1 - z^2)).

    z is the damping ratio.
    """
    gain = 100.0
    lookahead = 0.03
    damping = 0.5 * math.sqrt(gain) * lookahead
    overshoot = math.exp(-math.pi * damping / math.sqrt(1.0 - damping**2))

    velocity_gain = ServojLaw(0.0005, gain, lookahead).velocity_gain()

    assert velocity_gain.reversal == pytest.approx(1.0 + 2.0 * overshoot, rel=2e-3)
    assert velocity_gain.of_any_motion == pytest.approx(
        (1.0 + overshoot) / (1.0 - overshoot), rel=5e-3
    )


@given(stable_laws, st.integers(20, 400), st.floats(0.1, 1.0))
@few_examples(15)
def test_a_late_command_keeps_the_velocity_gain(law, at, speed):
    commands = law.cycle * speed * np.arange(1.0, 600.0)[:, np.newaxis]
    late = commands.copy()
    late[at] = late[at - 1]
    both = [law.follow(sent, previous=np.zeros(1)).qd for sent in (commands, late)]

    assert np.abs(both[1] - both[0]).max() <= speed * law.velocity_gain().late * (1.0 + 1e-3) + 1e-5
