"""Damaged and hostile input to every parser: what it means, or one error of ours, within bounded time and memory.

Each parser gets a valid input with random changes. The short form is part of `make test` and is the same every time; the
long one is part of `make soak`. The servers of the emulator have their own (tests/emulator).
"""

from __future__ import annotations

import gzip
import json
import os
import resource
import signal
import socket
import struct
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from simbridge.emulator.emulate import Control
from simbridge.errors import SimbridgeError
from simbridge.evaluation.evaluation import Evaluation
from simbridge.evaluation.identification.samples import of_run
from simbridge.planning.plan import Plan
from simbridge.planning.scenario import load_scenario
from simbridge.recording.log_reader import read_log
from simbridge.recording.run_directory import RunDirectory
from simbridge.resources import ROBOTS
from simbridge.robot import load_robot
from simbridge.robot.calibration import with_kinematics, write_calibration
from simbridge.robot.calibration import nominal_dh
from simbridge.robot.cell import Cell, load_cell, write_cell
from simbridge.robot.obstacles import Box
from simbridge.servo.plant import load_plant
from simbridge.trajectory import line as straight
from simbridge.trajectory.bags import read_bag
from simbridge.trajectory.bags import write_bag
from simbridge.trajectory.files import read_trajectory
from simbridge.trajectory.rtde_recording import read_rtde
from simbridge.trajectory.text import write_csv, write_tum
from simbridge.trajectory.trajectory import Trajectory
from simbridge.ur.dashboard import DashboardClient
from simbridge.ur.primary import read_arm_description
from simbridge.ur.rtde import RtdeReader, frame
from tests.ros_calibration import TEXT as ROS_CALIBRATION
