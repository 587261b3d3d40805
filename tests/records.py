"""The record of a made-up run: settings.toml as tables, for an arm of any number of joints."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from simbridge.recording.run_record import Record
from simbridge.recording.settings_file import as_tables, read_record


def made_up_tables(joints: int = 3, period: float = 0.008) -> dict[str, dict[str, Any]]:
    """Return the content of settings.toml.

    Args:
        joints: Number of joints. Each one's axis is turned by a quarter against the one before,
            0.2 m away.
        period: Control period, s.
    """
    link = np.eye(4)
    link[:3] = [[1, 0, 0, 0.2], [0, 0, -1, 0], [0, 1, 0, 0.05]]
    return {
        "scenario": {
            "name": "made_up",
            "description": "",
            "source": "made up",
            "hold": "linear",
            "on_limits": "refuse",
            "floor": 0.0,
            "frame": "base_link",
            "speed_scale": 1.0,
        },
        "robot": {
            "name": "arm",
            "title": "Test arm",
            "source": "",
            "joint_names": [f"joint_{i + 1}" for i in range(joints)],
            "home": [0.0] * joints,
            "position_min": [-3.0] * joints,
            "position_max": [3.0] * joints,
            "max_velocity": [2.0] * joints,
            "max_effort": [100.0] * joints,
            "max_velocity_jump": 1.0,
            "max_acceleration": 20.0,
            "max_tool_speed": 1.0,
            "tcp": [0.0] * 6,
            "payload": 0.0,
        },
        "kinematics": {
            "checksum": "0" * 64,
            "placements": np.tile(link.ravel(), (joints + 1, 1)).tolist(),
            "prismatic": [False] * joints,
            "source": "nominal",
        },
        "solver": {"name": "forward-dynamics", "parameters": {"dt": 0.1, "kp": [50.0] * 6}},
        "backend": {
            "name": "pybullet",
            "period": period,
            "simulated_time": True,
            "effort_unit": "N m",
            "unmodelled_payload": 0.0,
            "realtime": False,
        },
        "versions": {"python": "3.11.0", "simbridge": "0.1.0"},
    }


def changed(record: Record, **tables: Mapping[str, Any]) -> Record:
    """Return the record with some fields of tables replaced; a table that it lacks is added."""
    content = as_tables(record)
    for name, changes in tables.items():
        content[name] = {**content.get(name, {}), **changes}
    return read_record(content)
