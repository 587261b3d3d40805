"""Errors of starting URSim in a container."""

from __future__ import annotations

from collections.abc import Sequence

from simbridge.errors import Refusal, SimbridgeError
from simbridge.text import join_words

INSTALL_ADVICE = "Install one (Debian and Ubuntu: sudo apt install podman)."
DAEMON_ADVICE = (
    "Start its service (sudo systemctl start docker), join the group docker if the permission is "
    "missing, or install podman, which needs neither."
)


class NoContainerEngine(Refusal, RuntimeError):
    """Neither docker nor podman can run a container here.

    Attributes:
        answers: What the installed ones answered, as a clause; "" if neither is installed.
    """

    def __init__(self, answers: str) -> None:
        self.answers = answers
        message = f"URSim needs docker or podman, and neither is installed. {INSTALL_ADVICE}"
        if answers:
            message = f"URSim needs docker or podman; here {answers}. {DAEMON_ADVICE}"
        super().__init__(message)


class ContainerCommandFailed(SimbridgeError, RuntimeError):
    """A command of docker or podman failed.

    Attributes:
        command: The command, as a line.
        answer: What the command printed on standard error; "" for nothing.
    """

    def __init__(self, command: str, answer: str) -> None:
        self.command = command
        self.answer = answer
        super().__init__(f"`{command}` failed: {answer or 'it gave no reason'}.")


class ImageUnavailable(SimbridgeError, RuntimeError):
    """UR's image is not on this computer and cannot be downloaded.

    Attributes:
        image: Name of the image with its tag.
    """

    def __init__(self, image: str) -> None:
        self.image = image
        name, _, tag = image.removeprefix("docker.io/").partition(":")
        super().__init__(
            f"The image {image} cannot be downloaded; the reason stands above. Check the "
            f"connection, and that the tag {tag} exists: https://hub.docker.com/r/{name}/tags "
            "lists them, and --polyscope TAG chooses one."
        )


class PortsTaken(Refusal, RuntimeError):
    """Another program listens on ports that URSim needs.

    Attributes:
        host: The address.
        ports: The ports.
    """

    def __init__(self, host: str, ports: Sequence[int]) -> None:
        self.host = host
        self.ports = tuple(ports)
        is_single = len(ports) == 1
        noun = "Port" if is_single else "Ports"
        verb = "is" if is_single else "are"
        numbers = join_words([str(port) for port in ports], "and")
        super().__init__(
            f"{noun} {numbers} of {host} {verb} in use by another program: an emulator, a URSim "
            "that was not started with `simbridge ursim start`, or a screen server (VNC). End it, "
            "or choose another address: --host 127.0.0.2."
        )


class AnotherUrsimRuns(Refusal, RuntimeError):
    """A URSim for another arm or with another version runs at the address.

    Attributes:
        host: The address.
        running: The arm and the image that run.
    """

    def __init__(self, host: str, running: str) -> None:
        self.host = host
        self.running = running
        super().__init__(
            f"At {host} URSim already runs for {running}. `simbridge ursim stop` removes it; with "
            "--host 127.0.0.2 another one runs beside it."
        )


class UrsimEnded(SimbridgeError, RuntimeError):
    """The container of URSim ended before its controller answered.

    Attributes:
        log: The last lines that it printed; "" if there are none, or they cannot be read.
        log_error: Why they cannot be read; None if they were.
    """

    def __init__(self, log: str, *, log_error: ContainerCommandFailed | None = None) -> None:
        self.log = log
        self.log_error = log_error
        printed = f"Its last lines were:\n{log}" if log else "It printed nothing."
        if log_error is not None:
            printed = f"What it printed cannot be read: {log_error}"
        super().__init__(f"URSim ended before its controller answered. {printed}")


class UrsimSilent(SimbridgeError, TimeoutError):
    """The controller of URSim did not answer in time; its container still runs.

    Attributes:
        host: The address.
        waited: How long its answer was awaited, s.
        reason: Why the last attempt failed.
    """

    def __init__(self, host: str, waited: float, reason: str) -> None:
        self.host = host
        self.waited = waited
        self.reason = reason
        super().__init__(
            f"URSim runs, but its controller has not answered at {host} within {waited:.0f} s: "
            f"{reason}. `simbridge ursim start` with the same arm waits on; `simbridge ursim stop` "
            "removes it."
        )
