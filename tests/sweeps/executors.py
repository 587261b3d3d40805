"""The executor of sweeps that are made in the process of a test."""

from __future__ import annotations

from concurrent.futures import Executor, Future


class InThisProcess(Executor):
    """Makes a point when it is submitted."""

    def submit(self, call, /, *arguments, **more):
        future = Future()
        future.set_result(call(*arguments, **more))
        return future
