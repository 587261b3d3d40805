"""One loop over futures, for the cores of this computer (loky) and for a cluster (dask.distributed)."""

from __future__ import annotations

import os
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import (
    FIRST_COMPLETED,
    BrokenExecutor,
    CancelledError,
    Executor,
    Future,
    wait,
)
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from loky import ProcessPoolExecutor

from simbridge.errors import InternalError, SimbridgeError, optional_package
from simbridge.lifeline import end_with_parent, lifeline_environment
from simbridge.sweeps.job import made_by, work
from simbridge.sweeps.results import FAILED, REFUSED, Result

AHEAD = 4
"""Points that are under way for each worker: one that it makes, and those that wait for it."""
PATIENCE = 10.0
"""How long a scheduler may take to answer, s."""
WORKER_PATIENCE = 60.0
"""Time that the workers of a cluster have for their first answer, s: they load simbridge for it."""
LOOK = 2.0
"""How often it is looked whether results can still come, s."""
TWICE = 2
"""How often a point that was in flight when a worker died is tried at most."""
# For dask.distributed to give up by itself, with a reason of its own, s.
_GRACE = 1.0
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")


class ClusterUnreachable(SimbridgeError, ConnectionError):
    """No scheduler answers at an address; reason: what was seen."""

    def __init__(self, address: str, reason: str) -> None:
        self.address, self.reason = address, reason
        super().__init__(
            f"No Dask scheduler answers at {address}: {reason}. Start one (`dask scheduler`), or leave out --cluster. "
            "Completed points are kept."
        )


class OtherVersions(SimbridgeError, RuntimeError):
    """A worker of a cluster (its scheduler's address) has other versions (theirs) than this computer (ours)."""

    def __init__(self, address: str, theirs: str, ours: str) -> None:
        self.address, self.theirs, self.ours = address, theirs, ours
        super().__init__(
            f"A worker of the cluster at {address} has other versions than this computer, so that its figures could "
            f"differ: {theirs} there, {ours} here. Install the same on both."
        )


@dataclass(frozen=True)
class Task:
    """A point to be made.

    Attributes:
        identity: Its hash.
        packed: Its job.
        out: The run directory to create, if any.
        refused: Why there is nothing to be made; "" otherwise.
    """

    identity: str
    packed: bytes
    out: Path | None = None
    refused: str = ""


class Cores:
    """Processes on this computer, each with one thread for linear algebra.

    Args:
        jobs: How many processes; 0 for one for each core.

    Attributes:
        workers: How many points are made at a time.
    """

    def __init__(self, jobs: int = 0) -> None:
        self.workers = jobs or len(os.sched_getaffinity(0))
        self._executor: Any = None
        # A worker that is ended in the middle of a run leaves its log.
        self._scratch = tempfile.TemporaryDirectory(
            prefix="simbridge-sweep-", ignore_cleanup_errors=True
        )

    def open(self) -> Executor:
        """An executor of `concurrent.futures`, anew where the last one broke."""
        self._end()
        environment = {
            **dict.fromkeys(_THREADS, "1"),
            **lifeline_environment(),
            "TMPDIR": self._scratch.name,
        }
        # A worker waits for work without end (no timeout), but not longer than this process lives.
        self._executor = ProcessPoolExecutor(
            self.workers, timeout=None, env=environment, initializer=end_with_parent
        )
        executor: Executor = self._executor
        return executor

    def check(self) -> None:
        """A pool that breaks says so."""

    def lost(self) -> SimbridgeError:
        """The error that results are lost."""
        return InternalError("pool of processes", "a point was cancelled")

    def close(self, running: Iterable[Future[Result]] = ()) -> None:
        """End all that is under way, also in the middle of a point."""
        # Loky prints a traceback for each future that was cancelled before its workers are killed.
        self._end()
        self._scratch.cleanup()

    def _end(self) -> None:
        if self._executor is not None:
            self._executor.shutdown(wait=True, kill_workers=True)
            self._executor = None


class Cluster:
    """The workers of a Dask cluster, which bounds their threads for linear algebra to one. Methods: see `Cores`.

    Args:
        address: Of the scheduler.

    Raises:
        MissingPackage: dask.distributed is not installed.
        ClusterUnreachable: No scheduler answers.
        OtherVersions: A worker's figures could differ.
    """

    def __init__(self, address: str) -> None:
        distributed = optional_package("distributed", "distributed", "--cluster", "cluster")
        self._address = address
        try:
            # Its own limit does not hold for a server that takes the connection and says nothing.
            self._client: Any = self._within(
                PATIENCE, lambda: distributed.Client(address, timeout=PATIENCE)
            )
        except ClusterUnreachable:
            raise
        except (OSError, ValueError) as error:
            raise ClusterUnreachable(address, str(error)) from None
        answers = self._within(WORKER_PATIENCE, lambda: self._client.run(made_by))
        others = {made for made in answers.values() if made != made_by()}
        if others:
            self._client.close()
            raise OtherVersions(address, min(others), made_by())

    def _within(self, seconds: float, ask: Callable[[], Any]) -> Any:
        """The answer to a question, which is asked in a thread of its own: it may wait for ever.

        Raises:
            ClusterUnreachable: There was none in time.
        """
        answers: list[Any] = []
        errors: list[Exception] = []

        def run() -> None:
            try:
                answers.append(ask())
            except Exception as error:
                errors.append(error)

        thread = threading.Thread(target=run, name="simbridge-cluster", daemon=True)
        thread.start()
        thread.join(seconds + _GRACE)
        if errors:
            raise errors[0]
        if not answers:
            raise ClusterUnreachable(self._address, f"there was no answer within {seconds:g} s")
        return answers[0]

    @property
    def workers(self) -> int:
        """How many points the workers that there are now can make at a time; 1 while there is none."""
        facts = self._within(PATIENCE, lambda: self._client.scheduler_info(n_workers=-1))
        known = facts["workers"].values()
        return max(1, sum(worker["nthreads"] for worker in known))

    def open(self) -> Executor:
        executor: Executor = self._client.get_executor(pure=False, retries=0)
        return executor

    def check(self) -> None:
        """Raises `lost()` where no result can come any more."""
        if self._client.status != "running":
            raise self.lost()

    def lost(self) -> SimbridgeError:
        return ClusterUnreachable(
            self._address, "the connection was lost in the middle of the sweep"
        )

    def close(self, running: Iterable[Future[Result]] = ()) -> None:
        for future in running:
            future.cancel()
        self._client.close()


Engine = Cores | Cluster
"""Where points are made."""


def results(
    tasks: Iterable[Task], engine: Engine, versions: str, behind: int = AHEAD
) -> Iterator[tuple[str, Result, int]]:
    """Make points, and yield each one's identity, its result and how often it was tried, as they come.

    For each worker at most `behind` points are under way; no further task is taken before one of them is made. Where a
    pool breaks because a worker died, each point that was under way runs again, alone, and has failed if the worker
    dies once more.

    Raises:
        ClusterUnreachable: The scheduler was lost.
    """
    waiting, running = iter(tasks), dict[Future[Result], Task]()
    executor = engine.open()
    try:
        while True:
            suspects = []
            while (
                len(running) < behind * engine.workers and (task := next(waiting, None)) is not None
            ):
                if task.refused:
                    yield task.identity, Result(REFUSED, task.refused), 0
                    continue
                try:
                    running[executor.submit(work, task.packed, versions, task.out)] = task
                except BrokenExecutor:
                    suspects.append(task)
                    break
            if not running and not suspects:
                break
            wait(running, timeout=0.0 if suspects else LOOK, return_when=FIRST_COMPLETED)
            engine.check()
            for future in [future for future in running if future.done()]:
                task, result = running.pop(future), _result_of(future, engine)
                if result is None:
                    suspects.append(task)
                else:
                    yield task.identity, result, 1
            if suspects:
                # All that was under way has failed with it.
                suspects += running.values()
                running.clear()
                executor = engine.open()
            for task in suspects:
                if (
                    result := _result_of(
                        executor.submit(work, task.packed, versions, task.out), engine
                    )
                ) is None:
                    executor = engine.open()
                    result = Result(FAILED, "Its worker was killed, or died, twice.")
                yield task.identity, result, TWICE
    finally:
        engine.close(running)


def _result_of(future: Future[Result], engine: Engine) -> Result | None:
    """A future's result; None where the pool broke because a worker died."""
    try:
        return future.result()
    except BrokenExecutor:
        return None
    except CancelledError:
        raise engine.lost() from None
    except (
        Exception
    ) as error:  # a worker of a cluster was lost with this point, or the result could not be sent
        return Result(FAILED, f"{type(error).__name__}: {error}")
