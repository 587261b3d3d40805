"""Files with several faults, of their tree and of their values: all are in the one refusal."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from simbridge.errors import InputFileError
from simbridge.robot.urdf_reader import read_urdf

pytestmark = pytest.mark.quick

BODY = (
    '<inertial><mass value="1.{n}"/>'
    '<inertia ixx="0.1{n}" ixy="0" ixz="0" iyy="0.1{n}" iyz="0" izz="0.1{n}"/></inertial>'
)


def chain_lines() -> list[str]:
    """Return the elements of an arm of six joints with a gripper, one a line."""
    lines = ['<link name="world"/>', '<link name="base_link"/>']
    lines.append(
        '<joint name="stand" type="fixed"><parent link="world"/><child link="base_link"/></joint>'
    )
    parent = "base_link"
    for n in range(1, 7):
        lines.append(
            f'<link name="l{n}">{BODY.format(n=n)}<collision><geometry>'
            f'<cylinder radius="0.0{n}" length="0.2{n}"/></geometry></collision></link>'
        )
        lines.append(
            f'<joint name="j{n}" type="revolute"><parent link="{parent}"/><child link="l{n}"/>'
            f'<origin xyz="0 0 0.3{n}"/><axis xyz="0 {n} 1"/>'
            f'<limit lower="-3.{n}" upper="3.{n}" velocity="2.{n}" effort="5{n}"/></joint>'
        )
        parent = f"l{n}"
    lines.append('<link name="tool0"/>')
    lines.append(
        '<joint name="flange" type="fixed"><parent link="l6"/><child link="tool0"/></joint>'
    )
    lines.append(
        '<link name="finger"><visual><geometry><box size="1 2 3"/></geometry></visual></link>'
    )
    lines.append(
        '<joint name="grip" type="prismatic"><parent link="l6"/><child link="finger"/>'
        '<origin xyz="0 0 0.07"/><limit lower="0" upper="0.05"/></joint>'
    )
    return lines


ARM = "\n".join(['<robot name="arm">', *chain_lines(), "</robot>"])


class Fault(NamedTuple):
    """An edit that damages the arm, and what its refusal must contain."""

    old: str
    new: str
    named: str


TREE_FAULTS = [
    Fault('<link name="world"/>', '<link name="world"/><link name="loose"/>', "loose"),
    Fault('<parent link="l1"/>', '<parent link="l_1"/>', "'j2'>: there is no link 'l_1'"),
    Fault('<child link="l3"/>', '<child link="elbow"/>', "'j3'>: there is no link 'elbow'"),
    Fault('<parent link="l3"/>', "", "<joint name='j4'>: <parent> is missing"),
    Fault('<child link="l5"/>', "", "<joint name='j5'>: <child> is missing"),
    Fault('<child link="finger"/>', "<child/>", "<child> link: the attribute is missing"),
    Fault('<joint name="j6"', '<joint name="j4"', "<joint name='j4'>: there is another joint"),
    Fault('<link name="tool0"/>', '<link name="l2"/><link name="tool0"/>', "there is another link"),
    Fault('name="grip" type="prismatic"', 'name="grip"', "<joint name='grip'> type"),
    Fault(
        "</robot>",
        '<joint name="back" type="fixed"><parent link="l6"/><child link="l4"/></joint></robot>',
        "link 'l4' is already the child of",
    ),
    Fault(
        "</robot>",
        '<link name="x"/><link name="y"/><joint name="xy" type="fixed"><parent link="x"/>'
        '<child link="y"/></joint><joint name="yx" type="fixed"><parent link="y"/>'
        '<child link="x"/></joint></robot>',
        "link 'x' is its own ancestor",
    ),
]  # fmt: skip
VALUE_FAULTS = [
    Fault(' velocity="2.2" effort="52"', "", "<limit> velocity: the attribute is missing"),
    Fault('effort="54"', 'effort="-54"', "does not let the joint 'j4' move"),
    Fault('lower="-3.5"', 'lower="3.9"', "the lower limit 3.9 of joint 'j5'"),
    Fault('upper="3.6"', 'upper="many"', "<limit> upper: 'many' is not a finite number"),
    Fault('<axis xyz="0 3 1"/>', '<axis xyz="0 0 0"/>', "<joint name='j3'> axis: its axis is zero"),
    Fault('xyz="0 0 0.34"', 'xyz="0 0"', "<origin> xyz: '0 0' is not 3 finite numbers"),
    Fault('xyz="0 0 0.07"', 'xyz="0 0 nan"', "<origin> xyz: '0 0 nan' is not 3 finite numbers"),
    Fault('<mass value="1.1"/>', '<mass value="-1.1"/>', "<mass> value: a mass of -1.1 kg"),
    Fault('<mass value="1.5"/>', "", "<inertial>: <mass> is missing"),
    Fault('ixx="0.13"', 'ixx="heavy"', "<inertia> ixx: 'heavy' is not a finite number"),
    Fault(BODY.format(n=6), "", "<link name='l6'>: a link that moves needs mass and inertia"),
    Fault('radius="0.02" length="0.22"', 'radius="0" length="x"', "<cylinder> length: 'x' is not"),
    Fault('size="1 2 3"', 'size="1 2"', "<box> size: '1 2' is not 3 finite numbers"),
    Fault('name="j1" type="revolute"', 'name="j1" type="hinge"', "a joint of type 'hinge'"),
]  # fmt: skip


def draw_faults(seed: int) -> list[Fault]:
    """Draw two to six faults, at least one of the tree and one of a value."""
    rng = np.random.default_rng(seed)
    tree_count = int(rng.integers(1, 4))
    value_count = int(rng.integers(1, 4))
    tree_indices = rng.choice(len(TREE_FAULTS), tree_count, replace=False)
    value_indices = rng.choice(len(VALUE_FAULTS), value_count, replace=False)
    return [TREE_FAULTS[i] for i in tree_indices] + [VALUE_FAULTS[i] for i in value_indices]


def damage(faults: list[Fault]) -> str:
    """Return the text of the arm with faults in it."""
    text = ARM
    for fault in faults:
        assert text.count(fault.old) == 1
        text = text.replace(fault.old, fault.new)
    return text


def written(folder: Path, text: str) -> Path:
    path = folder / "arm.urdf"
    path.write_text(text)
    return path


def test_the_arm_without_faults_is_read(tmp_path) -> None:
    assert read_urdf(written(tmp_path, ARM)).n == 6


@pytest.mark.slow
@pytest.mark.parametrize("fault", TREE_FAULTS + VALUE_FAULTS, ids=lambda fault: fault.named)
def test_each_fault_alone_is_one(tmp_path, fault) -> None:
    with pytest.raises(InputFileError) as caught:
        read_urdf(written(tmp_path, damage([fault])))

    assert fault.named in str(caught.value)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(40))
def test_faults_of_tree_and_values_come_together(tmp_path, seed) -> None:
    faults = draw_faults(seed)

    with pytest.raises(InputFileError) as caught:
        read_urdf(written(tmp_path, damage(faults)))

    missing = [fault.named for fault in faults if fault.named not in str(caught.value)]
    assert missing == []
