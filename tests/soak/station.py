"""Emulated controllers for random faults: behind a faulty network if wanted, put in order before
each trial.
"""

from __future__ import annotations

import contextlib
import time
from ipaddress import ip_address
from typing import Any

import numpy as np

from simbridge.emulator.handle import Emulator
from simbridge.emulator.record_file import Recorded
from tests.controllers import CALIBRATION, EMULATOR_PRIORITY, HOME, NO_TOOL, SPEED_LIMITS
from tests.soak.proxy import Proxy

POLYSCOPE = {"ur10e": "5.12", "ur10": "3.15"}
# PolyScope X, which only a UR10e has here; all its services are switched on.
POLYSCOPE_X = {
    "10.7": {"polyscope": "10.7"},
    "10.12": {"polyscope": "10.12"},
    "10.14": {"polyscope": "10.14", "services": "primary,rtde,http"},
}
# A protective stop can be released after this time, s.
PROTECTIVE = 5.2
# What can be different after a restart.
OTHER_CALIBRATION = {"calibration": CALIBRATION}
OTHER_VERSION = {"polyscope": "5.25"}


class Station:
    """An emulated controller; it is begun again when a trial has ended or changed it.

    Args:
        host: Its address; that of its faulty network is higher by 256 (127.0.0.5: 127.0.1.5).
        robot: Which arm.
        polyscope: The version of PolyScope X; "" for that of the arm in `POLYSCOPE`.

    Attributes:
        is_polyscope_x: Whether it has PolyScope X, on which a run is one of a real arm.
        restarted: Whether the trial has restarted it: its record begins then.
    """

    def __init__(self, host: str, robot: str, polyscope: str = "") -> None:
        self._host = host
        self._proxy_host = str(ip_address(host) + 256)
        self._robot = robot
        self._software = POLYSCOPE_X.get(polyscope) or {"polyscope": POLYSCOPE[robot]}
        self.is_polyscope_x = polyscope in POLYSCOPE_X
        self._emulator: Emulator | None = None
        self._proxy: Proxy | None = None
        self.restarted = False

    @property
    def host(self) -> str:
        """Where it is to be reached."""
        return self._host if self._proxy is None else self._proxy_host

    @property
    def network(self) -> Proxy:
        """Between it and its clients."""
        assert self._proxy is not None
        return self._proxy

    def do(self, command: str, **arguments: Any) -> Any:
        """See `Emulator.do`."""
        assert self._emulator is not None
        return self._emulator.do(command, **arguments)

    def state(self) -> dict[str, Any]:
        """See `Emulator.state`."""
        assert self._emulator is not None
        return self._emulator.state()

    def wait_for_full_speed(self) -> None:
        """Wait until its speed slider is in force."""
        assert self._emulator is not None
        self._emulator.wait_for("speed_scaling", 1.0)

    def record(self, after: int = -1) -> Recorded:
        """See `Emulator.record`."""
        assert self._emulator is not None
        return self._emulator.record(after)

    def _begin(self, **changes: Any) -> None:
        settings = {
            **self._software,
            "joint_speed_limit": SPEED_LIMITS,
            **changes,
        }
        emulator = Emulator(
            self._robot, host=self._host, realtime_priority=EMULATOR_PRIORITY, **settings
        )
        self._emulator = emulator.__enter__()

    def kill(self) -> None:
        """End it as a power cut does."""
        assert self._emulator is not None
        self._emulator.kill()

    def restart(self, **changes: Any) -> None:
        """Kill it and begin it again, as another controller."""
        self.restarted = True
        self.kill()
        if self.is_polyscope_x and "polyscope" in changes:
            is_newest = self._software["polyscope"] == "10.14"
            changes = {"polyscope": "10.12" if is_newest else "10.14", "services": None}
        self._begin(**changes)

    def ready(self, *, network: bool) -> None:
        """As at the beginning, with or without the faulty network."""
        if self.restarted:
            self.close()
        for _ in range(3):
            try:
                self._put_in_order()
                break
            except Exception:
                self.close()
        else:
            self._put_in_order()
        if network:
            # Below the emulator, above the servo process.
            priority = max(0, EMULATOR_PRIORITY - 1)
            self._proxy = Proxy(self._proxy_host, self._host, priority).__enter__()

    def leave(self) -> None:
        """After a trial."""
        proxy = self._proxy
        self._proxy = None
        if proxy is not None:
            proxy.__exit__()

    def _put_in_order(self) -> None:
        self.restarted = False
        if self._emulator is None:
            self._begin()
        self.do("mute", port=30004, muted=False)
        self.do("delay", port=30004, seconds=0.0)
        self.do("remote_control", on=True)
        if self.state()["safety_mode"] == "PROTECTIVE_STOP":
            time.sleep(PROTECTIVE)
        self.do("release_safety")
        self.do("stop_program")
        assert self._emulator is not None
        self._emulator.set(**NO_TOOL)
        self.do("power_on_and_release")
        deadline = time.monotonic() + 15.0
        while self.state()["robot_mode"] != "RUNNING":
            _in_time(deadline, "ready")
        if np.abs(np.array(self.state()["target_q"]) - HOME).max() > 1e-3:
            self.do("run_script", source=f"movej({HOME.tolist()}, a=10, v=3)\n")
            while (
                np.abs(np.array(self.state()["actual_q"]) - HOME).max() > 1e-3
                or self.state()["moving"]
            ):
                _in_time(deadline, "at home")
            self.do("stop_program")
        state = self.state()
        if (state["safety_mode"], state["runtime_state"]) != ("NORMAL", "STOPPED"):
            raise RuntimeError("not in order")

    def close(self) -> None:
        """End it."""
        self.leave()
        emulator = self._emulator
        self._emulator = None
        if emulator is not None:
            with contextlib.suppress(Exception):
                emulator.__exit__(None, None, None)


def _in_time(deadline: float, what: str) -> None:
    if time.monotonic() > deadline:
        raise RuntimeError(f"not {what}")
    time.sleep(0.02)
