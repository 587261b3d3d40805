"""The settings on the page."""

from __future__ import annotations

import math
from typing import Any

from simbridge.report.settings_list import important_settings
from tests.records import changed


def test_payload_and_tcp_have_units(measured: Any) -> None:
    changes = {"backend": {"unmodelled_payload": 2.5}, "robot": {"tcp": [0, 0, 0.1, 0, 0, math.pi]}}
    evaluation, _ = measured(settings=changes)

    rows = dict(important_settings(evaluation.settings, 200))

    assert "2.5\u00a0kg unmodelled" in rows["Payload"]
    assert rows["TCP in tool0"] == "(0, 0, 100)\u00a0mm, rotation vector (0, 0, 180)°"


def test_the_settings_name_the_controller(measured: Any) -> None:
    evaluation, _ = measured()
    settings = changed(
        evaluation.settings,
        backend={
            "name": "ursim",
            "simulated_time": False,
            "on_scaling": "follow",
            "servo_gain": 2000.0,
            "servo_lookahead": 0.03,
        },
        controller={
            "host": "127.0.0.9",
            "model": "UR10",
            "serial_number": "1",
            "polyscope": "3.15.8",
            "ursim": True,
        },
    )

    rows = dict(important_settings(settings, 1))

    assert rows["Controller"] == "UR10, URSim, PolyScope 3.15.8, 127.0.0.9"
    assert rows["Servo"].startswith("servoj, gain 2000, lookahead 30")
