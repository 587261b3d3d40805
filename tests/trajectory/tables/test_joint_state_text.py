"""JointState as text: positions belong to the joints that the rows name."""

from __future__ import annotations

import numpy as np
import pytest

from simbridge.errors import InputFileError
from tests.trajectory.tables.joint_tables import JOINTS, ROBOT, TIMES, read

# As UR's driver for ROS 1 lists them: by the alphabet, so that the elbow comes first.
ORDER = np.argsort(ROBOT.joint_names)
NAMES = [ROBOT.joint_names[joint] for joint in ORDER]
START_NS = 1_700_000_000_000_000_000


def stamps():
    return [START_NS + round(time * 1e9) for time in TIMES]


def write_rostopic(path, names_of=lambda row: NAMES):
    """Write what `rostopic echo -p` prints."""
    vectors = ("name", "position", "velocity", "effort")
    header = ["%time", "field.header.seq", "field.header.stamp", "field.header.frame_id"]
    header += [f"field.{vector}{place}" for vector in vectors for place in range(6)]
    lines = [",".join(header)]
    for row, stamp in enumerate(stamps()):
        numbers = [*JOINTS[row, ORDER].tolist(), *[0.1] * 6, *[5.0] * 6]
        lines.append(",".join(map(str, [stamp + 999, row, stamp, "", *names_of(row), *numbers])))
    path.write_text("\n".join(lines) + "\n")
    return path


def write_ros2_echo(path, vectors=3):
    """Write what `ros2 topic echo --csv` prints, with so many vectors of numbers."""
    lines = []
    for row, stamp in enumerate(stamps()):
        numbers = [*JOINTS[row, ORDER].tolist(), *[0.1] * 6 * (vectors - 1)]
        lines.append(",".join(map(str, [*divmod(stamp, 10**9), "base", *NAMES, *numbers])))
    path.write_text("\n".join(lines) + "\n")
    return path


def test_rostopic_echo_names_the_joints(tmp_path):
    motion = read(write_rostopic(tmp_path / "echo.csv"))

    assert np.array_equal(motion.joints, JOINTS)
    assert motion.epoch_ns == START_NS


@pytest.mark.parametrize("vectors", [1, 2, 3])
def test_ros2_topic_echo_names_the_joints(tmp_path, vectors):
    motion = read(write_ros2_echo(tmp_path / "echo.csv", vectors))

    assert np.array_equal(motion.joints, JOINTS)
    assert motion.epoch_ns == START_NS


def test_other_joints_in_between_are_refused(tmp_path):
    path = write_rostopic(tmp_path / "echo.csv", lambda row: NAMES if row < 50 else NAMES[::-1])

    with pytest.raises(InputFileError, match="its joints are wrist_3_joint") as refusal:
        read(path)

    assert refusal.value.line == 52
