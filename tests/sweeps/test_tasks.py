"""Points are handed out in tasks of several; what happens when a task, or its worker, is lost."""

from __future__ import annotations

from concurrent.futures import BrokenExecutor, Executor, Future

import pytest

from simbridge.sweeps import engine
from simbridge.sweeps.engine import PointTask, make_points
from simbridge.sweeps.results import Result

# Time that each point is said to take, s.
DURATION = 0.01
DEADLY = b"deadly"


class Pool(Executor):
    """Makes the points of a task at once; one of them may end it with an error.

    Args:
        error: What a deadly point ends its task with.
    """

    def __init__(self, error=None):
        self.error = error
        # The sizes of its tasks, in turn, and the keys of the contents that they were sent.
        self.sizes = []
        self.sent = []
        self.is_broken = False

    def submit(self, call, items, contents, versions):
        future = Future()
        self.sizes.append(len(items))
        self.sent.append(sorted(contents))
        if any(item.order == DEADLY for item in items):
            self.is_broken = isinstance(self.error, BrokenExecutor)
            future.set_exception(self.error)
        elif self.is_broken:
            future.set_exception(self.error)
        else:
            future.set_result(call(items, contents, versions))
        return future


class Pools:
    """An engine of two workers.

    Args:
        error: What a deadly point ends its task with.
    """

    workers = 2

    def __init__(self, error=None):
        self.error = error
        self.opened = []
        # The executors of one process that were opened, and those of them that were ended.
        self.single = []
        self.ended = []

    def open(self):
        self.opened.append(Pool(self.error))
        return self.opened[-1]

    def open_single(self, count):
        pools = [Pool(self.error) for _ in range(count)]
        self.single += pools
        return pools

    def end_single(self, executors):
        self.ended += executors

    def check(self):
        pass

    def close(self, running=()):
        pass


def answer(items, contents, versions):
    return [Result("planned", wall=DURATION) for _ in items]


@pytest.fixture(autouse=True)
def _no_work(monkeypatch):
    monkeypatch.setattr(engine, "work", answer)


def make(tasks, pools):
    """The points that were made, by their identities; each must be made once."""
    made = list(make_points(tasks, pools, "", count=len(tasks)))
    by_identity = {point.identity: point for point in made}
    assert len(by_identity) == len(made) == len(tasks)
    return by_identity


def tasks_of(count, *, deadly=None):
    orders = [DEADLY if number == deadly else b"" for number in range(count)]
    return [PointTask(f"{number}", order) for number, order in enumerate(orders)]


def test_a_task_has_half_a_second_of_points():
    pools = Pools()

    make(tasks_of(1000), pools)

    (pool,) = pools.opened
    assert max(pool.sizes) == round(engine.TASK_DURATION_S / DURATION)
    assert pool.sizes[0] == pool.sizes[-1] == 1


def test_points_that_were_not_begun_are_handed_out_again(monkeypatch):
    monkeypatch.setattr(engine, "work", lambda items, *others: answer(items[:3], *others))

    made = make(tasks_of(100), Pools())

    assert all(point.result.outcome == "planned" for point in made.values())


def test_a_refused_point_is_in_no_task():
    pools = Pools()

    made = make([PointTask("refused", refused="too fast"), *tasks_of(3)], pools)

    assert made["refused"].result == Result("refused", "too fast")
    assert sum(pools.opened[0].sizes) == 3


def test_contents_are_sent_when_they_are_asked_for(monkeypatch):
    known = set()

    def ask(items, contents, versions):
        known.update(contents)
        needed = {key for item in items for key in item.shared}
        return answer(items, contents, versions) if needed <= known else None

    monkeypatch.setattr(engine, "work", ask)
    pools = Pools()
    tasks = [PointTask(f"{number}", contents={"arm": b"ur10"}) for number in range(50)]

    make(tasks, pools)

    # The first task, and at most those in flight beside it, come back without results.
    sent = [keys for keys in pools.opened[0].sent if keys]
    assert 1 <= len(sent) <= engine.TASKS_PER_WORKER * Pools.workers


@pytest.mark.parametrize("error", [BrokenExecutor(), RuntimeError("KilledWorker")])
def test_only_the_guilty_point_of_a_task_fails(error):
    pools = Pools(error)

    made = make(tasks_of(200, deadly=150), pools)

    failed = [identity for identity, point in made.items() if point.result.outcome == "failed"]
    assert failed == ["150"]
    assert made["150"].attempts == engine.MAX_ATTEMPTS
    assert all(size == 1 for pool in pools.single for size in pool.sizes)


def test_a_point_that_breaks_two_pools_was_killed():
    made = make(tasks_of(3, deadly=0), Pools(BrokenExecutor()))

    assert "killed" in made["0"].result.reason


def test_suspects_are_retried_on_all_workers():
    pools = Pools(BrokenExecutor())

    make(tasks_of(200, deadly=150), pools)

    # One of them broke, and was replaced.
    assert len(pools.single) == Pools.workers + 1
    assert sum(bool(pool.sizes) for pool in pools.single) >= Pools.workers


def test_a_point_that_is_lost_by_itself_is_not_retried():
    pools = Pools(RuntimeError("KilledWorker"))

    made = make(tasks_of(3, deadly=0), pools)

    assert made["0"].result.reason == "RuntimeError: KilledWorker"
    assert made["0"].attempts == 1
    assert not pools.single


@pytest.mark.parametrize("error", [BrokenExecutor(), OSError("no space left on device")])
def test_every_process_of_a_retry_is_ended(error):
    pools = Pools(error)

    make(tasks_of(200, deadly=150), pools)

    assert pools.single
    assert {id(pool) for pool in pools.ended} == {id(pool) for pool in pools.single}
    assert len(pools.ended) == len(pools.single)


def test_a_process_that_dies_after_its_answer_costs_no_point():
    class Exhausted(Pool):
        """Makes one task, and is broken afterwards."""

        def submit(self, call, items, contents, versions):
            if self.sizes:
                raise BrokenExecutor
            return super().submit(call, items, contents, versions)

    class ExhaustedPools(Pools):
        def open_single(self, count):
            pools = [Exhausted(self.error) for _ in range(count)]
            self.single += pools
            return pools

    made = make(tasks_of(200, deadly=150), ExhaustedPools(BrokenExecutor()))

    failed = [identity for identity, point in made.items() if point.result.outcome == "failed"]
    assert failed == ["150"]
