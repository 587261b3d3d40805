"""The actions of `simbridge ursim`: start, status and stop."""

from __future__ import annotations

import errno
import socket
from collections.abc import Sequence

from simbridge.console import Terminal
from simbridge.errors import SimbridgeError
from simbridge.running.signals import defer_signals
from simbridge.ur.ursim_image import URSIM_PORTS, pendant_page
from simbridge.ursim.choice import UrsimChoice, read_choice
from simbridge.ursim.container_engine import ContainerEngine, UrsimContainer, find_engine
from simbridge.ursim.errors import AnotherUrsimRuns, PortsTaken
from simbridge.ursim.first_state import await_first_state, read_version
from simbridge.ursim.next_steps import describe_next_steps

# Exit status of `status` where nothing runs.
NOTHING_RUNS = 1
NOTHING_STARTED = "No URSim runs that `simbridge ursim start` has started."


def start(model: str, polyscope: str, host: str) -> int:
    """Start URSim for an arm, wait until its controller answers, and print what is left to do.

    A container that this call has started is removed if it is interrupted.

    Args:
        model: Name of the arm.
        polyscope: Tag of UR's image.
        host: Loopback address of its ports.

    Returns:
        The exit status, 0.

    Raises:
        UnknownName, InvalidParameter: An argument is invalid.
        NoContainerEngine, ContainerCommandFailed: Docker and podman are missing, or fail.
        AnotherUrsimRuns, PortsTaken: The address is in use.
        ImageUnavailable: UR's image cannot be downloaded.
        UrsimEnded, UrsimSilent: Its controller does not answer.
    """
    progress = Terminal(stderr=True)
    choice = read_choice(model, polyscope, host)
    engine = find_engine()

    running = _find_running(engine, choice)
    if running is not None:
        progress.print(f"URSim for a {running.arm} already runs at {running.host}.")
        await_first_state(engine, running, progress)
    else:
        _prepare(engine, choice, progress)
        _start_new(engine, choice, progress)

    for line in describe_next_steps(choice.robot, choice.host):
        Terminal().print(line, markup=False)
    return 0


def status() -> int:
    """Print which URSims run, and whether the controller of each answers.

    Returns:
        The exit status: 0 if a URSim that simbridge has started runs, else 1.

    Raises:
        NoContainerEngine, ContainerCommandFailed: Docker and podman are missing, or fail.
    """
    containers = find_engine().containers()
    running_containers = [container for container in containers if container.is_running]
    for container in running_containers:
        version = read_version(container.host)
        answer = f"it answers (PolyScope {version})" if version else "it does not answer yet"
        Terminal().print(
            f"URSim for a {container.arm} runs at {container.host}; {answer}. Image: "
            f"{container.image}. Pendant: {pendant_page(container.host)}",
            markup=False,
        )
    if not running_containers:
        Terminal().print(NOTHING_STARTED, markup=False)
        return NOTHING_RUNS
    return 0


def stop() -> int:
    """Remove every container that simbridge has started.

    Returns:
        The exit status, 0.

    Raises:
        NoContainerEngine, ContainerCommandFailed: Docker and podman are missing, or fail.
    """
    engine = find_engine()
    containers = engine.containers()
    for container in containers:
        engine.remove(container)
        Terminal().print(f"Removed URSim for a {container.arm} at {container.host}.", markup=False)
    if not containers:
        Terminal().print(NOTHING_STARTED, markup=False)
    return 0


def _find_running(engine: ContainerEngine, choice: UrsimChoice) -> UrsimContainer | None:
    """Return the chosen URSim if it runs already; remove one that has ended at its address.

    Raises:
        AnotherUrsimRuns: One for another arm or from another image runs at the address.
    """
    for container in engine.containers():
        if container.host != choice.host:
            continue
        if not container.is_running:
            engine.remove(container)
            continue
        if container.arm != choice.robot.ur_model or container.image != choice.image:
            raise AnotherUrsimRuns(choice.host, f"a {container.arm} ({container.image})")
        return container
    return None


def _prepare(engine: ContainerEngine, choice: UrsimChoice, progress: Terminal) -> None:
    """Check that the ports are free, and download the image if it is missing."""
    occupied_ports = [port for port in URSIM_PORTS if _is_taken(choice.host, port)]
    if occupied_ports:
        raise PortsTaken(choice.host, occupied_ports)
    if not engine.has_image(choice.image):
        progress.print(f"Downloading {choice.image} (once) ...", markup=False)
        engine.download(choice.image)


def _is_taken(host: str, port: int) -> bool:
    """Return whether another program listens on a port."""
    with socket.socket() as probe:
        # A connection that has just ended does not count.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            return error.errno == errno.EADDRINUSE
    return False


def _start_new(engine: ContainerEngine, choice: UrsimChoice, progress: Terminal) -> None:
    """Start a container and wait for its controller; remove it if that is interrupted."""
    started: list[UrsimContainer] = []
    try:
        with defer_signals():
            started.append(engine.start(choice.robot.ur_model, choice.image, choice.host))
        await_first_state(engine, started[0], progress)
    except KeyboardInterrupt:
        _remove_interrupted(engine, started, progress)
        raise


def _remove_interrupted(
    engine: ContainerEngine, started: Sequence[UrsimContainer], progress: Terminal
) -> None:
    """Remove what an interrupted start has begun, and say so."""
    for container in started:
        try:
            engine.remove(container)
        except SimbridgeError as error:
            progress.print(str(error), markup=False)
        else:
            progress.print("The URSim that was starting is removed.", markup=False)
