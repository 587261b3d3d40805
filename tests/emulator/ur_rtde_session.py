"""A session of the unmodified ur_rtde with a controller: what it was told, and what came of it, as JSON.

`python ur_rtde_session.py HOST POLYSCOPE FILE`. A program of its own: ur_rtde holds Python's lock while it waits, and a
fault in it ends its process. Times are the controller's own, so that a busy machine changes nothing but the wall clock.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from typing import Any

from dashboard_client import DashboardClient
from rtde_control import RTDEControlInterface
from rtde_io import RTDEIOInterface
from rtde_receive import RTDEReceiveInterface

LOOKAHEAD, GAIN = 0.05, 1500.0
START = [0.2, -1.1, 2.1, -2.0, -1.4, 0.2]
STREAM_SECONDS = 3.0
SPEED_J = [0.1, -0.05, 0.08, 0.02, 0.0, -0.1]
SPEED_L = [0.03, 0.04, -0.02, 0.0, 0.05, 0.1]
STOPJ_DECELERATION = 2.0
TCP = [0.01, -0.02, 0.15, 0.1, -0.2, 0.3]
CUSTOM = """
  write_output_integer_register(13, 4711)
  write_output_float_register(14, norm([3, 4]))
"""


class Session:
    """The four clients of one controller, and the observations so far."""

    def __init__(self, host: str, polyscope: str) -> None:
        self.period = 0.008 if polyscope.startswith("3") else 0.002
        self.seen: dict[str, Any] = {"period": self.period}
        self.receive = RTDEReceiveInterface(host)
        self.control = RTDEControlInterface(host)
        self.io = RTDEIOInterface(host)
        self.dashboard = DashboardClient(host)
        self.dashboard.connect()

    def tick(self) -> int:
        return round(self.receive.getTimestamp() / self.period)

    def until(self, condition: Callable[[], bool], what: str, seconds: float = 15.0) -> None:
        deadline = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > deadline:
                raise TimeoutError(f"{what}: not within {seconds} s")
            time.sleep(0.002)

    def let_pass(self, seconds: float) -> None:
        """Of the controller's time."""
        end = self.receive.getTimestamp() + seconds
        self.until(lambda: self.receive.getTimestamp() >= end, "the controller's clock")

    def rest(self) -> list[float]:
        """The joints, once they rest."""
        self.let_pass(4 * self.period)
        self.until(lambda: not any(self.receive.getActualQd()), "rest")
        return self.receive.getActualQ()

    def home(self) -> None:
        self.control.moveJ(START, 1.5, 3.0)
        self.rest()

    def connections(self) -> None:
        self.seen["connected"] = {
            "receive": self.receive.isConnected(),
            "control": self.control.isConnected() and self.control.isProgramRunning(),
            "io": self.io.isConnected(),
            "dashboard": self.dashboard.isConnected(),
        }
        self.seen["robot_mode"] = self.dashboard.robotmode()
        self.io.setSpeedSlider(0.5)
        self.until(lambda: self.receive.getTargetSpeedFraction() == 0.5, "the slider")
        self.io.setSpeedSlider(1.0)
        self.until(lambda: self.receive.getTargetSpeedFraction() == 1.0, "the slider")
        self.io.setStandardDigitalOut(3, True)
        self.until(lambda: self.receive.getDigitalOutState(3), "the output")
        self.seen["outputs"] = self.receive.getActualDigitalOutputBits()

    def moves(self) -> None:
        self.seen["moveJ"] = {"returned": self.control.moveJ(START, 1.5, 3.0), "q": self.rest()}
        begin, pose = self.tick(), self.receive.getActualTCPPose()
        goal = [pose[0] + 0.05, pose[1] - 0.1, pose[2] + 0.06, *pose[3:]]
        returned = self.control.moveL(goal, 0.25, 1.2)
        self.seen["moveL"] = {"returned": returned, "goal": goal, "q": self.rest(), "ticks": [begin, self.tick()]}
        self.home()

    def speeds(self) -> None:
        self.control.speedJ(SPEED_J, 1.0)
        self.let_pass(0.4)
        end = self.tick()
        self.seen["speedJ"] = {"ticks": [end - round(0.15 / self.period), end], "stopped": self.control.speedStop()}
        self.rest()
        self.home()
        self.control.speedL(SPEED_L, 0.5)
        self.let_pass(0.6)
        end = self.tick()
        self.seen["speedL"] = {"ticks": [end - round(0.15 / self.period), end], "stopped": self.control.speedStop()}
        self.rest()

    def servos(self) -> None:
        self.home()
        begin, q, sent = self.tick(), list(START), []
        count = round(STREAM_SECONDS / self.period)
        for i in range(count):
            period = self.control.initPeriod()
            q = [START[0] + 0.2 * i / count, *START[1:5], START[5] - 0.1 * (i / count) ** 2]
            sent.append(q)
            self.control.servoJ(q, 0.0, 0.0, self.period, LOOKAHEAD, GAIN)
            self.control.waitPeriod(period)
        self.let_pass(1.0)
        reached, end = self.receive.getActualQ(), self.tick()
        self.seen["servoJ"] = {"ticks": [begin, end], "sent": sent, "q": reached, "stopped": self.control.servoStop()}
        self.home()
        pose = self.receive.getActualTCPPose()
        goal = [pose[0], pose[1] + 0.004, pose[2] - 0.003, *pose[3:]]
        self.control.servoL(goal, 0.0, 0.0, self.period, LOOKAHEAD, GAIN)
        self.let_pass(1.0)
        self.seen["servoL"] = {"goal": goal, "q": self.receive.getActualQ(), "stopped": self.control.servoStop()}

    def asynchronous(self) -> None:
        self.home()
        goal = [START[0] + 0.6, *START[1:]]
        running = lambda: self.control.getAsyncOperationProgress() >= 0  # noqa: E731
        before = running()
        self.control.moveJ(goal, 1.0, 2.0, True)
        self.until(running, "the asynchronous move's begin")
        during = self.receive.getActualQ()
        self.until(lambda: not running(), "the asynchronous move's end")
        self.seen["asynchronous"] = {"before": before, "during": during, "goal": goal, "q": self.rest()}
        self.control.moveJ(START, 1.0, 2.0, True)
        self.let_pass(0.5)
        begin = self.tick()
        self.control.stopJ(STOPJ_DECELERATION)
        self.seen["stopJ"] = {"q": self.rest(), "ticks": [begin, self.tick()], "running": running()}

    def kinematics(self) -> None:
        self.home()
        self.control.setTcp(TCP)
        self.let_pass(4 * self.period)
        pose = self.receive.getActualTCPPose()
        self.seen["setTcp"] = {"pose": pose, "offset": self.control.getTCPOffset()}
        self.seen["getForwardKinematics"] = self.control.getForwardKinematics()
        goal = [pose[0] + 0.1, pose[1] - 0.1, pose[2] + 0.05, *pose[3:]]
        self.seen["getInverseKinematics"] = {"goal": goal, "q": self.control.getInverseKinematics(goal)}
        self.seen["has_solution"] = [
            self.control.getInverseKinematicsHasSolution(goal),
            self.control.getInverseKinematicsHasSolution([3.0, 0.0, 0.5, 0.0, 0.0, 0.0]),
        ]
        self.control.setTcp([0.0] * 6)
        a, b = [0.1, -0.2, 0.3, 0.5, -0.4, 1.2], [0.2, 0.05, -0.1, -0.7, 0.3, 0.2]
        self.seen["poseTrans"] = {"a": a, "b": b, "pose": self.control.poseTrans(a, b)}

    def settings(self) -> None:
        self.seen["setPayload"] = self.control.setPayload(2.5, [0.01, -0.02, 0.06])
        self.let_pass(4 * self.period)
        self.seen["payload"] = [self.receive.getPayload(), *self.receive.getPayloadCog()]
        self.control.sendCustomScriptFunction("custom", CUSTOM)
        self.let_pass(4 * self.period)
        self.seen["custom"] = [self.receive.getOutputIntRegister(13), self.receive.getOutputDoubleRegister(14)]
        self.until(self.control.isProgramRunning, "the control script after the custom one")

    def end(self) -> None:
        self.control.stopScript()
        self.until(lambda: self.receive.getRuntimeState() == 1, "the program's end")
        self.seen["ended"] = True


def main() -> None:
    host, polyscope, path = sys.argv[1:]
    session = Session(host, polyscope)
    for part in (
        session.connections,
        session.moves,
        session.speeds,
        session.servos,
        session.asynchronous,
        session.kinematics,
        session.settings,
        session.end,
    ):
        print(part.__name__, flush=True)
        part()
    with open(path, "w", encoding="utf-8") as file:
        json.dump(session.seen, file)


if __name__ == "__main__":
    main()
