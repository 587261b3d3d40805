"""Makes the points of a sweep on the cores of this computer (loky) or a cluster (dask.distributed).

To make a point is to plan and run it, or only to plan it. One loop over futures serves cores and
clusters. A task has several points, about half a second of work. The contents that points share are
sent to a worker only when it asks for them.
"""

from __future__ import annotations

import itertools
import math
import os
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import (
    FIRST_COMPLETED,
    BrokenExecutor,
    CancelledError,
    Executor,
    Future,
    wait,
)
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from loky import ProcessPoolExecutor

from simbridge.errors import InternalError, SimbridgeError, optional_package
from simbridge.lifeline import end_with_parent, lifeline_environment
from simbridge.sweeps.identity import made_by
from simbridge.sweeps.results import FAILED, REFUSED, Result
from simbridge.sweeps.worker import TASK_DURATION_S, WorkItem, work

# Number of tasks in flight for each worker: one that it works on, and one that waits for it.
TASKS_PER_WORKER = 2
# Largest number of points in a task.
MAX_TASK_POINTS = 1000
# Largest number of attempts at a point that was in flight when a worker died.
MAX_ATTEMPTS = 2
# Period at which the engine is asked whether results can still come, s.
RESULT_POLL_S = 2.0
# Weight of the newest task in the moving average of the time that a point takes.
NEWEST_TASK_WEIGHT = 0.5

# Longest time that a scheduler may take to answer, s.
ANSWER_TIMEOUT_S = 10.0
# Longest time that a cluster's workers may take for their first answer, s: they load simbridge.
FIRST_ANSWER_TIMEOUT_S = 60.0
# Time after a timeout for dask.distributed to give up by itself, with a reason, s.
GRACE_S = 1.0
# Largest age of the known number of a cluster's workers, s.
WORKER_COUNT_AGE_S = 2.0

# Environment variables with the number of threads that libraries of linear algebra use.
THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "NUMBA_NUM_THREADS",
)


class ClusterUnreachable(SimbridgeError, ConnectionError):
    """No scheduler answers.

    Attributes:
        address: Address of the scheduler.
        reason: Why the scheduler counts as unreachable, as a clause.
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
        identity: Identity of the point, a hash.
        order: The point's values for a worker, pickled; see `Job`.
        contents: Contents that the point shares with others, pickled, by key.
        out: The run directory to create; None to keep no run.
        refused: Why the point cannot be made, as a sentence; "" if it can.
    """

    identity: str
    order: bytes = b""
    contents: Mapping[str, bytes] = field(default_factory=dict)
    out: Path | None = None
    refused: str = ""


class Made(NamedTuple):
    """A point that was made, or that failed or was refused.

    Attributes:
        identity: Identity of the point, a hash.
        result: Outcome and figures of the point.
        attempts: Number of attempts at the point; 0 if it was refused.
    """

    identity: str
    result: Result
    attempts: int


class Cores:
    """Processes on this computer, each with one thread for linear algebra.

    Args:
        jobs: Number of processes; 0 for one for each core.

    Attributes:
        workers: Number of points that are made at a time.
    """

    def __init__(self, jobs: int = 0) -> None:
        self.workers = jobs or len(os.sched_getaffinity(0))
        # All pools of processes that were opened and not ended.
        self._pools: list[Any] = []
        # Directory for the temporary files of workers, which may be ended in the middle of a run.
        self._scratch = tempfile.TemporaryDirectory(
            prefix="simbridge-sweep-", ignore_cleanup_errors=True
        )

    def open(self) -> Executor:
        """End all executors, and return a new one of `concurrent.futures`."""
        self._end()
        return self._open_pool(self.workers)

    def open_single(self, count: int) -> list[Executor]:
        """Return executors of one process each: if one dies, the others are not affected."""
        return [self._open_pool(1) for _ in range(count)]

    def end_single(self, executors: Iterable[Executor]) -> None:
        """End executors of `open_single`, with their processes."""
        pools: list[Any] = list(executors)
        for pool in pools:
            self._pools.remove(pool)
            pool.shutdown(wait=True, kill_workers=True)

    def _open_pool(self, processes: int) -> Executor:
        """Return a new pool of processes, which end with this process."""
        environment = {
            **dict.fromkeys(THREAD_VARIABLES, "1"),
            **lifeline_environment(),
            "TMPDIR": self._scratch.name,
        }
        # A worker waits for work without a timeout, but not longer than this process lives.
        pool: Executor = ProcessPoolExecutor(
            processes, timeout=None, env=environment, initializer=end_with_parent
        )
        self._pools.append(pool)
        return pool

    def check(self) -> None:
        """Do nothing: a pool that breaks says so itself."""

    def lost(self) -> SimbridgeError:
        """Return the error that results are lost."""
        return InternalError("pool of processes", "a point was cancelled")

    def close(self, running: Iterable[Future[Any]] = ()) -> None:
        """End all points in flight, also in the middle of a run.

        Args:
            running: Futures of tasks in flight. They are not cancelled: loky prints a traceback
                for each that was cancelled before its workers are killed.
        """
        self._end()
        self._scratch.cleanup()

    def _end(self) -> None:
        """End all pools with their processes."""
        while self._pools:
            self._pools.pop().shutdown(wait=True, kill_workers=True)


class Cluster:
    """The workers of a Dask cluster, which bounds their threads for linear algebra to one.

    It has the methods of `Cores`.

    Args:
        address: Address of the scheduler.

    Raises:
        MissingPackage: dask.distributed is not installed.
        ClusterUnreachable: No scheduler answers.
        OtherVersions: A worker has other versions, so that its figures could differ.
    """

    def __init__(self, address: str) -> None:
        distributed = optional_package(
            module="distributed", package="distributed", purpose="--cluster", extra="cluster"
        )
        self._address = address
        # Number of points that the workers can make at a time.
        self._workers = 1
        # When that number was asked for, s (monotonic clock).
        self._counted_at = -math.inf

        def connect() -> Any:
            """Return a client of the scheduler."""
            return distributed.Client(address, timeout=ANSWER_TIMEOUT_S)

        try:
            # The client's own timeout has no effect on a server that accepts and never answers.
            self._client: Any = self._ask(connect, timeout=ANSWER_TIMEOUT_S)
        except ClusterUnreachable:
            raise
        except (OSError, ValueError) as error:
            raise ClusterUnreachable(address, str(error)) from None

        # Every worker, as this process, states the versions with which it would make points.
        versions_here = made_by()
        versions_by_worker = self._ask(
            lambda: self._client.run(made_by), timeout=FIRST_ANSWER_TIMEOUT_S
        )
        other_versions = set(versions_by_worker.values()) - {versions_here}
        if other_versions:
            self._client.close()
            raise OtherVersions(address, min(other_versions), versions_here)

    def _ask(self, question: Callable[[], Any], *, timeout: float) -> Any:
        """Call a function that may wait forever, in a thread, and return its answer.

        Args:
            question: Function that asks the scheduler or the workers.
            timeout: Longest time to wait for the answer, s.

        Raises:
            ClusterUnreachable: There was no answer in time.
            Exception: The function raised it.
        """
        # The thread leaves either an answer or an error.
        answers: list[Any] = []
        errors: list[Exception] = []

        def run() -> None:
            """Store the answer to the question, or the error."""
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
        """Number of points that the workers can make at a time; 1 without a worker.

        It is at most WORKER_COUNT_AGE_S old: asking the scheduler takes milliseconds.
        """
        now = time.monotonic()
        if now - self._counted_at > WORKER_COUNT_AGE_S:
            facts = self._ask(
                lambda: self._client.scheduler_info(n_workers=-1), timeout=ANSWER_TIMEOUT_S
            )
            threads = sum(worker["nthreads"] for worker in facts["workers"].values())
            self._workers = max(1, threads)
            self._counted_at = now
        return self._workers

    def open(self) -> Executor:
        """Return an executor of `concurrent.futures`."""
        executor: Executor = self._client.get_executor(pure=False, retries=0)
        return executor

    def open_single(self, count: int) -> list[Executor]:
        """Return executors whose tasks do not affect each other: Dask tells which task it lost."""
        return [self.open()] * count

    def end_single(self, executors: Iterable[Executor]) -> None:
        """Do nothing: the workers belong to the cluster."""

    def check(self) -> None:
        """Raise `lost()` if no further result can come."""
        if self._client.status != "running":
            raise self.lost()

    def lost(self) -> SimbridgeError:
        """Return the error that results are lost."""
        return ClusterUnreachable(self._address, "the connection was lost during the sweep")

    def close(self, running: Iterable[Future[Any]] = ()) -> None:
        """Cancel the tasks in flight, and leave the cluster."""
        for future in running:
            future.cancel()
        self._client.close()


# The processes or computers that make points.
Engine = Cores | Cluster


def make_points(
    tasks: Iterable[PointTask], engine: Engine, versions: str, *, count: int
) -> Iterator[Made]:
    """Make points, and yield each as it is made.

    At most TASKS_PER_WORKER tasks for each worker are in flight; no further point is drawn before
    one of them is done. If a worker dies, each point in flight is made again in a task with no
    other point; it has failed if a worker dies once more.

    Args:
        tasks: The points.
        engine: The engine that makes them; it is closed at the end.
        versions: Versions of the programs that make the sweep's figures; see `made_by`.
        count: Largest number of points; towards their end, tasks have fewer points.

    Raises:
        ClusterUnreachable: The scheduler was lost.
    """
    dispatcher = _Dispatcher(tasks, engine, versions, count)
    try:
        yield from dispatcher.make()
    finally:
        engine.close(dispatcher.running)


class _Dispatcher:
    """Hands points out to workers, several in a task, and collects their results.

    Args:
        tasks: The points.
        engine: The engine that makes them.
        versions: Versions of the programs that make the sweep's figures; see `made_by`.
        count: Largest number of points.

    Attributes:
        running: The points of each task in flight, by the future of the task.
    """

    def __init__(
        self, tasks: Iterable[PointTask], engine: Engine, versions: str, count: int
    ) -> None:
        self.running: dict[Future[Any], Sequence[PointTask]] = {}
        # Points that were not drawn yet.
        self._tasks = iter(tasks)
        # Largest number of points that were not drawn yet.
        self._undrawn = count

        self._engine = engine
        self._versions = versions
        # Executor of all tasks, except those of suspects.
        self._executor = engine.open()

        # Points that a task has returned because its time was up; they are handed out first.
        self._returned: deque[PointTask] = deque()
        # Points of tasks that were lost, each of which may have killed a worker.
        self._suspects: list[PointTask] = []
        # Whether a worker's death ended the pool of processes, and all tasks in flight with it.
        self._is_broken = False

        # Number of points that workers have made.
        self._point_count = 0
        # Moving average of the time that a point takes, s; 0 before the first.
        self._point_duration = 0.0

    def make(self) -> Iterator[Made]:
        """Make all points, and yield each as it is made."""
        while True:
            yield from self._hand_out()
            if not self.running and not self._suspects:
                return

            yield from self._collect()
            if self._suspects:
                yield from self._retry()

    def _hand_out(self) -> Iterator[Made]:
        """Submit tasks until each worker has TASKS_PER_WORKER, and yield the refused points.

        It ends earlier if all points were drawn, if a worker died, or if a task is done.
        """
        workers = self._engine.workers
        while len(self.running) < TASKS_PER_WORKER * workers and not self._suspects:
            points = self._draw_points(self._choose_task_size(workers))
            if not points:
                return

            yield from _refuse(points)
            batch = [point for point in points if not point.refused]
            if batch:
                self._start(batch)

            # Let the results be collected, and their rows written, as soon as there are any.
            if any(future.done() for future in self.running):
                return

    def _choose_task_size(self, workers: int) -> int:
        """Return the number of points for the next task: about half a second of work.

        It is smaller at the end, so that all workers end at about the same time. It is smaller at
        the beginning, too, while the time that a point takes is not well known: at most as many
        points as were made so far.
        """
        shortest_duration = TASK_DURATION_S / MAX_TASK_POINTS
        size_by_time = TASK_DURATION_S / max(self._point_duration, shortest_duration)
        size_at_end = self._undrawn / (TASKS_PER_WORKER * workers)
        return max(1, math.ceil(min(size_by_time, size_at_end, self._point_count)))

    def _draw_points(self, size: int) -> list[PointTask]:
        """Return the next points, at most `size`; none if all were drawn."""
        points = [self._returned.popleft() for _ in range(min(size, len(self._returned)))]
        new_points = list(itertools.islice(self._tasks, size - len(points)))
        self._undrawn -= len(new_points)
        return points + new_points

    def _start(self, batch: Sequence[PointTask], *, sends_contents: bool = False) -> None:
        """Submit a task; if the pool has died, its points become suspects.

        Args:
            batch: Points of the task.
            sends_contents: Whether to send the contents that the points share, too: a worker has
                asked for them.
        """
        try:
            future = self._submit(self._executor, batch, sends_contents=sends_contents)
        except BrokenExecutor:
            self._is_broken = True
            self._suspects += batch
        else:
            self.running[future] = batch

    def _submit(
        self, executor: Executor, batch: Sequence[PointTask], *, sends_contents: bool
    ) -> Future[Any]:
        """Submit a task to an executor, with or without the contents that its points share."""
        items = [WorkItem(task.order, tuple(task.contents), task.out) for task in batch]
        contents: dict[str, bytes] = {}
        if sends_contents:
            for task in batch:
                contents |= task.contents
        return executor.submit(work, items, contents, self._versions)

    def _collect(self) -> Iterator[Made]:
        """Wait for a task, and yield the points of all tasks that are done."""
        # If there are suspects, the pool may be broken, and no task would ever be done.
        timeout = 0.0 if self._suspects else RESULT_POLL_S
        wait(self.running, timeout=timeout, return_when=FIRST_COMPLETED)
        self._engine.check()

        for future in [future for future in self.running if future.done()]:
            batch = self.running.pop(future)
            outcome = self._read_outcome(future)
            if outcome is None:
                self._start(batch, sends_contents=True)
            elif isinstance(outcome, Exception):
                yield from self._lose(batch, outcome)
            else:
                self._update_pace(outcome)
                # A task whose time was up has results for its first points only.
                for task, result in zip(batch, outcome, strict=False):
                    yield Made(task.identity, result, attempts=1)
                self._returned.extend(batch[len(outcome) :])

    def _read_outcome(self, future: Future[Any]) -> list[Result] | Exception | None:
        """Return the outcome of a task that is done.

        Returns:
            The results of the task's first points; None if the worker asks for the contents that
            the points share; or the error with which the task was lost.

        Raises:
            SimbridgeError: The engine can give no more results.
        """
        try:
            results: list[Result] | None = future.result()
        except CancelledError:
            raise self._engine.lost() from None
        except Exception as error:
            # The pool broke, a cluster lost the workers, or the results could not be sent.
            return error
        return results

    def _lose(self, batch: Sequence[PointTask], error: Exception) -> Iterator[Made]:
        """Suspect the points of a task that was lost.

        If the pool is intact, the only point of a task has failed by itself, and is yielded.
        """
        if isinstance(error, BrokenExecutor):
            self._is_broken = True
        elif len(batch) == 1:
            (task,) = batch
            yield Made(task.identity, _make_failure(error), attempts=1)
            return
        self._suspects += batch

    def _update_pace(self, results: Sequence[Result]) -> None:
        """Update the average time that a point takes by the results of a task."""
        duration = sum(result.wall for result in results) / len(results)
        if self._point_count > 0:
            change = duration - self._point_duration
            duration = self._point_duration + NEWEST_TASK_WEIGHT * change
        self._point_duration = duration
        self._point_count += len(results)

    def _retry(self) -> Iterator[Made]:
        """Make each suspect again in a task of its own, and yield the suspects.

        If the worker of such a task dies, its only point is the one that kills workers.
        """
        if self._is_broken:
            # All tasks in flight were lost with the pool.
            self._suspects += itertools.chain(*self.running.values())
            self.running.clear()
        waiting = deque(self._suspects)
        self._suspects = []

        # Each task has an executor of a single process, so that a death affects no other task.
        # Executors without a task are idle; the others are busy, by the future of their task. As
        # soon as a task is done, its executor gets the next, or is replaced if its process died.
        idle = self._engine.open_single(min(len(waiting), self._engine.workers))
        busy: dict[Future[Any], Executor] = {}
        while waiting or busy:
            # Give each idle executor a suspect.
            while waiting and idle:
                batch = [waiting.popleft()]
                future, executor = self._submit_alone(idle.pop(), batch)
                busy[future] = executor
                self.running[future] = batch

            # Yield the suspects whose tasks are done.
            wait(busy, timeout=RESULT_POLL_S, return_when=FIRST_COMPLETED)
            self._engine.check()
            for future in [future for future in busy if future.done()]:
                executor = busy.pop(future)
                (task,) = self.running.pop(future)
                outcome = self._read_outcome(future)
                if isinstance(outcome, BrokenExecutor):
                    executor = self._replace(executor)
                idle.append(executor)
                yield Made(task.identity, _read_single_result(outcome), attempts=MAX_ATTEMPTS)

        # Open a new pool for the other points, if the pool was lost.
        self._engine.end_single(idle)
        if self._is_broken:
            self._executor = self._engine.open()
            self._is_broken = False

    def _submit_alone(
        self, executor: Executor, batch: Sequence[PointTask]
    ) -> tuple[Future[Any], Executor]:
        """Submit a suspect to an executor, or to a new one if its process has died meanwhile.

        Returns:
            The future of the task, and the executor that it was submitted to.
        """
        try:
            return self._submit(executor, batch, sends_contents=True), executor
        except BrokenExecutor:
            executor = self._replace(executor)
        return self._submit(executor, batch, sends_contents=True), executor

    def _replace(self, executor: Executor) -> Executor:
        """End an executor whose process died, and return a new one of a single process."""
        self._engine.end_single([executor])
        (new_executor,) = self._engine.open_single(1)
        return new_executor


def _refuse(tasks: Iterable[PointTask]) -> Iterator[Made]:
    """Yield the points that cannot be made, as refused."""
    for task in tasks:
        if task.refused:
            yield Made(task.identity, Result(REFUSED, task.refused), attempts=0)


def _read_single_result(outcome: list[Result] | Exception | None) -> Result:
    """Return the result of a point that was made alone in a task.

    Args:
        outcome: Outcome of the task: see `_Dispatcher._read_outcome`.
    """
    if isinstance(outcome, BrokenExecutor):
        return Result(FAILED, "Its worker process was killed, or crashed, twice.")
    if isinstance(outcome, Exception):
        return _make_failure(outcome)
    assert outcome is not None, "a task that is sent all contents does not ask for them"
    (result,) = outcome
    return result


def _make_failure(error: Exception) -> Result:
    """Return the result of a point whose task was lost."""
    return Result(FAILED, f"{type(error).__name__}: {error}")
