"""Wait until the controller of a URSim that is starting answers.

A container engine accepts connections to a published port before anything in the container
listens. So a controller counts as started once it has sent a state by RTDE.
"""

from __future__ import annotations

import time

from simbridge.console import Terminal
from simbridge.ur.errors import ControllerError
from simbridge.ur.rtde import RtdeReader
from simbridge.ursim.container_engine import ContainerEngine, UrsimContainer
from simbridge.ursim.errors import ContainerCommandFailed, UrsimEnded, UrsimSilent

# URSim takes about a minute; a slow computer longer, s.
START_TIMEOUT_S = 300.0
# How long an attempt to read a state may take, s, and the pause after one that failed.
ATTEMPT_TIMEOUT_S = 2.0
ATTEMPT_PAUSE_S = 0.5


def await_first_state(
    engine: ContainerEngine, container: UrsimContainer, progress: Terminal
) -> None:
    """Wait until the controller in a container sends a state, and show how long that has taken.

    Args:
        engine: The container engine that runs the container.
        container: The container, which was started before.
        progress: A terminal on standard error.

    Raises:
        UrsimEnded: The container has ended.
        UrsimSilent: No state came within `START_TIMEOUT_S`.
    """
    start = time.monotonic()
    title = f"Waiting until the controller of the {container.arm} answers"
    if not progress.is_terminal:
        progress.print(f"{title} (about a minute) ...", markup=False)

    with progress.status(title) as line:
        while True:
            failure = _try_reading_state(container.host)
            if failure is None:
                return

            waited = time.monotonic() - start
            if not engine.is_running(container):
                raise _ended(engine, container)
            if waited > START_TIMEOUT_S:
                raise UrsimSilent(container.host, waited, failure)
            line.update(f"{title}: {waited:.0f} s (about a minute)")
            time.sleep(ATTEMPT_PAUSE_S)


def _ended(engine: ContainerEngine, container: UrsimContainer) -> UrsimEnded:
    """Return the error of a container that has ended, with its log if the engine can read it."""
    try:
        return UrsimEnded(engine.log(container))
    except ContainerCommandFailed as error:
        return UrsimEnded("", log_error=error)


def _try_reading_state(host: str) -> str | None:
    """Read a state by RTDE; return why that failed as a clause, or None if it succeeded."""
    try:
        with RtdeReader(host, ("timestamp",), timeout=ATTEMPT_TIMEOUT_S) as reader:
            reader.first()
    except ControllerError as error:
        return str(error).rstrip(".")
    return None


def read_version(host: str) -> str:
    """Return the version of PolyScope of a controller; "" if it does not answer."""
    try:
        with RtdeReader(host, ("timestamp",), timeout=ATTEMPT_TIMEOUT_S) as reader:
            return ".".join(map(str, reader.version[:3]))
    except ControllerError:
        return ""
