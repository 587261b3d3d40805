"""Joint servo, kinematics, payload and friction from recordings.

And what a recording cannot show.
"""

from __future__ import annotations

import os
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

import numpy as np
import pinocchio as pin
import pytest

from simbridge.errors import UnusableSamples
from simbridge.identification.data import Identification, Samples, read_recording_samples
from simbridge.identification.identification import identify
from simbridge.identification.joint_lag import fit_joint_servo
from simbridge.identification.kinematics import fit_kinematics
from simbridge.identification.target_motion import NotIdentified
from simbridge.robot.calibration import calibrate, nominal_dh
from simbridge.robot.load import load_robot
from simbridge.robot.robot import Robot
from simbridge.trajectory.rtde_recording import read_joint_positions
from tests.identification.controller import Sender, recorded, wandering

pytestmark = pytest.mark.slow

RECORDING = Path(__file__).parents[1] / "data" / "ur3e_moves" / "moves.csv.gz"
TOOL = pin.SE3(pin.rpy.rpyToMatrix(0.1, -0.2, 0.3), np.array([0.01, -0.02, 0.15]))


@lru_cache
def arms() -> tuple[Robot, ...]:
    return tuple(map(load_robot, ("ur3e", "ur5", "ur5e", "ur10", "ur10e")))


def arm(name: str) -> Robot:
    return next(robot for robot in arms() if robot.name == name)


@lru_cache
def of_real_ur3e() -> Identification:
    """What the recording of a real arm, which is not named, shows."""
    return identify(read_recording_samples(RECORDING), robot=None, others=arms())


def poses_in_pendant_base(robot: Robot, q: np.ndarray) -> np.ndarray:
    """TCP poses as a controller gives them, by pinocchio."""
    model = robot.model
    half_turn = pin.SE3(pin.utils.rotate("z", np.pi), np.zeros(3))
    data = model.createData()
    frame = model.getFrameId("tcp")
    tool_poses = []
    for joints in q:
        pin.framesForwardKinematics(model, data, joints)
        pose = half_turn * data.oMf[frame]
        tool_poses.append(np.concatenate([pose.translation, pin.log3(pose.rotation)]))
    return np.array(tool_poses)


def moving(count: int = 400) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Times, and six joints that move: positions, velocities, accelerations."""
    time = np.arange(count)[:, None] * 0.008
    rate = np.array([0.9, 1.1, 1.3, 1.7, 2.1, 2.3])
    shift = np.arange(6.0)
    q = np.array([0.3, -1.4, 1.7, -1.9, -1.5, 0.4]) + 0.5 * np.sin(rate * time + shift)
    return (
        time[:, 0],
        q,
        0.5 * rate * np.cos(rate * time + shift),
        -0.5 * rate**2 * np.sin(rate * time + shift),
    )


def test_resting_joints_have_no_lag():
    _, q, qd, _ = moving()
    qd = qd * [1, 1, 1, 1, 1, 0.01]
    q = q.copy()
    noise = np.random.default_rng(0).normal(scale=2e-5, size=q.shape)

    lag_fit = fit_joint_servo(q, qd, q - 0.0005 * qd + noise)

    assert lag_fit["lag_s"] == pytest.approx(0.0005, abs=5e-6)
    assert lag_fit["uncertainty"]["lag_s"] < 1e-5
    assert lag_fit["residual_rad"]["rms"] == pytest.approx(2e-5, rel=0.1)

    joints = [joint["lag_s"] for joint in lag_fit["per_joint"]]

    assert [lag is None for lag in joints] == [False] * 5 + [True]
    assert np.abs(np.array(joints[:5]) - 0.0005).max() < 2e-5


def test_a_joint_in_contact_spoils_no_lag():
    _, q, qd, _ = moving()
    actual = q - 0.0005 * qd
    actual[:, 0] += 1e-3 * np.sign(qd[:, 0])

    assert fit_joint_servo(q, qd, actual)["lag_s"] == pytest.approx(0.0005, abs=2e-5)


def test_noise_has_no_lag():
    random = np.random.default_rng(0)
    _, q, qd, _ = moving()

    with pytest.raises(NotIdentified, match="no joint moves faster"):
        fit_joint_servo(q, 0.001 * qd, q + random.normal(scale=1e-4, size=q.shape))
    with pytest.raises(NotIdentified, match="the lag only to within"):
        fit_joint_servo(q, qd, q + random.normal(scale=0.1, size=q.shape))


def calibrated_arm(robot: Robot, seed: int = 4) -> Robot:
    """The arm with deviations like those of a real one."""
    nominal = nominal_dh(robot)
    random = np.random.default_rng(seed)
    changed = {
        row: tuple(np.array(getattr(nominal, row)) + random.normal(scale=size, size=6))
        for row, size in (("theta", 2e-3), ("a", 3e-4), ("d", 3e-4), ("alpha", 1e-3))
    }
    return calibrate(robot, replace(nominal, **changed))


def test_kinematics_nominal_given_and_estimated():
    robot = arm("ur5e")
    _, q, _, _ = (part[::4] for part in moving())

    nominal = fit_kinematics(robot, q, poses_in_pendant_base(robot.with_tcp(TOOL), q))

    assert (nominal.source, nominal.residual) == ("nominal", pytest.approx(0.0, abs=1e-12))
    assert nominal.tcp == pytest.approx(
        np.concatenate([TOOL.translation, pin.log3(TOOL.rotation)]), abs=1e-9
    )

    calibrated = calibrated_arm(robot)
    poses = poses_in_pendant_base(calibrated.with_tcp(TOOL), q)

    estimated = fit_kinematics(robot, q, poses)

    assert estimated.source == "estimated"
    assert estimated.residual < 2e-6

    with_given_tool = fit_kinematics(calibrated, q, poses, is_calibrated=True)

    assert (with_given_tool.source, with_given_tool.residual) == (
        "given",
        pytest.approx(0.0, abs=1e-12),
    )


# What real calibrations of a UR10e and a UR5e displace, rounded: a, d (m) and alpha (rad).
CALIBRATIONS = {
    "ur10e": (
        (0.0, 5e-4, 4e-4, 0.0, 8e-5, 0.0),
        (4e-4, 0.0, 0.0, 4e-4, 6e-5, -8.6e-4),
        (-8e-4, 9e-4, -2e-3, -1e-3, 1e-4, 0.0),
    ),
    "ur5e": (
        (0.0, -1e-4, -1e-4, 0.0, 3e-5, 0.0),
        (6e-5, 0.0, 0.0, 3e-5, -2e-4, 5e-5),
        (3e-4, -1e-4, 7e-3, -7e-4, 7e-4, 0.0),
    ),
}


@pytest.mark.parametrize(
    ("name", "share"),
    [
        ("ur10e", 1.0),
        ("ur5e", 0.3),
        pytest.param("ur10e", 0.3, marks=pytest.mark.soak),
        pytest.param("ur5e", 1.0, marks=pytest.mark.soak),
    ],
)
def test_an_estimated_tool_is_within_a_few_deviations(name, share):
    """Its length cannot be separated from the flange's distance, which calibrations of a UR10e
    change by up to 1 mm.
    """
    robot = arm(name)
    nominal = nominal_dh(robot)
    a, d, alpha = (
        tuple(np.array(getattr(nominal, row)) + more)
        for row, more in zip(("a", "d", "alpha"), CALIBRATIONS[name], strict=True)
    )
    time, q, _, _ = (part[::4] for part in moving())
    q = q[0] + share * (q - q[0])
    poses = poses_in_pendant_base(
        calibrate(robot, replace(nominal, a=a, d=d, alpha=alpha)).with_tcp(TOOL), q
    )
    kinematics = fit_kinematics(robot, q, poses)
    off = kinematics.tcp - np.concatenate([TOOL.translation, pin.log3(TOOL.rotation)])

    assert kinematics.source == "estimated"
    assert (np.abs(off) < 3.0 * kinematics.tcp_deviation).all()
    assert kinematics.tcp_deviation[:2].max() < 5e-5

    reported = identify(Samples(time, {"actual_q": q, "actual_TCP_pose": poses}), robot=robot)
    if name == "ur10e":
        assert reported["kinematics"]["tcp"] is None
        assert reported["kinematics"]["uncertainty"]["tcp"] is None
        assert "give the arm's own kinematics" in reported["not_identified"]["kinematics.tcp"]
    else:
        assert reported["kinematics"]["tcp"] == pytest.approx(kinematics.tcp)
        assert reported["kinematics"]["uncertainty"]["tcp"] == pytest.approx(
            kinematics.tcp_deviation
        )


@pytest.mark.shares_setup
def test_a_short_motion_shows_no_tool():
    """This UR3e's tool is 150 mm long; 30 rows of one move gave 0.3 mm across its axis."""
    whole = read_recording_samples(RECORDING)
    kinematics = of_real_ur3e()["kinematics"]

    assert np.abs(np.array(kinematics["tcp"][:3]) - [0.0, 0.0, 0.15]).max() < 2.0 * max(
        kinematics["uncertainty"]["tcp"][:3]
    )

    q = whole.columns["actual_q"]
    short = next(
        slice(i, i + 30) for i in range(len(q)) if (np.ptp(q[i : i + 30], axis=0) > 0.1).sum() > 2
    )
    samples = Samples(
        whole.times[short], {name: part[short] for name, part in whole.columns.items()}
    )

    kinematics = identify(samples, robot=arm("ur3e"))

    assert kinematics["kinematics"]["tcp"] is None
    assert "the tool is only determined to" in kinematics["not_identified"]["kinematics.tcp"]


def test_a_tool_is_not_blamed_on_given_kinematics():
    times, q, _, _ = moving(60)
    recorded_arm = calibrated_arm(arm("ur5e"), seed=4)
    given_arm = calibrated_arm(arm("ur5e"), seed=5)
    poses = poses_in_pendant_base(recorded_arm.with_tcp(TOOL), q)
    samples = Samples(times, {"actual_q": q, "actual_TCP_pose": poses})

    result = identify(samples, robot=given_arm, is_calibrated=True)

    reason = result["not_identified"]["kinematics.tcp"]
    assert result["kinematics"]["source"] == "given"
    assert "those of this very arm" in reason
    assert "--kinematics" not in reason


def test_foreign_kinematics_are_refused():
    _, q, _, _ = moving()
    poses = poses_in_pendant_base(arm("ur5e").with_tcp(TOOL), q)

    with pytest.raises(NotIdentified, match=r"off by \d+ mm RMS with the kinematics of a UR10e"):
        fit_kinematics(arm("ur10e"), q, poses)

    q[:, :4] = q[0, :4]

    with pytest.raises(NotIdentified, match=r"^2 joints moved"):
        fit_kinematics(arm("ur5e"), q, poses)


def with_torques(robot: Robot, payload: float, *, rest: bool = False) -> dict[str, np.ndarray]:
    """A controller's recording of an arm with a payload: rotors of 1.9 and 0.2 kg m^2, friction in
    its currents.
    """
    _, q, qd, qdd = moving()
    if rest:
        q = np.repeat(q[:1], len(q), axis=0)
        qd = 0.0 * qd
        qdd = 0.0 * qdd
    model = (
        robot.with_tcp(TOOL)
        .with_payload(payload, [0.01, 0.0, 0.07])
        .with_gravity([0.0, 0.0, -9.82])
        .model
    )
    data = model.createData()
    moment = np.array([pin.rnea(model, data, *sample) for sample in zip(q, qd, qdd, strict=True)])
    moment += np.array([1.9, 1.9, 1.9, 0.2, 0.2, 0.2]) * qdd
    current = moment / [10.0, 10.0, 10.0, 7.8, 7.8, 7.8] + 0.7 * np.sign(qd) + 0.9 * qd
    poses = poses_in_pendant_base(robot.with_tcp(TOOL), q)
    return {
        "target_q": q,
        "target_qd": qd,
        "target_qdd": qdd,
        "target_moment": moment,
        "target_current": current,
        "actual_q": q,
        "actual_TCP_pose": poses,
    }


def test_payload_and_friction():
    time = moving()[0]
    result = identify(Samples(time, with_torques(arm("ur5e"), 1.5)), robot=None, others=arms())

    assert result["robot"] == "ur5e"
    assert result["payload_kg"]["value"] == pytest.approx(1.5, abs=0.002)
    assert result["friction"]["coulomb_a"] == pytest.approx([0.7] * 6, abs=1e-6)
    assert result["friction"]["viscous_a_s_per_rad"] == pytest.approx([0.9] * 6, abs=1e-6)
    assert max(result["friction"]["uncertainty"]["coulomb_a"]) < 0.05
    assert max(result["friction"]["uncertainty"]["viscous_a_s_per_rad"]) < 0.2
    assert result["joint_servo"]["lag_s"] == pytest.approx(0.0, abs=1e-9)
    assert "servoj" in result["not_identified"]


def test_an_arm_with_the_same_links_is_named():
    robots = (*arms(), load_robot("ur7e"))
    rows = with_torques(arm("ur5e"), 1.5)

    result = identify(Samples(moving()[0], rows), robot=None, others=robots)

    assert result["robot"] == "ur5e"
    assert "robot not named: the UR5e or UR7e fits best" in result["notes"]


def test_foreign_currents_show_no_friction():
    time = moving()[0]
    rows = with_torques(arm("ur5e"), 1.5)
    random = np.random.default_rng(0)
    noise = random.normal(scale=2.0, size=rows["target_current"].shape)
    negative = rows["target_current"] - 2.0 * 0.7 * np.sign(rows["target_qd"])

    for current in (noise, negative):
        result = identify(Samples(time, {**rows, "target_current": current}), robot=arm("ur5e"))
        assert result["friction"] is None
        assert (
            result["not_identified"]["friction"]
            == "the current does not match the joint torque and friction"
        )

    parts = ("target_q", "target_qd", "target_qdd", "target_moment", "target_current")
    result = identify(Samples(time, dict.fromkeys(parts, 0.1 * noise)), robot=arm("ur5e"))

    assert result["friction"] is None
    assert "the recording is noise" in result["not_identified"]["friction"]


def test_the_uncertainty_of_friction_covers_parts():
    """Real friction is not exactly these two terms."""
    whole = read_recording_samples(RECORDING)
    # Without poses, the kinematics are not identified, which takes most of the time.
    columns = {name: part for name, part in whole.columns.items() if name != "actual_TCP_pose"}
    halves = np.array_split(np.arange(len(whole.times)), 2)
    results = [
        identify(
            Samples(whole.times[rows], {k: v[rows] for k, v in columns.items()}),
            robot=arm("ur3e"),
        )
        for rows in halves
    ]
    compared = 0

    for name in ("coulomb_a", "viscous_a_s_per_rad"):
        values = zip(*(half["friction"][name] for half in results), strict=True)
        deviations = zip(*(half["friction"]["uncertainty"][name] for half in results), strict=True)
        for (first, second), spread in zip(values, deviations, strict=True):
            if first is not None and second is not None:
                assert abs(first - second) < 3.0 * np.hypot(*spread)
                compared += 1

    assert compared > 4


def test_a_payload_is_seen_at_rest():
    time = moving()[0]
    rows = with_torques(arm("ur10"), 1.9, rest=True)

    result = identify(Samples(time, rows), robot=arm("ur10"), others=arms())

    assert result["payload_kg"]["value"] == pytest.approx(1.9, abs=0.002)
    assert result["not_identified"]["joint_servo"] == "the arm does not move"

    wrong = identify(Samples(time, rows), robot=arm("ur10e"), others=arms())

    assert wrong["payload_kg"] is None
    assert "another arm" in wrong["not_identified"]["payload_kg"]


def test_a_wrong_robot_is_named():
    result = identify(
        Samples(moving()[0], with_torques(arm("ur5e"), 1.5)), robot=arm("ur10e"), others=arms()
    )

    assert result["kinematics"] is None
    assert result["payload_kg"] is None

    for name in ("kinematics", "payload_kg"):
        assert "a UR5e fits to within 0 mm" in result["not_identified"][name]


@pytest.mark.shares_setup
def test_a_real_ur3e_shows_no_servoj():
    """The declared payload of this recording is 1.07 kg."""
    result = of_real_ur3e()

    assert result["robot"] == "ur3e"
    assert result["payload_kg"]["value"] == pytest.approx(1.07, abs=0.03)
    assert 0.0003 < result["joint_servo"]["lag_s"] < 0.0007
    assert result["joint_servo"]["residual_rad"]["rms"] < 1e-4
    assert result["kinematics"]["source"] == "estimated"
    assert result["kinematics"]["residual_m"]["rms"] < 5e-6
    assert result["servoj"] is None
    assert result["not_identified"]["servoj"].startswith("no command was held while the arm moved")
    assert result["friction"]["coulomb_a"][1] == pytest.approx(0.3, abs=0.03)


def of_servoj(sender: Sender | None = None, duration: float = 4.0) -> Samples:
    sender = sender or Sender(0.01, 0.001375, 0.1, 0.03)
    random = np.random.default_rng(2)
    count = round(duration / sender.duration)
    commands = wandering(count, sender.duration, random)
    rows = recorded(commands, sender.taken(count, random), sender, gain=300.0, lookahead=0.1)
    times = rows.pop("timestamp")
    return Samples(times, rows, commands=commands)


def test_degrees_are_refused():
    samples = of_servoj()
    in_degrees = Samples(
        samples.times, {name: np.degrees(part) for name, part in samples.columns.items()}
    )

    with pytest.raises(
        UnusableSamples, match=r"the recording cannot be evaluated: .* they seem to be in degrees"
    ):
        identify(in_degrees, robot=None, others=arms())
    with pytest.raises(
        UnusableSamples, match=r"of the commands cannot be evaluated: .* they seem to be in degrees"
    ):
        identify(replace(samples, commands=np.degrees(samples.commands)), robot=None, others=arms())


def test_another_number_of_joints_is_refused():
    still = Samples(
        np.arange(3) * 0.008, {"target_q": np.zeros((3, 6)), "actual_q": np.zeros((3, 6))}
    )

    with pytest.raises(
        UnusableSamples,
        match=r"^The recording cannot .* 6 joints, but the Planar 2R has 2; [^.]*\.$",
    ):
        identify(still, robot=load_robot("planar2r"))

    run = Samples(np.arange(3) * 0.002, {"target_q": np.zeros((3, 2))})

    with pytest.raises(
        UnusableSamples, match=r"^The commands cannot .* 6 joints, but the Planar 2R has 2"
    ):
        identify(replace(run, commands=np.zeros((3, 6))), robot=load_robot("planar2r"))


def test_missing_columns_are_listed():
    result = identify(
        Samples(np.arange(3) * 0.008, {"target_q": np.zeros((3, 6))}), robot=arm("ur5e")
    )

    assert (
        result["not_identified"]["payload_kg"]
        == "target_qd, target_qdd and target_moment were not recorded"
    )


def test_unseen_calls_make_no_prediction():
    """25 Hz of rows, 100 Hz of calls; some commands are held or skipped unseen."""
    samples = of_servoj()
    rows = {name: part[::20] for name, part in samples.columns.items()}

    result = identify(
        Samples(samples.times[::20], rows, commands=samples.commands), robot=arm("ur5e")
    )

    assert result["servoj"]["gain"] == pytest.approx(300.0, rel=1e-5)
    assert result["prediction"] is None
    assert "rows are 40 ms apart, but calls last 10 ms" in result["not_identified"]["prediction"]


def test_noise_and_freedrive_have_nothing_to_show():
    random = np.random.default_rng(0)
    times = np.arange(1000) * 0.002
    noise = {
        name: random.normal(scale=0.1, size=(1000, 6))
        for name in ("target_q", "target_qd", "target_qdd")
    }

    result = identify(
        Samples(times, {**noise, "actual_q": noise["target_q"]}), robot=None, others=arms()
    )

    assert result["servoj"] is None
    assert result["joint_servo"] is None
    assert "the recording is noise" in result["not_identified"]["servoj"]

    time, q, qd, _ = moving()
    led = {"target_q": q, "target_qd": qd, "target_qdd": 0.0 * q, "actual_q": q + 0.002 * qd}

    result = identify(Samples(time, led), robot=None, others=arms())

    assert result["servoj"] is None
    assert result["joint_servo"] is None
    assert "freedrive" in result["not_identified"]["joint_servo"]


def test_positions_of_every_cycle_are_enough():
    """As in a run in simulation: a command in every cycle, on its edge."""
    samples = of_servoj(Sender(0.002, 0.0), duration=0.5)
    full = identify(samples, robot=arm("ur5e"))

    assert full["servoj"]["gain"] == pytest.approx(300.0, rel=1e-6)
    assert full["servoj"]["phase_s"] == pytest.approx(0.0, abs=1e-8)
    assert full["servoj"]["lookahead_s"] == 0.1
    assert full["prediction"]["rms_rad"] < 1e-9

    positions = Samples(samples.times, {"target_q": samples.columns["target_q"]})
    result = identify(replace(positions, commands=samples.commands, cycle=0.002), robot=arm("ur5e"))

    assert result["servoj"]["gain"] == pytest.approx(300.0, rel=1e-6)
    assert result["prediction"]["rms_rad"] < 1e-9


@pytest.mark.skipif(
    "SIMBRIDGE_RECORDINGS" not in os.environ, reason="SIMBRIDGE_RECORDINGS names no recordings"
)
def test_a_real_tuning_is_within_two_deviations():
    """Its program asked for a gain of 300 and a lookahead of 0.1 s."""
    folder = Path(os.environ["SIMBRIDGE_RECORDINGS"]) / "ur5e_servoj"
    commands, _ = read_joint_positions(folder / "recorded_in_freedrive.csv.gz")

    for sent in (commands, None):
        result = identify(
            replace(read_recording_samples(folder / "replay_begin.csv.gz"), commands=sent),
            robot=arm("ur5e"),
        )["servoj"]
        assert abs(result["gain"] - 300.0) < 2.0 * result["uncertainty"]["gain"] < 1e-3
        assert abs(result["lookahead_s"] - 0.1) < 2.0 * result["uncertainty"]["lookahead_s"] < 1e-7


def test_a_motion_before_servoj_is_left_out():
    """The arm first moves to where the commands begin, by another law."""
    samples = of_servoj(duration=2.0)
    start = samples.columns["target_q"][0]
    time = np.arange(1, 751) * 0.002
    share = 0.5 - 0.5 * np.cos(np.pi * time / 1.5)
    approach = start - 0.4 + 0.4 * share[:, None] * np.ones(6)
    rate = np.gradient(approach, 0.002, axis=0)
    rows = {"target_q": approach, "target_qd": rate, "target_qdd": np.gradient(rate, 0.002, axis=0)}
    columns = {name: np.concatenate([rows[name], part]) for name, part in samples.columns.items()}
    times = np.concatenate([samples.times[0] - 1.5 + time - 0.002, samples.times])

    result = identify(Samples(times, columns, commands=samples.commands), robot=arm("ur5e"))

    assert result["servoj"]["gain"] == pytest.approx(300.0, rel=1e-6)
    assert result["prediction"]["rms_rad"] < 2e-5
    assert (
        "servoj ran from 1.5" in result["notes"][-1] or "servoj ran from 1.4" in result["notes"][-1]
    )
