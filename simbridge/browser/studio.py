"""The studio's server: one loop that takes the pages' events in order, lets time pass, and shows the result.

Pages only pass events on; the loop alone changes anything, through the workspace. What takes long is done in a thread
beside it.
"""

from __future__ import annotations

import contextlib
import logging
import queue
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any

import viser

from simbridge.backends import SIMULATION
from simbridge.backends.backend import Facts
from simbridge.browser.arms import ControlledArm, Simulation
from simbridge.browser.offers import EventRefused
from simbridge.browser.scene import look_over_panel
from simbridge.browser.setup import StudioSetup
from simbridge.browser.studio_page import Page
from simbridge.browser.superseded import without_superseded
from simbridge.browser.view import (
    BESIDE,
    NO_PAGE,
    Access,
    Event,
    PortInUse,
    check_port,
    on_loopback,
)
from simbridge.browser.workspace import Workspace
from simbridge.errors import SimbridgeError
from simbridge.planning.options import Options
from simbridge.planning.scenario import load_scenario
from simbridge.report.guarded_viser import GuardedViserServer
from simbridge.report.page_gate import PageGate
from simbridge.robot.pose import Array
from simbridge.scheduling import ask_for_short_slices

TICK = 1.0 / 30.0
"""The loop's period, s: a frame each. The control periods in between are simulated in one go."""
# Texts a second.
_TEXTS = 5.0
# Simulated time that is caught up with after the loop was late, s.
_MOST = 0.1
# How long the loop sleeps while nothing moves, unless an event comes, s.
_SLEEP = 0.5
# How long one thread keeps the interpreter while another waits for it, s.
_SWITCH = 5e-4
_LOG = logging.getLogger(__name__)
# A sign that a person holds the goal is too old after this, s.
_FRESH = 0.1
# At which control a page shows what failed, where that is not the event's name.
_CONTROLS = {"home": "start", "here": "start"}
# For an answer before a real arm moves, s.
_PATIENCE = 60.0


class Studio:
    """A studio. A context manager; `run` serves its pages until `close` is called.

    Args:
        setup: What it begins with.
        listen: The page's address.
        port: The page's.
        scenario: What is chosen to be played.

    Attributes:
        url: Of the page. Its path is the token without which nobody sees the page or acts.
        access: Which page drives.

    Raises:
        PortInUse: The port is in use.
        SimbridgeError: The setup makes no sense, or there is no such scenario.
    """

    def __init__(
        self,
        setup: StudioSetup,
        *,
        listen: str = "127.0.0.1",
        port: int = 8080,
        scenario: str = "circle",
    ) -> None:
        check_port(listen, port)
        # Refused now, and not when it is played.
        load_scenario(scenario, setup.arm, setup.options.reading)
        self._setup, self._scenario, self._listen, self._port = setup, scenario, listen, port
        self._gate = PageGate(any_host=not on_loopback(listen))
        host = f"[{listen}]" if ":" in listen else listen
        self.url = f"http://{host}:{port}/{self._gate.token}/"
        self.access = Access()
        self._events: queue.Queue[Event] = queue.Queue()
        self._pages: dict[int, Page] = {}
        # Pages that cannot be shown, and the pages and controls of which a refused event was logged.
        self._broken: set[Page | None] = set()
        self._logged: set[tuple[int, str]] = set()
        # What waits for its turn beside the loop, by control.
        self._waiting: dict[str, Future[None]] = {}
        self._sessions = 0
        self._closed = threading.Event()
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Studio:
        with contextlib.ExitStack() as stack:
            self._work = ThreadPoolExecutor(1, thread_name_prefix="simbridge-studio")
            stack.callback(self._work.shutdown, wait=False, cancel_futures=True)
            self._folder = Path(tempfile.mkdtemp(prefix="simbridge-studio-"))
            stack.callback(shutil.rmtree, self._folder, ignore_errors=True)
            arm = None if self._setup.simulated else ControlledArm(self._setup, self._ask)
            self.workspace = Workspace(
                self._setup, arm, self._simulate, self.beside, self._scenario, self._folder
            )
            stack.callback(self.workspace.close)
            self._server = GuardedViserServer(
                self._gate, self._listen, self._port, "simbridge studio"
            )
            stack.callback(self._server.stop)
            if self._server.get_port() != self._port:
                # Somebody took it meanwhile.
                raise PortInUse(self._listen, self._port)
            self.workspace.show_in(self._server)
            self._server.on_client_connect(self._opened)
            self._server.on_client_disconnect(self._left)
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._closed.set()
        self.workspace.answers.put(False)
        # An arm that is being engaged is engaged first, and then brought to rest.
        try:
            self._work.shutdown(wait=not self._setup.simulated, cancel_futures=True)
        finally:
            self._stack.close()

    def _simulate(self, setup: StudioSetup, q: Array | None) -> Simulation:
        self._sessions += 1
        return Simulation(setup, self._folder / f"session{self._sessions}", q).__enter__()

    def close(self) -> None:
        """End it; from any thread."""
        self._closed.set()
        self._events.put(Event(NO_PAGE, "closed"))
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join()

    def serve_in_background(self) -> Studio:
        """Enter it and serve its pages in a thread, as in a notebook, until `close`."""
        ready: Future[None] = Future()

        def serve() -> None:
            try:
                with self:
                    ready.set_result(None)
                    self.run()
            except BaseException as error:
                if ready.done():
                    # Nobody waits for it: the thread says why it ended.
                    raise
                ready.set_exception(error)

        self._thread = threading.Thread(target=serve, name="simbridge-studio", daemon=True)
        self._thread.start()
        ready.result()
        return self

    async def _opened(self, client: viser.ClientHandle) -> None:
        self._events.put(Event(client.client_id, "opened", client))

    async def _left(self, client: viser.ClientHandle) -> None:
        self._events.put(Event(client.client_id, "closed"))

    def beside(
        self,
        control: str,
        task: Callable[[], Any],
        then: Callable[[Any], None],
        failed: Callable[[Exception], None] | None = None,
        *,
        each: bool = False,
    ) -> None:
        """Do something beside the loop, and then in the loop what follows with its result, or with its error.

        Args:
            control: At which an error is shown.
            task: What is done beside the loop.
            then: Takes its result.
            failed: Takes its error; the workspace's by default.
            each: Whether it is done even if the same control asks for something else before its turn has come.
        """

        def work() -> None:
            try:
                event = Event(BESIDE, control, partial(then, task()))
            except Exception as error:  # foreign scenarios may fail in any way
                event = Event(BESIDE, control, partial(failed or self.workspace.failed, error))
            self._events.put(event)

        if not each and control in self._waiting:
            # Nothing happens if it has begun.
            self._waiting[control].cancel()
        self._waiting[control] = self._work.submit(work)

    def _ask(self, facts: Facts, question: str) -> bool:
        """Ask the driving page; beside the loop. Without an answer it is a no."""
        answers = self.workspace.answers
        while not answers.empty():
            # Of an earlier question.
            answers.get_nowait()
        if self._closed.is_set():
            return False
        self._events.put(
            Event(BESIDE, "engage", partial(self.workspace.show_question, facts, question))
        )
        try:
            return answers.get(timeout=_PATIENCE)
        except queue.Empty:
            return False
        finally:
            self._events.put(Event(BESIDE, "engage", self.workspace.show_question))

    def run(self) -> None:
        """Serve the pages until `close`."""
        ask_for_short_slices()
        before = sys.getswitchinterval()
        # viser's thread computes too, and would else keep the interpreter for 5 ms at a time.
        sys.setswitchinterval(_SWITCH)
        try:
            self._run()
        finally:
            sys.setswitchinterval(before)

    def _run(self) -> None:
        due = before = text = time.monotonic()
        while not self._closed.is_set():
            asleep = self.workspace.resting
            self._take_events(_SLEEP if asleep else due - time.monotonic())
            now = time.monotonic()
            if now < due and not asleep:
                continue
            try:
                # What moves after a rest begins now.
                self.workspace.advance(TICK if asleep else min(now - before, _MOST))
                self.workspace.draw()
                if now >= text:
                    self._describe()
                    text = max(text + 1.0 / _TEXTS, now)
            except Exception as error:  # whatever fails, the server goes on
                self._say("", error)
            before, due = now, max(due + TICK, now)

    def _say(self, where: str, error: Exception) -> None:
        words = (
            str(error) if isinstance(error, SimbridgeError) else f"{type(error).__name__}: {error}"
        )
        self.workspace.shown.problem[where] = words

    def _take_events(self, wait: float) -> None:
        """Take what the pages sent, in order; wait for at most so long, s, for the first.

        However many events wait, their pages are shown once, and a value that another one replaces is left out.
        """
        events = self._waiting_events(wait)
        if not events:
            return

        count_before = self.workspace.offered_count
        for event in without_superseded(events):
            self._take(event)

        new_controls = self.workspace.offered_count != count_before
        for page in tuple(self._pages.values()):
            self._show_in(page, partial(self._offer, page, controls=new_controls))

    def _waiting_events(self, wait: float) -> list[Event]:
        """The events that wait; where there are none, the first that comes within so long, s."""
        events: list[Event] = []
        with contextlib.suppress(queue.Empty):
            events.append(
                self._events.get(timeout=wait) if wait > 0.0 else self._events.get_nowait()
            )
            # Those that come meanwhile are taken the next time.
            for _ in range(self._events.qsize()):
                events.append(self._events.get_nowait())
        return events

    def _take(self, event: Event) -> None:
        """Take one event: of a page's access, of what was done beside the loop, or of the page that drives."""
        page = self._pages.get(event.page)
        if event.name in ("opened", "closed", "take control"):
            try:
                self._take_access(event, page)
            except Exception as error:  # a page that cannot be shown must not end the server
                self._say("page", error)
        elif event.name == "refused":
            self._log_refusal(event)
            if self.access.drives(event.page):
                self.access.refused += 1
                self._say(event.value.control, event.value)
        elif event.page in (NO_PAGE, BESIDE) or (
            page is not None and self.access.drives(event.page)
        ):
            late = time.monotonic() - event.at > _FRESH and self.workspace.controlled is not None
            if event.name in ("drag", "hold go") and late:
                # The hand may have let go since; that it did comes next.
                self.workspace.on_release(None)
            else:
                self._do(event)

        downloads = self.workspace.playback.downloads
        for name, content in downloads:
            if page is not None:
                page.download(name, content)
        downloads.clear()

    def _log_refusal(self, event: Event) -> None:
        """Log that a page sent what it is not offered: once for each of its controls, however often it does so."""
        error: EventRefused = event.value
        if (event.page, error.control) not in self._logged:
            self._logged.add((event.page, error.control))
            _LOG.warning("An event of page %d was refused. %s", event.page, error)

    def _show_in(self, page: Page, show: Callable[[], None]) -> None:
        """Show something in a page. One whose other end has broken its controls keeps the others from nothing."""
        try:
            show()
        except Exception as error:
            if page not in self._broken:
                self._broken.add(page)
                _LOG.warning("A page cannot be shown any more: %s: %s", type(error).__name__, error)

    def _do(self, event: Event) -> None:
        name, workspace = event.name, self.workspace
        try:
            if event.page == BESIDE:
                event.value()
                return
            # A sentence on what went wrong stands until something else is done.
            workspace.shown.problem.clear()
            method = f"on_{name.replace(' ', '_')}"
            (getattr(workspace, method, None) or getattr(workspace.playback, method))(event.value)
        except Exception as error:  # whatever a page sends, and whatever fails, the server goes on
            control = event.value[0] if name == "change" else _CONTROLS.get(name, name)
            self._say(control, error)

    def _take_access(self, event: Event, page: Page | None) -> None:
        before = self.access.driver
        if event.name == "opened":
            self._pages[event.page] = self._page(event.value)
            self.access.opened(event.page)
            self._offer(self._pages[event.page], controls=True)
        elif event.name == "closed":
            self._forget(event.page)
        elif page is not None:
            self.access.takes_control(event.page)
        driver = self.access.driver
        if driver != before:
            self.workspace.on_left(None)
        for number, one in self._pages.items():
            one.show_role(drives=driver == number, driver=driver)

    def _forget(self, number: int) -> None:
        """A page was closed."""
        page = self._pages.pop(number, None)
        self._broken.discard(page)
        self._logged = {(owner, control) for owner, control in self._logged if owner != number}
        self.access.closed(number)

    def _page(self, client: viser.ClientHandle) -> Page:
        arm = self.workspace.arm.robot
        look_over_panel(client.camera, arm)
        return Page(
            client,
            self._events.put,
            height=float(arm.placements[0][2, 3]) if arm.planar else None,
            scale=0.3 * min(arm.reach, 1.0),
            joints=arm.joint_names,
            controlled=self.workspace.controlled is not None,
            scenario=self.workspace.playback.scenario,
        )

    def _offer(self, page: Page, *, controls: bool) -> None:
        workspace = self.workspace
        with page.at_once():
            if controls:
                page.offer(*workspace.controls())
            page.show_values(*workspace.values)
            page.show_goal(workspace.goal, workspace.start)
            solver, share = workspace.setup.solver, workspace.share
            page.show_choices(solver, 100.0 * share, workspace.rival, workspace.playback.scenario)
            page.show(workspace.shown)

    def _describe(self) -> None:
        workspace = self.workspace
        workspace.describe()
        workspace.shown.refused = self.access.refused
        curves, player = workspace.curves, workspace.playback.player

        def show(page: Page) -> None:
            with page.at_once():
                page.show(workspace.shown)
                page.show_goal(workspace.goal, workspace.start)
                page.show_curves(*curves)
                if player is not None:
                    page.show_time(100.0 * player.share)

        for page in tuple(self._pages.values()):
            self._show_in(page, partial(show, page))


def studio(
    scenario: str = "circle",
    *,
    backend: str = SIMULATION,
    robot: str | None = None,
    solver: str = "forward-dynamics",
    options: Options | None = None,
    listen: str = "127.0.0.1",
    port: int = 8080,
) -> Studio:
    """A studio that serves its page in a thread of this program, as in a notebook.

    Args:
        scenario: What *Play* runs: a name, a script, or a file of samples.
        backend: A name in `BACKENDS`.
        robot: A name or a file; the cell's, or else ur10, by default.
        solver: A name in `SOLVERS`.
        options: As of a run.
        listen: The page's address.
        port: The page's.

    Returns:
        The studio; `url` is its page's address, which gives access to it, and `close()` ends it.

    Raises:
        PortInUse: The port is in use.
        SimbridgeError: The arm or the solver cannot be made, or the controller cannot be used.
    """
    setup = StudioSetup.of(robot, solver, options or Options(), backend)
    return Studio(setup, listen=listen, port=port, scenario=scenario).serve_in_background()
