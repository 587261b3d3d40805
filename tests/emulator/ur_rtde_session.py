"""A session of the unmodified ur_rtde with a controller; writes its observations as JSON.

`python ur_rtde_session.py HOST POLYSCOPE FILE NICENESS`. A separate process: ur_rtde holds Python's
lock while it waits, and a fault in it ends its process. Times are the controller's own, so that a
busy machine changes only the wall-clock time.
"""

from __future__ import annotations

import json
import os
import socket
import sys
import time
import traceback
from collections.abc import Callable
from typing import Any

from dashboard_client import DashboardClient
from rtde_control import RTDEControlInterface
from rtde_io import RTDEIOInterface
from rtde_receive import RTDEReceiveInterface

LOOKAHEAD = 0.05
GAIN = 1500.0
START = [0.2, -1.1, 2.1, -2.0, -1.4, 0.2]
STREAM_SECONDS = 0.3
SPEED_J = [0.1, -0.05, 0.08, 0.02, 0.0, -0.1]
SPEED_L = [0.03, 0.04, -0.02, 0.0, 0.05, 0.1]
STOPJ_DECELERATION = 2.0
STOPL_DECELERATION = 1.0
SERVOC_SPEED = 0.2
SERVOC_ACCELERATION = 1.0
WATCHDOG_FREQUENCY = 4.0
UNLOCK_DELAY = 2.0  # s, set on the emulator: by default it takes five
WAYPOINTS = [[START[0] + way, *START[1:]] for way in (0.2, 0.4, 0.6)]
TCP = [0.01, -0.02, 0.15, 0.1, -0.2, 0.3]
CUSTOM = """
  write_output_integer_register(13, 4711)
  write_output_float_register(14, norm([3, 4]))
"""


def near(q: list[float], other: list[float]) -> bool:
    return max(abs(a - b) for a, b in zip(q, other, strict=True)) < 1e-6


class Session:
    """The four clients of one controller, and the observations so far."""

    def __init__(self, host: str, polyscope: str) -> None:
        self.period = 0.008 if polyscope.startswith("3") else 0.002
        self.host = host
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
        """Wait for a duration on the controller's clock, s.

        It begins now, not with the newest state received, which may be old on a busy computer.
        """
        end = self.ask(do="state")["timestamp"] + seconds
        self.until(lambda: self.receive.getTimestamp() >= end, "the controller's clock")

    def rest(self) -> list[float]:
        """The joints, once they rest."""
        self.let_pass(4 * self.period)
        self.until(lambda: not any(self.receive.getActualQd()), "rest")
        return self.receive.getActualQ()

    def home(self) -> None:
        self.control.moveJ(START, 3.0, 10.0)
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
        self.seen["moveJ"] = {"returned": self.control.moveJ(START, 3.0, 10.0), "q": self.rest()}
        begin = self.tick()
        pose = self.receive.getActualTCPPose()
        goal = [pose[0] + 0.05, pose[1] - 0.1, pose[2] + 0.06, *pose[3:]]
        returned = self.control.moveL(goal, 0.25, 1.2)
        self.seen["moveL"] = {
            "returned": returned,
            "goal": goal,
            "q": self.rest(),
            "ticks": [begin, self.tick()],
        }
        self.home()

    def speeds(self) -> None:
        self.control.speedJ(SPEED_J, 1.0)
        self.let_pass(0.3)
        end = self.tick()
        self.seen["speedJ"] = {
            "ticks": [end - round(0.15 / self.period), end],
            "stopped": self.control.speedStop(),
        }
        self.rest()
        self.home()
        self.control.speedL(SPEED_L, 0.5)
        self.let_pass(0.4)
        end = self.tick()
        self.seen["speedL"] = {
            "ticks": [end - round(0.15 / self.period), end],
            "stopped": self.control.speedStop(),
        }
        self.rest()

    def servos(self) -> None:
        self.home()
        begin = self.tick()
        q = list(START)
        sent = []
        count = round(STREAM_SECONDS / self.period)
        for i in range(count):
            period = self.control.initPeriod()
            q = [START[0] + 0.2 * i / count, *START[1:5], START[5] - 0.1 * (i / count) ** 2]
            sent.append(q)
            self.control.servoJ(q, 0.0, 0.0, self.period, LOOKAHEAD, GAIN)
            self.control.waitPeriod(period)
        self.let_pass(0.5)
        reached = self.receive.getActualQ()
        end = self.tick()
        self.seen["servoJ"] = {
            "ticks": [begin, end],
            "sent": sent,
            "q": reached,
            "stopped": self.control.servoStop(),
        }
        self.home()
        pose = self.receive.getActualTCPPose()
        goal = [pose[0], pose[1] + 0.004, pose[2] - 0.003, *pose[3:]]
        self.control.servoL(goal, 0.0, 0.0, self.period, LOOKAHEAD, GAIN)
        self.let_pass(0.5)
        self.seen["servoL"] = {
            "goal": goal,
            "q": self.receive.getActualQ(),
            "stopped": self.control.servoStop(),
        }

    def asynchronous(self) -> None:
        self.home()
        goal = [START[0] + 0.6, *START[1:]]
        before = self.control.getAsyncOperationProgress()
        self.control.moveJ(goal, 2.0, 8.0, True)
        during = self.receive.getActualQ()
        progress = [before, *self.progress()]
        self.seen["asynchronous"] = {
            "progress": progress,
            "during": during,
            "goal": goal,
            "q": self.rest(),
        }
        self.home()
        begin = self.tick()
        # Each way point takes 0.8 s, so that none is missed.
        self.control.moveJ([[*q, 0.25, 8.0, 0.0] for q in WAYPOINTS], True)
        progress = self.progress()
        self.seen["path"] = {"progress": progress, "q": self.rest(), "ticks": [begin, self.tick()]}

    def progress(self) -> list[int]:
        """The values of the asynchronous operation's progress, each once, until it has ended."""
        values: list[int] = []

        def ended() -> bool:
            value = self.control.getAsyncOperationProgress()
            if value >= 0 and value not in values:
                values.append(value)
            return bool(values) and value < 0

        self.until(ended, "the asynchronous operation's end")
        return [*values, self.control.getAsyncOperationProgress()]

    def stops(self) -> None:
        self.home()
        # It begins to brake by itself only after 1.2 s.
        self.control.moveJ(WAYPOINTS[-1], 0.5, 2.0, True)
        self.let_pass(0.4)
        self.seen["stopJ"] = self.stopped(lambda: self.control.stopJ(STOPJ_DECELERATION))
        self.begin_line()
        self.seen["stopL, synchronous"] = self.stopped(
            lambda: self.control.stopL(STOPL_DECELERATION)
        )
        self.begin_line()
        self.seen["stopL"] = self.stopped(lambda: self.control.stopL(STOPL_DECELERATION, True))

    def begin_line(self) -> None:
        self.home()
        pose = self.receive.getActualTCPPose()
        self.control.moveL(
            [pose[0] + 0.12, pose[1] - 0.24, pose[2] + 0.15, *pose[3:]], 0.25, 1.2, True
        )
        self.let_pass(0.35)

    def stopped(self, stop: Callable[[], None]) -> dict[str, Any]:
        begin = self.tick()
        stop()
        self.until(
            lambda: self.control.getAsyncOperationProgress() < 0, "the asynchronous stop's end"
        )
        return {"q": self.rest(), "ticks": [begin, self.tick()]}

    def kinematics(self) -> None:
        self.home()
        self.control.setTcp(TCP)
        self.let_pass(4 * self.period)
        pose = self.receive.getActualTCPPose()
        self.seen["setTcp"] = {"pose": pose, "offset": self.control.getTCPOffset()}
        self.seen["getForwardKinematics"] = self.control.getForwardKinematics()
        goal = [pose[0] + 0.1, pose[1] - 0.1, pose[2] + 0.05, *pose[3:]]
        self.seen["getInverseKinematics"] = {
            "goal": goal,
            "q": self.control.getInverseKinematics(goal),
        }
        self.seen["has_solution"] = [
            self.control.getInverseKinematicsHasSolution(goal),
            self.control.getInverseKinematicsHasSolution([3.0, 0.0, 0.5, 0.0, 0.0, 0.0]),
        ]
        self.control.setTcp([0.0] * 6)
        a = [0.1, -0.2, 0.3, 0.5, -0.4, 1.2]
        b = [0.2, 0.05, -0.1, -0.7, 0.3, 0.2]
        self.seen["poseTrans"] = {"a": a, "b": b, "pose": self.control.poseTrans(a, b)}

    def settings(self) -> None:
        self.seen["setPayload"] = self.control.setPayload(2.5, [0.01, -0.02, 0.06])
        self.let_pass(4 * self.period)
        self.seen["payload"] = [self.receive.getPayload(), *self.receive.getPayloadCog()]
        self.control.sendCustomScriptFunction("custom", CUSTOM)
        self.let_pass(4 * self.period)
        self.seen["custom"] = [
            self.receive.getOutputIntRegister(13),
            self.receive.getOutputDoubleRegister(14),
        ]
        self.until(self.control.isProgramRunning, "the control script after the custom one")

    def stream(self, seconds: float) -> list[float]:
        """Have one joint servo along; the last setpoint."""
        q = list(START)
        for _ in range(round(seconds / self.period)):
            period = self.control.initPeriod()
            q[0] += 0.2 * self.period
            self.control.servoJ(q, 0.0, 0.0, self.period, LOOKAHEAD, GAIN)
            self.control.waitPeriod(period)
        return q

    def ended(self) -> None:
        self.until(
            lambda: not self.control.isProgramRunning() and self.receive.getRuntimeState() == 1,
            "the end",
        )

    def upload_again(self) -> bool:
        returned = self.control.reuploadScript()
        self.until(self.control.isProgramRunning, "the control script's return")
        return returned

    def go_on(self) -> dict[str, Any]:
        """Upload the script again, and move."""
        # What cleared the registers went over another connection than the script, and may arrive
        # after it.
        self.let_pass(0.2)
        returned = self.upload_again()
        begin = self.tick()
        moved = self.control.moveJ(WAYPOINTS[0], 3.0, 10.0)
        return {
            "uploaded": returned,
            "moved": moved,
            "q": self.rest(),
            "ticks": [begin, self.tick()],
        }

    def watchdog(self) -> None:
        self.home()
        returned = self.control.setWatchdog(WATCHDOG_FREQUENCY)
        begin = self.tick()
        self.stream(0.3)
        self.ended()
        q = self.rest()
        self.seen["setWatchdog"] = {"returned": returned, "q": q, "ticks": [begin, self.tick()]}
        # Any command to a script that has ended clears the command that was left in its register.
        self.seen["cleared"] = self.control.servoStop()
        self.seen["after the watchdog"] = self.go_on()

    def left_behind(self) -> None:
        self.home()
        setpoint = self.stream(0.2)
        self.dashboard.stop()
        self.ended()
        # Meanwhile another client moves the arm back.
        with socket.create_connection((self.host, 30002)) as secondary:
            secondary.sendall(f"movej({START}, a=10, v=3)\n".encode())
            self.until(lambda: near(self.receive.getActualQ(), START), "the way back")
        self.rest()
        begin = self.tick()
        self.upload_again()
        self.until(lambda: near(self.receive.getActualQ(), setpoint), "the setpoint")
        self.seen["left behind"] = {
            "setpoint": setpoint,
            "ticks": [begin, self.tick()],
            "q": self.rest(),
        }
        self.control.servoStop()

    def protective_stop(self) -> None:
        self.home()
        self.control.moveJ(WAYPOINTS[-1], 1.0, 2.0, True)
        self.let_pass(0.4)
        before = self.ask(do="state")["timestamp"]
        begin = self.tick()
        returned = self.control.triggerProtectiveStop()
        self.until(self.receive.isProtectiveStopped, "the protective stop")
        q = self.rest()
        refusals = []
        while True:
            try:
                self.dashboard.unlockProtectiveStop()
                break
            except RuntimeError as error:
                refusals.append(str(error))
                self.let_pass(0.1)
        self.until(lambda: not self.receive.isProtectiveStopped(), "the unlocking")
        unlocked = self.receive.getTimestamp() - before
        self.let_pass(0.2)
        self.seen["protective stop"] = {
            "returned": returned,
            "refusals": refusals,
            "seconds": unlocked,
            "ticks": [begin, self.tick()],
            "q": [q, self.receive.getActualQ()],
            "state": [self.receive.getRuntimeState(), self.dashboard.programState()],
        }
        self.seen["after the protective stop"] = self.go_on()

    def servo_circular(self) -> None:
        self.home()
        begin = self.tick()
        pose = self.receive.getActualTCPPose()
        goal = [pose[0] + 0.05, pose[1] - 0.1, pose[2] + 0.06, *pose[3:]]
        returned = self.control.servoC(goal, SERVOC_SPEED, SERVOC_ACCELERATION)
        self.let_pass(1.0)
        self.seen["servoC"] = {
            "returned": returned,
            "goal": goal,
            "q": self.rest(),
            "ticks": [begin, self.tick()],
        }
        # servoC leaves the script's handshake at "done", so that no other command comes through.
        self.dashboard.stop()
        self.ended()
        self.control.servoStop()
        self.seen["after servoC"] = self.go_on()

    def calls(self) -> None:
        """Make calls whose effect in ur_rtde depends on its version, or surprises.

        See docs/emulator.md.
        """
        self.home()
        self.seen["matrices"] = {
            name: self.answered(getattr(self.control, name))
            for name in (
                "getJacobian",
                "getMassMatrix",
                "getJacobianTimeDerivative",
                "getCoriolisAndCentrifugalTorques",
            )
        }
        before = self.receive.getActualQ()
        self.seen["directTorque"] = [
            self.answered(lambda: [self.control.directTorque([0.0] * 6)]),
            before,
            self.rest(),
        ]
        self.seen["getForwardKinematics, TCP"] = self.control.getForwardKinematics(
            WAYPOINTS[0], TCP
        )
        self.seen["setExternalForceTorque"] = [
            self.control.setExternalForceTorque([1.0] * 6),
            self.control.isConnected(),
        ]

    def answered(self, call: Callable[[], list[float]]) -> list[float] | str:
        """The second answer: the first may be an older one."""
        try:
            call()
            self.let_pass(4 * self.period)
            return call()
        except RuntimeError as error:
            return str(error)

    def contact(self) -> None:
        self.home()
        height = self.receive.getActualTCPPose()[2] - 0.03
        self.ask(do="set", table=height)
        returned = self.control.moveUntilContact([0.0, 0.0, -0.05, 0.0, 0.0, 0.0])
        self.seen["moveUntilContact"] = {"returned": returned, "table": height, "q": self.rest()}
        self.ask(do="set", table=None)

    def ask(self, **request: Any) -> Any:
        """Return the emulator's answer to a request at its control socket."""
        with (
            socket.create_connection((self.host, 30020)) as control,
            control.makefile("rw") as file,
        ):
            file.write(json.dumps(request) + "\n")
            file.flush()
            answer = json.loads(file.readline())
        assert answer["ok"]
        return answer.get("value")

    def end(self) -> None:
        self.control.stopScript()
        self.until(lambda: self.receive.getRuntimeState() == 1, "the program's end")
        self.seen["ended"] = True


def main() -> None:
    host, polyscope, path, niceness = sys.argv[1:]
    # No real-time priority: ur_rtde waits in a loop without a pause, for what another thread of it
    # must receive.
    os.nice(int(niceness))
    session = Session(host, polyscope)
    parts = (
        session.connections,
        session.moves,
        session.speeds,
        session.servos,
        session.asynchronous,
        session.stops,
        session.kinematics,
        session.settings,
        session.watchdog,
        session.left_behind,
        session.protective_stop,
        session.servo_circular,
        # Before 5.4 ur_rtde's script does not ask for contacts.
        *([] if polyscope.startswith("3") else [session.contact]),
        session.calls,
        session.end,
    )
    for part in parts if polyscope != "5.25" else (session.contact, session.calls, session.end):
        print(part.__name__, flush=True)
        part()
    with open(path, "w", encoding="utf-8") as file:
        json.dump(session.seen, file)


if __name__ == "__main__":
    try:
        main()
    except Exception:
        traceback.print_exc()
        # ur_rtde's destructors may wait for ever.
        os._exit(1)
