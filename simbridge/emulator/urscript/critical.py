"""A program's critical section: one thread at a time is inside, the others wait in the order in which they came."""

from __future__ import annotations

from collections import deque
from typing import Generic, TypeVar

Thread = TypeVar("Thread")


class CriticalSection(Generic[Thread]):
    """Which thread is inside, how often it entered, and who waits."""

    def __init__(self) -> None:
        self.holder: Thread | None = None
        self._entered = 0
        self._queue: deque[Thread] = deque()

    def enter(self, thread: Thread) -> bool:
        """Whether the thread is inside now; else it waits in line and has to ask again."""
        if self.holder is thread:
            self._entered += 1
            return True
        if self.holder is None and (not self._queue or self._queue[0] is thread):
            if self._queue:
                self._queue.popleft()
            self.holder, self._entered = thread, 1
            return True
        if thread not in self._queue:
            self._queue.append(thread)
        return False

    def leave(self, thread: Thread) -> bool:
        """Whether the section is free now: every time that it was entered counts."""
        if self.holder is not thread:
            return False
        self._entered -= 1
        if self._entered == 0:
            self.holder = None
        return self.holder is None

    def forget(self, thread: Thread) -> None:
        """A thread has ended, wherever it was."""
        if self.holder is thread:
            self.holder = None
        if thread in self._queue:
            self._queue.remove(thread)
