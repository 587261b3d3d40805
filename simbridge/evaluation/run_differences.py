"""Differences between compared runs: the settings that a user chose, and labels of the runs."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from simbridge.quoting import shorten
from simbridge.recording.settings_text import flatten

# Settings that are named by themselves, the most important first, by their names in settings.toml.
NAMED_BY_VALUE = {"robot.name": "robot", "backend.name": "backend", "solver.name": "solver"}
# The beginning of a solver's settings in settings.toml, and what flags put in its place.
SOLVER_SETTINGS = "solver.parameters."
SOLVER_FLAG = "solver."

NOT_CHOSEN = (
    "backend.cycle",
    "backend.effort_unit",
    "backend.gain_deviation",
    "backend.lookahead_deviation",
    "backend.plant_not_simulated",
    "backend.plant_replaced",
    "backend.plant_robot",
    "backend.simulated_time",
    "controller.",
    "kinematics.checksum",
    "kinematics.controller_difference.",
    "kinematics.dh.",
    "kinematics.placements",
    "kinematics.ros.",
    "label",
    "repeats.",
    "robot.file_home",
    "robot.source",
    "robot.title",
    "scenario.description",
    "scenario.file",
    "scenario.source",
    "scenario.start.",
    "shapes",
    "solver.host_step_time_s",
    "solver.notes",
    "solver.predicted_lag_s",
    "versions.",
)
"""Beginnings of the names of settings that nobody chose: they follow from others, or describe."""

CONSEQUENCES = {
    "robot.name": ("robot.", "kinematics.", "backend.acceleration_lag", "backend.period"),
    "backend.name": (
        "backend.acceleration_lag",
        "backend.joint_lag",
        "backend.on_",
        "backend.phase",
        "backend.realtime",
    ),
    "solver.name": ("solver.task",),
    "backend.servo": (
        "backend.acceleration_lag",
        "backend.joint_lag",
        "backend.phase",
        "backend.servo_",
    ),
    "backend.plant_file": (
        "backend.acceleration_lag",
        "backend.joint_lag",
        "backend.phase",
        "backend.servo_",
    ),
}
"""Beginnings of the names of settings that differ because the one before the colon does."""

# Settings in a label; more of them only where runs would else have one label.
LABELLED_SETTINGS = 2
# Characters of a value in a label.
MAX_VALUE_LENGTH = 30


class DifferentSetting(NamedTuple):
    """A setting that is not the same in all runs.

    Attributes:
        name: Name of the setting for people, as in a flag: "feedforward", "solver.kp".
        values: Value of the setting in each run; None if the run has no such setting.
        is_named: Whether a label names it beside its value: "kp 5", but "ur10e".
    """

    name: str
    values: tuple[str | None, ...]
    is_named: bool

    def text(self, run: int) -> str:
        """Return the value of a run as a part of its label."""
        value = self.values[run]
        if value is None:
            # Another solver has other settings.
            return "" if self.name.startswith(SOLVER_FLAG) else f"no {self.name}"
        return f"{self.name} {shown_value(value)}" if self.is_named else shown_value(value)


@dataclass(frozen=True)
class RunDifferences:
    """Differences between compared runs.

    Attributes:
        settings: The settings that differ, the most important first.
        labels: A label for each run: the user's, or one made of its values of the settings; no two
            are the same.
        user_labels: The user's label of each run; "" for none.
    """

    settings: tuple[DifferentSetting, ...]
    labels: tuple[str, ...]
    user_labels: tuple[str, ...]

    @property
    def names(self) -> list[str]:
        """Names of the settings that differ."""
        return [setting.name for setting in self.settings]

    @property
    def columns(self) -> dict[str, tuple[str, ...]]:
        """The columns that say which run a row is of, by their headings.

        They are the labels, the values of the one setting that distinguishes the runs, or both
        where the user has labelled runs.
        """
        labels = {"run": self.labels}
        if not self._is_one_setting:
            return labels

        (setting,) = self.settings
        values = {setting.name: self._values_of_one_setting()}
        return {**labels, **values} if any(self.user_labels) else values

    @property
    def entries(self) -> tuple[str, ...]:
        """The names of the runs in a sentence that has named the settings that differ."""
        if not self._is_one_setting:
            return self.labels

        entries = []
        for label, value in zip(self.user_labels, self._values_of_one_setting(), strict=True):
            entries.append(f"{label}: {value}" if label else value)
        return tuple(entries)

    def _values_of_one_setting(self) -> tuple[str, ...]:
        """Return the value of the one setting that differs, of each run."""
        (setting,) = self.settings
        return tuple("none" if value is None else shown_value(value) for value in setting.values)

    @property
    def _is_one_setting(self) -> bool:
        """True if the values of one setting distinguish all runs."""
        if len(self.settings) != 1:
            return False
        values = self.settings[0].values
        return len(set(values)) == len(values)

    @property
    def only_solvers_differ(self) -> bool:
        """True if the runs differ only in their solver or its settings."""
        return bool(self.settings) and all(name.startswith("solver") for name in self.names)


def find_differences(
    tables: Sequence[Mapping[str, Any]], run_names: Sequence[str]
) -> RunDifferences:
    """Find what differs between runs.

    Args:
        tables: The content of each run's settings.toml.
        run_names: Names of the runs, no two of them the same. They label the
            runs that neither a user's label nor a setting distinguishes.
    """
    by_run = [dict(flatten(settings)) for settings in tables]
    # All names of settings once, the most important first.
    names = dict.fromkeys([*NAMED_BY_VALUE, *(name for run in by_run for name in run)])
    differing = [name for name in names if _differs(name, by_run)]

    # The beginnings of names of settings that differ only because another one does.
    implied = tuple(start for name in differing for start in CONSEQUENCES.get(name, ()))

    # Keep the settings that a user chose. One that implies others is itself never implied: the name
    # "robot.name" begins with "robot.", too.
    settings = []
    for name in differing:
        is_implied = name not in CONSEQUENCES and name.startswith(implied)
        if is_implied or name.startswith(NOT_CHOSEN):
            continue
        values = tuple(run.get(name) for run in by_run)
        setting = DifferentSetting(
            name=_name_for_people(name), values=values, is_named=name not in NAMED_BY_VALUE
        )
        settings.append(setting)

    user_labels = tuple(run.get("label", "") for run in by_run)
    made_labels = _make_labels(settings, run_names)
    labels = _prefer_user_labels(user_labels, made_labels)
    return RunDifferences(tuple(settings), labels, user_labels)


def shown_value(text: str) -> str:
    """Return a value as a label has it.

    It is shortened, and neighbouring equal values of a list are one: "50/5" for "[50, 50, 5]".
    """
    if text.startswith("[") and text.endswith("]"):
        text = "/".join(value for value, _ in itertools.groupby(text[1:-1].split(", ")))
    return shorten(text, MAX_VALUE_LENGTH)


def _differs(name: str, by_run: Sequence[Mapping[str, str]]) -> bool:
    """Return whether a setting differs; that of a solver, between runs with one solver."""
    if not name.startswith(SOLVER_SETTINGS):
        return len({run.get(name) for run in by_run}) > 1

    values: dict[str | None, set[str | None]] = {}
    for run in by_run:
        values.setdefault(run.get("solver.name"), set()).add(run.get(name))
    return any(len(of_solver) > 1 for of_solver in values.values())


def _name_for_people(name: str) -> str:
    """Return the name of a setting without its table, as the flag has it."""
    if name in NAMED_BY_VALUE:
        return NAMED_BY_VALUE[name]
    if name.startswith(SOLVER_SETTINGS):
        return SOLVER_FLAG + name.removeprefix(SOLVER_SETTINGS)
    _, _, short_name = name.rpartition(".")
    return short_name.replace("_", "-")


def _make_labels(settings: Sequence[DifferentSetting], run_names: Sequence[str]) -> tuple[str, ...]:
    """Return a label for each run from as few settings as tell the runs apart."""
    if not settings:
        return tuple(run_names)

    labels: list[str] = []
    for count in range(min(LABELLED_SETTINGS, len(settings)), len(settings) + 1):
        labels = [_label(settings[:count], run) for run in range(len(run_names))]
        if len(set(labels)) == len(labels):
            return tuple(labels)

    # Runs with equal settings are distinguished by their names.
    return tuple(
        f"{label} ({name})" if labels.count(label) > 1 else label
        for label, name in zip(labels, run_names, strict=True)
    )


def _prefer_user_labels(user_labels: Sequence[str], made_labels: Sequence[str]) -> tuple[str, ...]:
    """Return the user's label of each run that has one, else the one made of its settings.

    Where two runs would have one label, that of their settings is added.
    """
    preferred = [
        user_label or made_label
        for user_label, made_label in zip(user_labels, made_labels, strict=True)
    ]

    labels = []
    for label, made_label in zip(preferred, made_labels, strict=True):
        is_shared = preferred.count(label) > 1
        if is_shared and label != made_label:
            labels.append(f"{label} ({made_label})")
        else:
            labels.append(label)
    return tuple(labels)


def _label(settings: Sequence[DifferentSetting], run: int) -> str:
    """Return a run's values of some settings as a text."""
    return ", ".join(filter(None, (setting.text(run) for setting in settings)))
