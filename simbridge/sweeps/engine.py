"""Make points on the cores of this computer (loky) or on a cluster (dask.distributed).

One loop over futures serves both.
"""

from __future__ import annotations

import os
import tempfile
import threading
from collections.abc import Callable, Generator, Iterable, Iterator
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
from typing import Any, NamedTuple

from loky import ProcessPoolExecutor

from simbridge.errors import InternalError, SimbridgeError, optional_package
from simbridge.lifeline import end_with_parent, lifeline_environment
from simbridge.sweeps.identity import made_by
from simbridge.sweeps.results import FAILED, REFUSED, Result
from simbridge.sweeps.worker import work

# Points in flight for each worker: one that it makes, and those that wait for it.
POINTS_PER_WORKER = 4
# How often a point that was in flight when a worker died is tried at most.
MAX_ATTEMPTS = 2
# How often the engine is asked whether results can still come, s.
RESULT_POLL_S = 2.0

# How long a scheduler may take to answer, s.
ANSWER_TIMEOUT_S = 10.0
# Time that the workers of a cluster have for their first answer, s: they load simbridge for it.
FIRST_ANSWER_TIMEOUT_S = 60.0
# Time for dask.distributed to give up by itself, with a reason, s.
GRACE_S = 1.0

# Environment variables that say how many threads linear algebra uses.
THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "NUMBA_NUM_THREADS",
)


class ClusterUnreachable(SimbridgeError, ConnectionError):
    """No scheduler answers.

    Attributes:
        address: Where it was looked for.
        reason: What was seen.
    """

    def __init__(self, address: str, reason: str) -> None:
        self.address = address
        self.reason = reason
        super().__init__(
            f"No Dask scheduler answers at {address}: {reason}. Start one (`dask scheduler`), or "
            "omit --cluster. Completed points are kept."
        )


class OtherVersions(SimbridgeError, RuntimeError):
    """A worker of a cluster has other versions than this computer.

    Attributes:
        address: Address of the cluster's scheduler.
        theirs: The versions of the worker.
        ours: The versions of this computer.
    """

    def __init__(self, address: str, theirs: str, ours: str) -> None:
        self.address = address
        self.theirs = theirs
        self.ours = ours
        super().__init__(
            f"A worker of the cluster at {address} has different versions from this computer, so "
            f"its results could differ: {theirs} there, {ours} here. Install the same on both."
        )


@dataclass(frozen=True)
class PointTask:
    """A point to be made.

    Attributes:
        identity: Its hash.
        packed: Its job, pickled.
        out: The run directory to create, if any.
        refused: Why there is nothing to be made; "" otherwise.
    """

    identity: str
    packed: bytes
    out: Path | None = None
    refused: str = ""


class Made(NamedTuple):
    """A point that was made, or that failed.

    Attributes:
        identity: Its hash.
        result: Its outcome and figures.
        attempts: How often it was tried; 0 where there was nothing to be made.
    """

    identity: str
    result: Result
    attempts: int


class Cores:
    """Processes on this computer, each with one thread for linear algebra.

    Args:
        jobs: How many processes; 0 for one for each core.

    Attributes:
        workers: How many points are made at a time.
    """

    def __init__(self, jobs: int = 0) -> None:
        self.workers = jobs or len(os.sched_getaffinity(0))
        # The pool of processes; None while there is none.
        self._executor: Any = None
        # For the logs of workers that are ended in the middle of a run.
        self._scratch = tempfile.TemporaryDirectory(
            prefix="simbridge-sweep-", ignore_cleanup_errors=True
        )

    def open(self) -> Executor:
        """Return a new executor of `concurrent.futures`, in place of one that broke."""
        self._end()
        environment = {
            **dict.fromkeys(THREAD_VARIABLES, "1"),
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
        """Do nothing: a pool that breaks says so itself."""

    def lost(self) -> SimbridgeError:
        """Return the error that results are lost."""
        return InternalError("pool of processes", "a point was cancelled")

    def close(self, running: Iterable[Future[Result]] = ()) -> None:
        """End all points in flight, also in the middle of a run.

        Args:
            running: Futures of points in flight. They are not cancelled: loky prints a traceback
                for each that was cancelled before its workers are killed.
        """
        self._end()
        self._scratch.cleanup()

    def _end(self) -> None:
        if self._executor is not None:
            self._executor.shutdown(wait=True, kill_workers=True)
            self._executor = None


class Cluster:
    """The workers of a Dask cluster, which bounds their threads for linear algebra to one.

    It has the methods of `Cores`.

    Args:
        address: Address of the scheduler.

    Raises:
        MissingPackage: dask.distributed is not installed.
        ClusterUnreachable: No scheduler answers.
        OtherVersions: A worker's figures could differ.
    """

    def __init__(self, address: str) -> None:
        distributed = optional_package("distributed", "distributed", "--cluster", "cluster")
        self._address = address

        def connect() -> Any:
            return distributed.Client(address, timeout=ANSWER_TIMEOUT_S)

        try:
            # The client's timeout does not hold for a server that accepts and never answers.
            self._client: Any = self._ask(connect, timeout=ANSWER_TIMEOUT_S)
        except ClusterUnreachable:
            raise
        except (OSError, ValueError) as error:
            raise ClusterUnreachable(address, str(error)) from None

        answers = self._ask(lambda: self._client.run(made_by), timeout=FIRST_ANSWER_TIMEOUT_S)
        different = {versions for versions in answers.values() if versions != made_by()}
        if different:
            self._client.close()
            raise OtherVersions(address, min(different), made_by())

    def _ask(self, question: Callable[[], Any], *, timeout: float) -> Any:
        """Call a function that may wait for ever, in a thread.

        Args:
            question: Asks scheduler or workers.
            timeout: How long to wait for its answer, s.

        Returns:
            The answer.

        Raises:
            ClusterUnreachable: There was none in time.
        """
        answers: list[Any] = []
        errors: list[Exception] = []

        def run() -> None:
            try:
                answers.append(question())
            except Exception as error:
                errors.append(error)

        thread = threading.Thread(target=run, name="simbridge-cluster", daemon=True)
        thread.start()
        thread.join(timeout + GRACE_S)
        if errors:
            raise errors[0]
        if not answers:
            raise ClusterUnreachable(self._address, f"no answer within {timeout:g} s")
        return answers[0]

    @property
    def workers(self) -> int:
        """Number of points that the present workers can make at a time; 1 without a worker."""
        facts = self._ask(
            lambda: self._client.scheduler_info(n_workers=-1), timeout=ANSWER_TIMEOUT_S
        )
        threads = sum(worker["nthreads"] for worker in facts["workers"].values())
        return max(1, threads)

    def open(self) -> Executor:
        """Return an executor of `concurrent.futures`."""
        executor: Executor = self._client.get_executor(pure=False, retries=0)
        return executor

    def check(self) -> None:
        """Raise `lost()` if no further result can come."""
        if self._client.status != "running":
            raise self.lost()

    def lost(self) -> SimbridgeError:
        """Return the error that results are lost."""
        return ClusterUnreachable(self._address, "the connection was lost during the sweep")

    def close(self, running: Iterable[Future[Result]] = ()) -> None:
        """Cancel the points in flight, and leave the cluster."""
        for future in running:
            future.cancel()
        self._client.close()


# Where points are made.
Engine = Cores | Cluster


def make_points(tasks: Iterable[PointTask], engine: Engine, versions: str) -> Iterator[Made]:
    """Make points, and yield each as it is made.

    At most POINTS_PER_WORKER points for each worker are in flight; no further task is drawn before
    one of them is made. Where a pool breaks because a worker died, each point in flight runs again,
    alone, and has failed if the worker dies once more.

    Args:
        tasks: The points.
        engine: Where they are made; closed at the end.
        versions: What makes the sweep's figures; see `made_by`.

    Raises:
        ClusterUnreachable: The scheduler was lost.
    """
    waiting = iter(tasks)
    running: dict[Future[Result], PointTask] = {}
    executor = engine.open()
    try:
        while True:
            suspects = yield from _submit_tasks(
                waiting, running, executor, engine=engine, versions=versions
            )
            if not running and not suspects:
                return

            # A pool that broke has nothing to wait for.
            wait(
                running,
                timeout=0.0 if suspects else RESULT_POLL_S,
                return_when=FIRST_COMPLETED,
            )
            engine.check()
            suspects += yield from _collect(running, engine)

            # All points in flight failed with the pool: any of them may have killed the worker.
            if suspects:
                suspects += running.values()
                running.clear()
                executor = yield from _retry(suspects, engine, versions)
    finally:
        engine.close(running)


def _submit_tasks(
    waiting: Iterator[PointTask],
    running: dict[Future[Result], PointTask],
    executor: Executor,
    *,
    engine: Engine,
    versions: str,
) -> Generator[Made, None, list[PointTask]]:
    """Give the workers something to do, until the tasks are used up or the pool breaks.

    Those that are submitted are added to those in flight; those that were refused are yielded.

    Returns:
        The task at which the pool turned out to be broken, if any.
    """
    while len(running) < POINTS_PER_WORKER * engine.workers:
        task = next(waiting, None)
        if task is None:
            break
        if task.refused:
            yield Made(task.identity, Result(REFUSED, task.refused), attempts=0)
            continue
        try:
            running[_submit(executor, task, versions)] = task
        except BrokenExecutor:
            return [task]
    return []


def _submit(executor: Executor, task: PointTask, versions: str) -> Future[Result]:
    return executor.submit(work, task.packed, versions, task.out)


def _collect(
    running: dict[Future[Result], PointTask], engine: Engine
) -> Generator[Made, None, list[PointTask]]:
    """Yield the points that are done, and remove them from those in flight.

    Returns:
        The tasks whose pool broke.
    """
    broken = []
    done = [future for future in running if future.done()]
    for future in done:
        task = running.pop(future)
        result = _result_of(future, engine)
        if result is None:
            broken.append(task)
        else:
            yield Made(task.identity, result, attempts=1)
    return broken


def _retry(
    suspects: Iterable[PointTask], engine: Engine, versions: str
) -> Generator[Made, None, Executor]:
    """Make points again, one at a time, so that a worker's death shows which of them kills it.

    Returns:
        A new executor.
    """
    executor = engine.open()
    for task in suspects:
        result = _result_of(_submit(executor, task, versions), engine)
        if result is None:
            executor = engine.open()
            result = Result(FAILED, "Its worker process was killed, or crashed, twice.")
        yield Made(task.identity, result, MAX_ATTEMPTS)
    return executor


def _result_of(future: Future[Result], engine: Engine) -> Result | None:
    """Return a future's result; None where the pool broke because a worker died."""
    try:
        return future.result()
    except BrokenExecutor:
        return None
    except CancelledError:
        raise engine.lost() from None
    except Exception as error:
        # A worker of a cluster was lost with this point, or the result could not be sent.
        return Result(FAILED, f"{type(error).__name__}: {error}")
