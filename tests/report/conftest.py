"""Runs to report on, made without a simulator: an arm of any number of joints, with errors put in by hand."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from simbridge.evaluation.evaluation import Evaluation
from simbridge.evaluation.summary import summarize
from simbridge.planning.plan import Plan
from simbridge.recording.run_directory import RunDirectory
from simbridge.recording.run_record import Record
from simbridge.recording.samples import LogColumns
from simbridge.recording.settings_file import read_record
from simbridge.report import write_report
from simbridge.robot.kinematics import tool_poses
from simbridge.trajectory import Trajectory
from tests.records import made_up_tables

Array = NDArray[np.float64]

BUSY = {
    "target_offset": 1e-3,
    "solution_offset": 2e-3,
    "setpoint_offset": -5e-4,
    "plant_offset": 4e-3,
    "plant_delay": 0.02,
}
VOID = {"meta", "link", "br", "hr", "img", "input"}


@dataclass
class MadeUp:
    """A run to be reported.

    The joints swing by `swing` rad about 0.3 rad, each at its own frequency. The offsets, in rad, of the first joint
    are added along the pipeline, so that they are the parts of the error budget.
    """

    samples: int = 200
    joints: int = 3
    period: float = 0.008
    swing: float = 0.2
    target_offset: float = 0.0
    solution_offset: float = 0.0
    setpoint_offset: float = 0.0
    plant_offset: float = 0.0
    plant_delay: float = 0.0
    noise: float = 0.0
    outcome: str = "completed"
    complete: bool = True
    effort: Array | float = 1.0
    limited: NDArray[np.bool_] | None = None
    speed_scaling: Array | float = 1.0
    runtime_state: NDArray[np.int32] | int = 2
    tolerance: dict[str, float] | None = None
    settings: dict[str, dict[str, Any]] = field(default_factory=dict)
    summary: dict[str, Any] = field(default_factory=dict)

    def evaluation(self, directory: Path) -> Evaluation:
        """The run, in a directory of its own."""
        directory.mkdir(parents=True, exist_ok=True)
        record = self._record()
        placements = np.array(record.kinematics.placements).reshape(-1, 4, 4)
        prismatic = np.array(record.kinematics.prismatic)
        times = np.arange(self.samples) * self.period
        wanted = self._motion(times)
        first = np.eye(1, self.joints)[0]
        solution = wanted + (self.target_offset + self.solution_offset) * first
        setpoint = solution + self.setpoint_offset * first
        late = self._motion(times - self.plant_delay) - wanted
        noise = np.random.default_rng(1).normal(0.0, self.noise, wanted.shape)
        position = setpoint + late + self.plant_offset * first + noise
        limited = np.zeros(self.samples, dtype=bool) if self.limited is None else self.limited
        reference = tool_poses(placements, prismatic, wanted) if self.samples else np.zeros((0, 7))
        target = tool_poses(placements, prismatic, wanted + self.target_offset * first)
        path = Trajectory(times, reference, source="made up") if self.samples else self._still()
        same = np.ones(self.samples)
        log = LogColumns(
            joint_names=tuple(record.robot.joint_names),
            frame_id="base_link",
            metadata={},
            complete=self.complete,
            index=np.arange(self.samples),
            stamp=times,
            plan_time=times,
            target=target,
            solution=solution,
            setpoint=setpoint,
            command=setpoint,
            controller_target_velocity=0.0 * setpoint,
            controller_target_acceleration=0.0 * setpoint,
            position=position,
            velocity=np.gradient(position, self.period, axis=0)
            if self.samples > 1
            else 0.0 * position,
            effort=np.broadcast_to(np.asarray(self.effort, dtype=float), position.shape),
            controller_target=setpoint,
            speed_scaling=self.speed_scaling * same,
            robot_mode=same.astype(np.int32),
            safety_mode=same.astype(np.int32),
            runtime_state=self.runtime_state * same.astype(np.int32),
            limited=limited,
            host_monotonic=times,
        )
        plan = Plan("0" * 64, self.period, path, "linear", times, solution, setpoint, limited)
        run = RunDirectory(directory)
        run.write_settings(record)
        return Evaluation(run, record, plan, log)

    def _motion(self, times: Array) -> Array:
        pace = 2.0 + 0.7 * np.arange(self.joints)
        return 0.3 + self.swing * np.sin(times[:, None] * pace)

    def _still(self) -> Trajectory:
        return Trajectory(np.zeros(1), np.eye(1, 7, 6))

    def _record(self) -> Record:
        tables = made_up_tables(self.joints, self.period)
        for table, changes in self.settings.items():
            tables[table] |= changes
        return read_record(tables)


class Page(HTMLParser):
    """What a page says: its text by element id, its elements, and that its elements are nested properly."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.source = text
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self._open: list[tuple[str, str | None]] = []
        self._text: list[tuple[tuple[str, ...], str]] = []
        self.feed(text)
        self.close()
        assert self._open == [], f"never closed: {self._open}"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            attributes = dict(attrs)
            self._open.append((tag, attributes.get("id") or attributes.get("class") or tag))

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self._open and self._open[-1][0] == tag, f"</{tag}> closes {self._open[-1:]}"
        self._open.pop()

    def handle_data(self, data: str) -> None:
        if data.strip():
            self._text.append((tuple(name or tag for tag, name in self._open), data))

    def text(self, name: str) -> str:
        """The text inside of the elements with this id, class or tag, with plain spaces."""
        inside = [
            data for names, data in self._text if any(name in given.split() for given in names)
        ]
        return " ".join(" ".join(inside).replace("\u00a0", " ").split())

    def has(self, name: str) -> bool:
        """Whether there is an element with this id or class."""
        return any(
            name in f"{a.get('id') or ''} {a.get('class') or ''}".split() for _, a in self.elements
        )

    @property
    def ids(self) -> list[str]:
        return [a["id"] or "" for _, a in self.elements if "id" in a]


Measured = Callable[..., tuple[Evaluation, dict[str, Any]]]
Report = Callable[..., tuple[Page, dict[str, Any]]]


@pytest.fixture(scope="session")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Measured:
    """Makes up a run; returns it with its summary. Much faster than a page, which takes ten drawings."""
    directory = tmp_path_factory.mktemp("run")

    def made_up(**run: Any) -> tuple[Evaluation, dict[str, Any]]:
        made = MadeUp(**run)
        evaluation = made.evaluation(directory)
        summary = {**summarize(evaluation, made.outcome), **made.summary}
        summary["tolerance"] = made.tolerance
        summary["passed"] = None
        if made.tolerance is not None:
            error = summary["tracking_error"]
            summary["passed"] = all(
                error[part]["rms"] <= made.tolerance[part] for part in made.tolerance
            )
        return evaluation, summary

    return made_up


@pytest.fixture(scope="session")
def report(measured: Measured) -> Report:
    """Writes the report of a made-up run; returns the page and its summary."""

    def written(**run: Any) -> tuple[Page, dict[str, Any]]:
        evaluation, summary = measured(**run)
        write_report(evaluation, summary)
        return Page(evaluation.directory.report_file.read_text(encoding="utf-8")), summary

    return written


@pytest.fixture(scope="session")
def busy(report: Report) -> tuple[Page, dict[str, Any]]:
    """The page and the summary of a run with every part of the error budget, and a delay."""
    return report(**BUSY)
