"""A stand-in for docker on the path: see `stand_in.py`."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import sys
from pathlib import Path

import pytest

STAND_IN = Path(__file__).with_name("stand_in.py")
E_SERIES = "docker.io/universalrobots/ursim_e-series:latest"


class Docker:
    """The stand-in, and what it keeps.

    Attributes:
        directory: Its files.
        bin: The only directory on the path.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.bin = directory / "bin"
        self.bin.mkdir()
        self.install("docker")
        for name in ("sleep", "echo", "timeout"):
            (self.bin / name).symlink_to(shutil.which(name))
        self.add_image(E_SERIES)

    def install(self, name: str) -> None:
        program = self.bin / name
        # Without site-packages it starts within milliseconds.
        python = Path(sys.executable).resolve()
        program.write_text(f'#!/bin/sh\nexec {python} -I -S {STAND_IN} "$@"\n')
        program.chmod(0o755)

    def environment(self) -> dict[str, str]:
        return {
            "PATH": str(self.bin),
            "STAND_IN_DIRECTORY": str(self.directory),
            "STAND_IN_PYTHON": sys.executable,
        }

    def enter(self, monkeypatch: pytest.MonkeyPatch) -> None:
        for name, value in self.environment().items():
            monkeypatch.setenv(name, value)

    def add_image(self, name: str, *, where: str = "images") -> None:
        with (self.directory / where).open("a") as file:
            file.write(f"{name}\n")

    @property
    def containers(self) -> dict[str, dict]:
        file = self.directory / "containers.json"
        return json.loads(file.read_text()) if file.exists() else {}

    def add_container(self, labels: dict[str, str], pid: int) -> str:
        number = f"{len(self.containers):064x}"
        container = {"labels": labels, "pid": pid, "arguments": []}
        file = self.directory / "containers.json"
        file.write_text(json.dumps({**self.containers, number: container}))
        return number

    def close(self) -> None:
        for container in self.containers.values():
            if container["pid"] != os.getpid():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(container["pid"], signal.SIGTERM)


@pytest.fixture
def docker(tmp_path, monkeypatch):
    """A stand-in for docker that has UR's newest image for the e-Series."""
    engine = Docker(tmp_path)
    engine.enter(monkeypatch)
    yield engine
    engine.close()
