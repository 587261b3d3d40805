"""Containers of URSim, by the command line of docker or podman.

A container that simbridge starts has labels: they say for which arm, from which image and at which
address. Only containers with these labels are ever listed, and only they are removed.
"""

from __future__ import annotations

import json
import shlex
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from simbridge.quoting import quoted
from simbridge.ur.ursim_image import container_options
from simbridge.ursim.errors import ContainerCommandFailed, ImageUnavailable, NoContainerEngine

# The programs in the order in which they are tried.
ENGINES = ("docker", "podman")
# Labels of a container: the model of the arm, the image with its tag, and the address.
ARM_LABEL = "simbridge.ursim.arm"
IMAGE_LABEL = "simbridge.ursim.image"
HOST_LABEL = "simbridge.ursim.host"
# How long a command may take, s. Downloads are not bounded.
COMMAND_TIMEOUT_S = 120.0
# Characters of an engine's answer that are shown.
MAX_ANSWER = 300
# Lines of a container's log that are shown.
SHOWN_LOG_LINES = 10
STANDARD_ERROR = 2


@dataclass(frozen=True)
class UrsimContainer:
    """A container that simbridge has started.

    Attributes:
        container_id: The engine's ID of it, in hexadecimal digits.
        arm: Model of the arm, such as "UR10e".
        image: Name of the image with its tag.
        host: Loopback address at which its ports are published.
        is_running: False once it has ended.
    """

    container_id: str
    arm: str
    image: str
    host: str
    is_running: bool


class ContainerEngine:
    """Docker or podman.

    Args:
        program: Path of the program.
    """

    def __init__(self, program: str) -> None:
        self._program = program

    def check(self) -> None:
        """Check that it can list containers.

        Raises:
            ContainerCommandFailed: The engine cannot list containers: its service is down, or the
                permission is missing.
        """
        self._run("ps", "--quiet")

    def containers(self) -> list[UrsimContainer]:
        """Return the containers that simbridge has started, the ended ones included.

        Raises:
            ContainerCommandFailed: They cannot be listed.
        """
        listed = self._run("ps", "--all", "--quiet", "--no-trunc", "--filter", f"label={ARM_LABEL}")
        container_ids = listed.split()
        if not container_ids:
            return []
        inspected = json.loads(self._run("inspect", *container_ids))
        return [_read_container(facts) for facts in inspected]

    def has_image(self, image: str) -> bool:
        """Return whether an image is on this computer."""
        try:
            self._run("image", "inspect", image)
        except ContainerCommandFailed:
            return False
        return True

    def download(self, image: str) -> None:
        """Download an image; the engine shows the progress on standard error.

        Raises:
            ImageUnavailable: It cannot be downloaded.
        """
        command = [self._program, "pull", image]
        ended = subprocess.run(
            command, stdin=subprocess.DEVNULL, stdout=STANDARD_ERROR, check=False
        )
        if ended.returncode != 0:
            raise ImageUnavailable(image)

    def start(self, arm: str, image: str, host: str) -> UrsimContainer:
        """Start a container of URSim.

        Args:
            arm: Model of the arm.
            image: Name of the image with its tag, which is on this computer.
            host: Loopback address at which its ports are published.

        Raises:
            ContainerCommandFailed: It cannot be started.
        """
        labels = {ARM_LABEL: arm, IMAGE_LABEL: image, HOST_LABEL: host}
        options = ["--detach"]
        for name, value in labels.items():
            options += ["--label", f"{name}={value}"]
        options += container_options(arm, host)

        container_id = self._run("run", *options, image).strip()
        return UrsimContainer(
            container_id=container_id, arm=arm, image=image, host=host, is_running=True
        )

    def is_running(self, container: UrsimContainer) -> bool:
        """Return whether a container is still running."""
        return any(
            listed.container_id == container.container_id and listed.is_running
            for listed in self.containers()
        )

    def log(self, container: UrsimContainer) -> str:
        """Return the last lines that a container has printed, on either of its outputs.

        Raises:
            ContainerCommandFailed: They cannot be read.
        """
        arguments = ("logs", "--tail", str(SHOWN_LOG_LINES), container.container_id)
        printed = self._run(*arguments, stderr=subprocess.STDOUT)
        return "\n".join(printed.strip().splitlines()[-SHOWN_LOG_LINES:])

    def remove(self, container: UrsimContainer) -> None:
        """End a container, if it runs, and remove it with its anonymous volumes.

        Raises:
            ContainerCommandFailed: It cannot be removed.
        """
        self._run("rm", "--force", "--volumes", container.container_id)

    def _run(self, *arguments: str, stderr: int = subprocess.PIPE) -> str:
        """Run a command of the engine, and return its standard output.

        The command runs in a session of its own, so that Ctrl-C reaches only simbridge, which
        decides whether a container is removed.

        Args:
            arguments: The command and its arguments.
            stderr: Destination of the standard error; `subprocess.STDOUT` to return it with the
                output.

        Raises:
            ContainerCommandFailed: It failed, or took longer than `COMMAND_TIMEOUT_S`.
        """
        command = [self._program, *arguments]
        try:
            completed = subprocess.run(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=stderr,
                text=True,
                errors="replace",
                timeout=COMMAND_TIMEOUT_S,
                start_new_session=True,
                check=False,
            )
        except OSError as error:
            raise ContainerCommandFailed(shlex.join(command), str(error.strerror)) from None
        except subprocess.TimeoutExpired:
            reason = f"no answer within {COMMAND_TIMEOUT_S:.0f} s"
            raise ContainerCommandFailed(shlex.join(command), reason) from None
        if completed.returncode != 0:
            # An engine explains a failure on its standard error.
            explanation = completed.stdout if stderr == subprocess.STDOUT else completed.stderr
            answer = " ".join(explanation.split()).rstrip(".")
            raise ContainerCommandFailed(shlex.join(command), answer)
        return completed.stdout


def find_engine() -> ContainerEngine:
    """Return the first of docker and podman that can list containers.

    Raises:
        NoContainerEngine: Neither is installed, or those that are installed cannot list containers.
    """
    # A clause about each engine that is installed but cannot be used.
    failures = []
    for name in ENGINES:
        program = shutil.which(name)
        if program is None:
            continue
        engine = ContainerEngine(program)
        try:
            engine.check()
        except ContainerCommandFailed as error:
            failures.append(f"{name} answers {quoted(error.answer, MAX_ANSWER)}")
            continue
        return engine
    raise NoContainerEngine(" and ".join(failures))


def _read_container(facts: Mapping[str, Any]) -> UrsimContainer:
    """Return a container as `docker inspect` and `podman inspect` describe it."""
    labels = facts["Config"]["Labels"]
    return UrsimContainer(
        container_id=facts["Id"],
        arm=labels[ARM_LABEL],
        image=labels.get(IMAGE_LABEL, ""),
        host=labels.get(HOST_LABEL, ""),
        is_running=bool(facts["State"]["Running"]),
    )
