"""What was given to read cannot be used."""

from __future__ import annotations

from pathlib import Path

from simbridge.errors.root import SimbridgeError


class InputFileError(SimbridgeError, ValueError):
    """A file the user gave cannot be read or holds something else than was expected.

    Attributes:
        path: The file.
        line: The line at fault, counted from 1, or None when the whole file is meant.
        field: The field or column at fault, or None.
        reason: What is wrong, as a sentence.
    """

    def __init__(self, path: str | Path, reason: str, *, line: int | None = None, field: str | None = None) -> None:
        self.path = Path(path)
        self.line = line
        self.field = field
        self.reason = reason
        where = f"{path}" + (f", line {line}" if line is not None else "") + (f", {field}" if field else "")
        super().__init__(f"{where}: {reason}")


class UnusableSamples(SimbridgeError, ValueError):
    """Samples that cannot be evaluated: none at all, of another shape than the rest, or not numbers.

    Attributes:
        name: The quantity ("attained poses", "times", ...).
        reason: What is wrong with it and what to do, as a sentence.
        index: The first sample at fault, counted from 0, or None when all of them are.
    """

    def __init__(self, name: str, reason: str, *, index: int | None = None) -> None:
        self.name = name
        self.reason = reason
        self.index = index
        super().__init__(f"The {name} cannot be evaluated: {reason}")


class InvalidTrajectory(SimbridgeError, ValueError):
    """Samples that do not make a trajectory.

    Attributes:
        reason: What is wrong, as a sentence.
        sample: Index of the sample at fault, or None when the whole is meant.
        field: The part of the sample at fault ("time", "x", "quaternion", ...), or None.
        source: Where the samples come from, or "".
    """

    def __init__(self, reason: str, *, sample: int | None = None, field: str | None = None, source: str = "") -> None:
        self.reason = reason
        self.sample = sample
        self.field = field
        self.source = source
        where = ["trajectory" + (f" '{source}'" if source else "")]
        where += [f"sample {sample}"] if sample is not None else []
        where += [field] if field else []
        super().__init__(f"{', '.join(where)}: {reason}")


class ScenarioError(SimbridgeError, ValueError):
    """A scenario script that cannot be used.

    Attributes:
        path: The script.
        reason: Why, as a sentence.
        line: The line at fault, or None.
    """

    def __init__(self, path: str | Path, reason: str, *, line: int | None = None) -> None:
        self.path = Path(path)
        self.reason = reason
        self.line = line
        where = f", line {line}" if line is not None else ""
        super().__init__(f"The scenario {path}{where} cannot be used: {reason}.")


class LogReadError(SimbridgeError, ValueError):
    """A file is no log of a run, or was cut off before the log began.

    Attributes:
        path: The file.
        reason: What is wrong, as a sentence.
    """

    def __init__(self, path: str | Path, reason: str) -> None:
        self.path = Path(path)
        self.reason = reason
        super().__init__(f"{path} cannot be read as a log: {reason}")


class NotARun(SimbridgeError, ValueError):
    """A directory that does not hold a run, or not all of it.

    Attributes:
        path: The directory.
        missing: The file that is missing or broken.
    """

    def __init__(self, path: str | Path, missing: str, reason: str = "it is not there") -> None:
        self.path = Path(path)
        self.missing = missing
        super().__init__(f"{path} is not a run that can be read: {missing}: {reason}.")
