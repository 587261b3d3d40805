"""A controller that runs servoj, written from the law's formulas (docs/validation.md) without
simbridge's own code.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass
class Sender:
    """A program that calls servoj, with the timing of its calls.

    Attributes:
        duration: t of a call, s.
        phase: When calls begin, s after the beginning of a cycle.
        held: Probability that a call takes the same command again.
        skipped: Probability that it takes a later one than the next.
    """

    duration: float = 0.002
    phase: float = 0.0
    held: float = 0.0
    skipped: float = 0.0

    def taken(self, count: int, random: np.random.Generator) -> list[int]:
        """The command that each call takes, until the last of `count` has been taken."""
        order = [0]
        while order[-1] < count - 1:
            chance = random.random()
            step = (
                0
                if chance < self.held
                else 2 + random.integers(2)
                if chance > 1.0 - self.skipped
                else 1
            )
            order.append(min(order[-1] + int(step), count - 1))
        return order


def recorded(
    commands: np.ndarray,
    order: list[int],
    sender: Sender,
    *,
    gain: float,
    lookahead: float,
    cycle: float = 0.002,
    rest: float = 0.3,
) -> dict[str, np.ndarray]:
    """Every cycle's timestamp, target_q, target_qd and target_qdd, from rest at the first command
    until rest.
    """
    commands = commands.astype(np.float32).astype(float)
    lookahead = float(np.float32(lookahead))
    q = commands[0].copy()
    v = np.zeros(commands.shape[1])

    def setpoint(time: float, call: int) -> np.ndarray:
        if call < 0:
            return commands[order[0]]
        if call >= len(order):
            return commands[order[-1]]
        before = commands[order[call - 1]] if call else commands[order[0]]
        share = (time - sender.phase - call * sender.duration) / sender.duration
        return before + share * (commands[order[call]] - before)

    rows = {"timestamp": [], "target_q": [], "target_qd": [], "target_qdd": []}
    cycles = round((sender.phase + len(order) * sender.duration + rest) / cycle)
    for k in range(cycles):
        begin = k * cycle
        end = (k + 1) * cycle
        call = int(np.floor((begin - sender.phase) / sender.duration + 1e-9))
        before = v
        while True:
            edge = sender.phase + (call + 1) * sender.duration
            until = min(edge, end)
            step = until - begin
            if step > 1e-9:
                s = setpoint(until, call)
                a = gain * (s - q) - gain * lookahead * v
                v = v + step * a
                q = q + step * v
            begin = until
            if edge >= end - 1e-9:
                break
            call += 1
        rows["timestamp"].append(100.0 + end)
        rows["target_q"].append(q)
        rows["target_qd"].append(v)
        rows["target_qdd"].append((v - before) / cycle)
    return {name: np.array(values) for name, values in rows.items()}


def wandering(
    count: int, interval: float, random: np.random.Generator, joints: int = 6
) -> np.ndarray:
    """A smooth motion (count, 6), rad, sampled at an interval, s: sums of slow sines that begin and
    end at rest.
    """
    time = np.arange(count) * interval
    motion = np.zeros((count, 6))
    for j in range(joints):
        for _ in range(3):
            amplitude = random.uniform(0.05, 0.25)
            rate = random.uniform(1.0, 4.0)
            shift = random.uniform(0.0, 6.3)
            motion[:, j] += amplitude * np.sin(rate * time + shift)
    return np.array([0.3, -1.4, 1.7, -1.9, -1.5, 0.4]) + motion
