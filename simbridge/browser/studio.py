"""The studio's server: one loop that takes the pages' events in order, lets time pass, and shows the result.

Pages only pass events on; the loop alone changes anything, through the workspace. What takes long is done in a thread
beside it.
"""

from __future__ import annotations

import contextlib
import errno
import io
import queue
import shutil
import socket
import tempfile
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import Any

import viser

from simbridge.browser.access import Access
from simbridge.browser.page import Page
from simbridge.browser.setup import StudioSetup
from simbridge.browser.view import Event
from simbridge.browser.workspace import Workspace
from simbridge.errors import InvalidParameter, SimbridgeError
from simbridge.planning.options import Options

TICK = 0.008
"""The loop's period, s."""
# Frames and texts a second.
_FRAMES, _TEXTS = 30.0, 5.0
# Simulated time that is caught up with after the loop was late, s.
_MOST = 0.1
# How long the loop sleeps while nothing moves, unless an event comes, s.
_SLEEP = 0.5
_NO_PAGE = -1


class PortInUse(SimbridgeError, OSError):
    """The studio's port is in use.

    Attributes:
        address, port: Where it was to listen.
    """

    def __init__(self, address: str, port: int) -> None:
        self.address, self.port = address, port
        super().__init__(f"Port {port} of {address} is in use; choose another with --port, or end what uses it.")


def check_port(address: str, port: int) -> None:
    """Refuses a port on which somebody listens: viser would take the next one without a word.

    Raises:
        PortInUse: It is in use.
        InvalidParameter: It is no address of this computer.
    """
    with socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((address, port))
        except (OSError, OverflowError) as error:
            if isinstance(error, OSError) and error.errno in (errno.EADDRINUSE, errno.EACCES):
                raise PortInUse(address, port) from None
            raise InvalidParameter("listen", f"{address}:{port}", "an address of this computer and a port") from None


class Studio:
    """A studio in simulation. A context manager; `run` serves its pages until `close` is called.

    Args:
        setup: What it begins with.
        listen: The page's address.
        port: The page's.
        scenario: What is chosen to be played.

    Attributes:
        url: Of the page.
        access: Who may act.

    Raises:
        PortInUse: The port is in use.
        SimbridgeError: The setup makes no sense.
    """

    def __init__(
        self, setup: StudioSetup, *, listen: str = "127.0.0.1", port: int = 8080, scenario: str = "circle"
    ) -> None:
        check_port(listen, port)
        self._setup, self._scenario, self._listen, self._port = setup, scenario, listen, port
        self.url = f"http://{listen}:{port}"
        self.access = Access(token=not _loopback(listen))
        self._events: queue.Queue[Event] = queue.Queue()
        self._pages: dict[int, Page] = {}
        self._closed = threading.Event()
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Studio:
        with contextlib.ExitStack() as stack:
            self._work = ThreadPoolExecutor(1, thread_name_prefix="simbridge-studio")
            stack.callback(self._work.shutdown, wait=False, cancel_futures=True)
            folder = Path(tempfile.mkdtemp(prefix="simbridge-studio-"))
            stack.callback(shutil.rmtree, folder, ignore_errors=True)
            self.workspace = Workspace(self._setup, self._scenario, folder, self._beside)
            stack.callback(self.workspace.close)
            with contextlib.redirect_stdout(io.StringIO()):
                self._server = viser.ViserServer(self._listen, self._port, "simbridge studio", verbose=False)
            stack.callback(self._stop_server)
            self._server.gui.configure_theme(control_width="large", show_logo=False, show_share_button=False)
            self.workspace.show_in(self._server)
            self._server.on_client_connect(self._opened)
            self._server.on_client_disconnect(self._left)
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._closed.set()
        self._stack.close()

    def _stop_server(self) -> None:
        with contextlib.redirect_stdout(io.StringIO()):
            self._server.stop()

    def close(self) -> None:
        """End it; from any thread."""
        self._closed.set()
        self._events.put(Event(_NO_PAGE, "closed"))
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join()

    def serve_in_background(self) -> Studio:
        """Enter it and serve its pages in a thread, as in a notebook, until `close`."""
        ready = threading.Event()
        failure: list[BaseException] = []

        def serve() -> None:
            try:
                with self:
                    ready.set()
                    self.run()
            except BaseException as error:
                if ready.is_set():
                    # Nobody waits for it: the thread says why it ended.
                    raise
                failure.append(error)
                ready.set()

        self._thread = threading.Thread(target=serve, name="simbridge-studio", daemon=True)
        self._thread.start()
        ready.wait()
        if failure:
            raise failure[0]
        return self

    async def _opened(self, client: viser.ClientHandle) -> None:
        self._events.put(Event(client.client_id, "opened", client))

    async def _left(self, client: viser.ClientHandle) -> None:
        self._events.put(Event(client.client_id, "closed"))

    def _beside(self, name: str, facts: Any, task: Callable[[], Any]) -> None:
        def work() -> None:
            try:
                event = Event(_NO_PAGE, name, (facts, task()))
            except Exception as error:  # foreign scenarios may fail in any way
                event = Event(_NO_PAGE, "failed", (name, facts, error))
            self._events.put(event)

        self._work.submit(work)

    def run(self) -> None:
        """Serve the pages until `close`."""
        due = before = frame = text = time.monotonic()
        while not self._closed.is_set():
            asleep = self.workspace.resting
            self._take_events(_SLEEP if asleep else due - time.monotonic())
            now = time.monotonic()
            # What moves after a rest begins now.
            self.workspace.advance(TICK if asleep else min(now - before, _MOST))
            before, due = now, max(due + TICK, now)
            if now >= frame:
                self.workspace.draw()
                frame = max(frame + 1.0 / _FRAMES, now)
            if now >= text:
                self._describe()
                text = max(text + 1.0 / _TEXTS, now)

    def _take_events(self, wait: float) -> None:
        """Take what the pages sent, in order; wait for at most so long, s, for the first."""
        with contextlib.suppress(queue.Empty):
            self._take(self._events.get(timeout=wait) if wait > 0.0 else self._events.get_nowait())
            while True:
                self._take(self._events.get_nowait())

    def _take(self, event: Event) -> None:
        page = self._pages.get(event.page)
        if event.name in ("opened", "closed", "token", "take control"):
            self._take_access(event, page)
        elif event.page == _NO_PAGE or (page is not None and self.access.drives(event.page)):
            self._do(event)
            for one in self._pages.values():
                self._offer(one, controls=self.workspace.offers)
            self.workspace.offers = False
        for name, content in self.workspace.downloads:
            if page is not None:
                page.download(name, content)
        self.workspace.downloads.clear()

    def _do(self, event: Event) -> None:
        problems = self.workspace.shown.problem
        where = event.value[0] if event.name == "change" else ""
        try:
            getattr(self.workspace, f"on_{event.name.replace(' ', '_')}")(event.value)
            problems.pop(where, None)
        except Exception as error:  # whatever a page sends, and whatever fails, the server goes on
            problems[where] = str(error) if isinstance(error, SimbridgeError) else f"{type(error).__name__}: {error}"

    def _take_access(self, event: Event, page: Page | None) -> None:
        wrong = False
        if event.name == "opened":
            arm = self.workspace.arm.robot
            page = Page(event.value, self._events.put, planar=arm.planar, scale=0.3 * min(arm.reach, 1.0))
            self._pages[event.page] = page
            self.access.opened(event.page)
            self._offer(page, controls=True)
        elif event.name == "closed":
            self._pages.pop(event.page, None)
            self.access.closed(event.page)
        elif event.name == "token" and page is not None:
            wrong = not self.access.shows(event.page, event.value)
        elif page is not None:
            self.access.takes_control(event.page)
        driver = self.access.driver
        for number, one in self._pages.items():
            one.show_role(drives=driver == number, admitted=self.access.admitted(number), driver=driver)
        if wrong and page is not None:
            page.refuse_token()

    def _offer(self, page: Page, *, controls: bool) -> None:
        workspace = self.workspace
        with page.at_once():
            if controls:
                page.offer(workspace.setup.solver, *workspace.controls())
            page.show_values(dict(workspace.setup.values))
            page.show_goal(workspace.goal, workspace.start)
            page.show(workspace.shown)

    def _describe(self) -> None:
        workspace = self.workspace
        workspace.describe()
        first, second = workspace.curves
        for page in self._pages.values():
            with page.at_once():
                page.show(workspace.shown)
                page.show_curves(first, second)
                if workspace.playing is not None:
                    page.show_time(100.0 * workspace.playing.share)


def _loopback(address: str) -> bool:
    return address in ("localhost", "::1") or address.startswith("127.")


def studio(
    scenario: str = "circle",
    *,
    robot: str = "ur10",
    solver: str = "forward-dynamics",
    options: Options | None = None,
    listen: str = "127.0.0.1",
    port: int = 8080,
) -> Studio:
    """A studio that serves its page in a thread of this program, as in a notebook.

    Args:
        scenario: What *Play* runs: a name, a script, or a file of samples.
        robot: A name or a file.
        solver: A name in `SOLVERS`.
        options: As of a run.
        listen: The page's address.
        port: The page's.

    Returns:
        The studio; `url` is its page's address, and `close()` ends it.

    Raises:
        PortInUse: The port is in use.
        SimbridgeError: The arm or the solver cannot be made.
    """
    setup = StudioSetup(robot, solver, base=options or Options())
    return Studio(setup, listen=listen, port=port, scenario=scenario).serve_in_background()
