"""The studio's server: one loop that takes the pages' events in order and lets time pass.

Pages only pass events on; the loop alone changes anything, through the workspace, and shows the
result. What takes long is done in a thread in the background.
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
from simbridge.browser.access import Access
from simbridge.browser.address import PortInUse, check_port, is_loopback
from simbridge.browser.controlled_arm import ControlledArm
from simbridge.browser.events import BACKGROUND, NO_PAGE, PageEvent
from simbridge.browser.offers import EventRefused
from simbridge.browser.scene import look_over_panel
from simbridge.browser.setup import StudioSetup
from simbridge.browser.simulated_arm import SimulatedStudioArm
from simbridge.browser.studio_page import Page
from simbridge.browser.superseded import without_superseded
from simbridge.browser.workspace import StudioWorkspace
from simbridge.errors import InvalidParameter, SimbridgeError
from simbridge.planning.options import Options
from simbridge.planning.scenario import load_scenario
from simbridge.report.guarded_viser import GuardedViserServer
from simbridge.report.page_gate import PageGate
from simbridge.robot.pose import Array
from simbridge.scheduling import ask_for_short_slices

# The loop's period, s: a frame each. The control periods in between are simulated in one go.
FRAME_S = 1.0 / 30.0
# How often texts and plots are shown, s.
TEXT_INTERVAL_S = 1.0 / 5.0
# Simulated time that is caught up with after the loop was late, s.
MAX_CATCH_UP_S = 0.1
# How long the loop sleeps while nothing moves, unless an event comes, s.
SLEEP_S = 0.5
# How long one thread keeps the interpreter while another waits for it, s.
SWITCH_INTERVAL_S = 5e-4
# A sign that a person holds the goal is too old after this, s.
MAX_HOLD_AGE_S = 0.1
# How long a person may take to answer before a real arm moves, s.
MAX_ANSWER_S = 60.0

# Size of the goal's frame, as a fraction of the arm's reach, of which 1 m counts at most.
FRAME_SIZE = 0.3

# The control at which a page shows what failed, where that is not the event's name.
CONTROL_OF_EVENT = {"home": "start", "here": "start"}

LOG = logging.getLogger(__name__)


class Studio:
    """A studio. A context manager; `run` serves its pages until `close` is called.

    Args:
        setup: The first settings.
        listen: The page's address.
        port: Port of the page.
        scenario: What is chosen to be played.
        second_solver: The solver beside that of the setup; "" for none.

    Attributes:
        url: URL of the page. Its path is the token without which nobody sees the page or acts.
        access: Which page drives.
        workspace: What the page that drives works on; within the context.

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
        second_solver: str = "",
    ) -> None:
        check_port(listen, port)
        # Refused now, and not when it is played.
        loaded = load_scenario(scenario, setup.arm, setup.options.reading)
        if loaded.trajectory.joints is not None:
            needed = (
                "a path that the studio's solver can follow: these are recorded joint positions, "
                "which `simbridge run` plays without one"
            )
            raise InvalidParameter("scenario", scenario, needed)
        self._setup = setup
        self._scenario = scenario
        self._second_solver = second_solver
        self._listen = listen
        self._port = port
        self._gate = PageGate(any_host=not is_loopback(listen))
        host = f"[{listen}]" if ":" in listen else listen
        self.url = f"http://{host}:{port}/{self._gate.token}/"

        self.access = Access()
        # What happened in the pages and in the background, for the loop.
        self._events: queue.Queue[PageEvent] = queue.Queue()
        # The open pages, by number.
        self._pages: dict[int, Page] = {}
        # Pages that cannot be shown.
        self._broken: set[Page | None] = set()
        # Pages and controls of which a refused event was logged.
        self._logged: set[tuple[int, str]] = set()
        # What waits for its turn in the background, by control.
        self._waiting: dict[str, Future[None]] = {}
        # How many simulated arms were made.
        self._sessions = 0
        self._closed = threading.Event()
        # The thread of `serve_in_background`.
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Studio:
        with contextlib.ExitStack() as stack:
            self._work = ThreadPoolExecutor(1, thread_name_prefix="simbridge-studio")
            stack.callback(self._work.shutdown, wait=False, cancel_futures=True)
            self._folder = Path(tempfile.mkdtemp(prefix="simbridge-studio-"))
            stack.callback(shutil.rmtree, self._folder, ignore_errors=True)

            arm = None if self._setup.simulated else ControlledArm(self._setup, self._ask)
            self.workspace = StudioWorkspace(
                self._setup,
                arm,
                self._simulate,
                run_in_background=self.run_in_background,
                scenario=self._scenario,
                folder=self._folder,
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
            if self._second_solver:
                self.workspace.choose_rival(self._second_solver)
            self._server.on_client_connect(self._send_opened)
            self._server.on_client_disconnect(self._send_closed)
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._closed.set()
        # Whoever waits for an answer gets it.
        self.workspace.engagement.answers.put(False)
        # An arm that is being engaged is engaged first, and then brought to rest.
        try:
            self._work.shutdown(wait=not self._setup.simulated, cancel_futures=True)
        finally:
            self._stack.close()

    def close(self) -> None:
        """End it; from any thread."""
        self._closed.set()
        # Wakes the loop.
        self._events.put(PageEvent(NO_PAGE, "closed"))
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

    def run(self) -> None:
        """Serve the pages until `close`."""
        ask_for_short_slices()
        interval_before = sys.getswitchinterval()
        # viser's thread computes too, and would else keep the interpreter for 5 ms at a time.
        sys.setswitchinterval(SWITCH_INTERVAL_S)
        try:
            self._run_loop()
        finally:
            sys.setswitchinterval(interval_before)

    def run_in_background(
        self,
        control: str,
        task: Callable[[], Any],
        finish: Callable[[Any], None],
        fail: Callable[[Exception], None] | None = None,
        *,
        always: bool = False,
    ) -> None:
        """Do a task in the background, and then in the loop what follows.

        Args:
            control: The control at which an error is shown.
            task: Function that is called in the background.
            finish: Takes its result, in the loop.
            fail: Takes its error, in the loop; by default the workspace does.
            always: Whether it is done even if the same control asks for something else before its
                turn has come.
        """

        def work() -> None:
            try:
                follow = partial(finish, task())
            except Exception as error:  # foreign scenarios may fail in any way
                follow = partial(fail or self.workspace.fail, error)
            self._events.put(PageEvent(BACKGROUND, control, follow))

        if not always and control in self._waiting:
            # Nothing happens if it has begun.
            self._waiting[control].cancel()
        self._waiting[control] = self._work.submit(work)

    def _simulate(self, setup: StudioSetup, q: Array | None) -> SimulatedStudioArm:
        """Return a simulated arm whose session has begun, at joint positions (n,), rad."""
        self._sessions += 1
        return SimulatedStudioArm(setup, self._folder / f"session{self._sessions}", q).__enter__()

    async def _send_opened(self, client: viser.ClientHandle) -> None:
        self._events.put(PageEvent(client.client_id, "opened", client))

    async def _send_closed(self, client: viser.ClientHandle) -> None:
        self._events.put(PageEvent(client.client_id, "closed"))

    def _ask(self, facts: Facts, question: str) -> bool:
        """Ask the page that drives, and wait for its answer; no answer counts as a no.

        The thread in the background calls this.
        """
        engagement = self.workspace.engagement
        answers = engagement.answers
        # Discard answers to an earlier question.
        while not answers.empty():
            answers.get_nowait()
        # Checked only now: the answer that `__exit__` gives may have been discarded, too.
        if self._closed.is_set():
            return False

        ask = partial(engagement.ask, facts, question)
        self._events.put(PageEvent(BACKGROUND, "engage", ask))
        try:
            return answers.get(timeout=MAX_ANSWER_S)
        except queue.Empty:
            return False
        finally:
            self._events.put(PageEvent(BACKGROUND, "engage", engagement.end_question))

    def _run_loop(self) -> None:
        """Take events, let time pass and show the result, a frame at a time, until `close`."""
        now = time.monotonic()
        # When the next frame and the next texts are due, and when the last frame was, s.
        frame_due = now
        text_due = now
        last_frame = now

        while not self._closed.is_set():
            asleep = self.workspace.resting
            self._take_events(SLEEP_S if asleep else frame_due - time.monotonic())
            now = time.monotonic()
            if now < frame_due and not asleep:
                continue

            # What moves after a rest begins now.
            elapsed = FRAME_S if asleep else min(now - last_frame, MAX_CATCH_UP_S)
            try:
                self.workspace.advance(elapsed)
                self.workspace.draw()
                if now >= text_due:
                    self._show_texts()
                    text_due = max(text_due + TEXT_INTERVAL_S, now)
            except Exception as error:  # whatever fails, the server goes on
                self._report("", error)
            last_frame = now
            frame_due = max(frame_due + FRAME_S, now)

    def _report(self, control: str, error: Exception) -> None:
        """Show an error at a control; "" for none of them."""
        sentence = str(error)
        if not isinstance(error, SimbridgeError):
            sentence = f"{type(error).__name__}: {error}"
        self.workspace.view.problem[control] = sentence

    def _take_events(self, wait: float) -> None:
        """Take what the pages sent, in order.

        However many events wait, their pages are shown once, and a value that another one replaces
        is left out.

        Args:
            wait: How long to wait for the first at most, s.
        """
        events = self._waiting_events(wait)
        if not events:
            return

        count_before = self.workspace.offered_count
        for event in without_superseded(events):
            self._take(event)

        has_new_controls = self.workspace.offered_count != count_before
        for page in tuple(self._pages.values()):
            self._show_in(page, partial(self._show_state, page, offer=has_new_controls))

    def _waiting_events(self, wait: float) -> list[PageEvent]:
        """Return the events that wait; where there are none, the first that comes in time.

        Args:
            wait: How long to wait for the first at most, s.
        """
        events: list[PageEvent] = []
        with contextlib.suppress(queue.Empty):
            if wait > 0.0:
                events.append(self._events.get(timeout=wait))
            else:
                events.append(self._events.get_nowait())
            # Events that arrive meanwhile are taken the next time.
            for _ in range(self._events.qsize()):
                events.append(self._events.get_nowait())
        return events

    def _take(self, event: PageEvent) -> None:
        """Act on an event: of a page's access, of the background, or of the page that drives.

        Args:
            event: The event.
        """
        page = self._pages.get(event.page)
        if event.name in ("opened", "closed", "take control"):
            try:
                self._take_access(event, page)
            except Exception as error:  # a page that cannot be shown must not end the server
                self._report("page", error)
        elif event.name == "refused":
            self._take_refusal(event)
        elif self._is_admitted(event, page):
            self._act(event)

        # Send the page the files that the event has made.
        downloads = self.workspace.playback.downloads
        if page is not None:
            for name, content in downloads:
                page.download(name, content)
        downloads.clear()

    def _is_admitted(self, event: PageEvent, page: Page | None) -> bool:
        """Return whether an event counts; one of a page that does not drive is refused."""
        if event.page in (NO_PAGE, BACKGROUND):
            return True
        return page is not None and self.access.admits(event.page)

    def _take_refusal(self, event: PageEvent) -> None:
        """Log and show that a page sent what it is not offered.

        It is logged once for each of its controls, however often the page does so.
        """
        error: EventRefused = event.value
        if (event.page, error.control) not in self._logged:
            self._logged.add((event.page, error.control))
            LOG.warning("An event of page %d was refused. %s", event.page, error)
        if self.access.admits(event.page):
            self.access.refused += 1
            self._report(error.control, error)

    def _act(self, event: PageEvent) -> None:
        """Carry out an event, and show what fails at the control that sent it."""
        if self._is_late_hold(event):
            # The hand may have let go since: the event that says so is still to come.
            self.workspace.engagement.release()
            return

        try:
            if event.page == BACKGROUND:
                event.value()
                return
            # A sentence on what went wrong stands until something else is done.
            self.workspace.view.problem.clear()
            self.workspace.handle(event.name, event.value)
        except Exception as error:  # whatever a page sends, and whatever fails, the server goes on
            control = CONTROL_OF_EVENT.get(event.name, event.name)
            if event.name == "change":
                control = event.value[0]
            self._report(control, error)

    def _is_late_hold(self, event: PageEvent) -> bool:
        """Return whether an event is an old sign that a person holds a controller's arm."""
        if event.name not in ("drag", "hold go") or self.workspace.arms.controlled is None:
            return False
        return time.monotonic() - event.arrival > MAX_HOLD_AGE_S

    def _show_in(self, page: Page, show: Callable[[], None]) -> None:
        """Show something in a page.

        A page whose other end has broken its controls keeps the others from nothing.
        """
        try:
            show()
        except Exception as error:
            if page not in self._broken:
                self._broken.add(page)
                LOG.warning("A page cannot be shown any more: %s: %s", type(error).__name__, error)

    def _take_access(self, event: PageEvent, page: Page | None) -> None:
        """Open or close a page, or let it take control; show who drives.

        Args:
            event: Its name is "opened", "closed" or "take control".
            page: The page of the event; None if it is not open.
        """
        driver_before = self.access.driver
        if event.name == "opened":
            opened = self._make_page(event.value)
            self._pages[event.page] = opened
            self.access.open_page(event.page)
            self._show_state(opened, offer=True)
        elif event.name == "closed":
            self._forget_page(event.page)
        elif event.name == "take control" and page is not None:
            # A page that was closed meanwhile takes no control.
            self.access.take_control(event.page)

        driver = self.access.driver
        if driver != driver_before:
            self.workspace.engagement.change_driver()
        for number, shown_page in self._pages.items():
            shown_page.show_role(drives=driver == number, driver=driver)

    def _forget_page(self, number: int) -> None:
        """Forget a page that was closed."""
        page = self._pages.pop(number, None)
        self._broken.discard(page)
        self._logged = {(owner, control) for owner, control in self._logged if owner != number}
        self.access.close_page(number)

    def _make_page(self, client: viser.ClientHandle) -> Page:
        """Return the panel of a page that was opened."""
        arm = self.workspace.arm.robot
        look_over_panel(client.camera, arm)
        return Page(
            client,
            self._events.put,
            height=float(arm.placements[0][2, 3]) if arm.planar else None,
            scale=FRAME_SIZE * min(arm.arm_length, 1.0),
            joints=arm.joint_names,
            setup=self._setup,
            scenario=self.workspace.playback.scenario,
        )

    def _show_state(self, page: Page, *, offer: bool) -> None:
        """Show a page what was chosen.

        Args:
            page: The page.
            offer: Whether its controls of settings are made anew.
        """
        workspace = self.workspace
        with page.atomic():
            if offer:
                page.offer(*workspace.controls())
            page.show_values(*workspace.values)
            page.show_goal(workspace.goal, workspace.start)
            page.show_choices(
                workspace.setup.solver,
                100.0 * workspace.arms.speed,
                rival=workspace.rival,
                scenario=workspace.playback.scenario,
            )
            page.show(workspace.view)

    def _show_texts(self) -> None:
        """Describe the present instant in all pages."""
        workspace = self.workspace
        workspace.describe()
        workspace.view.refused = self.access.refused
        curves = workspace.curves
        player = workspace.playback.player

        def show(page: Page) -> None:
            with page.atomic():
                page.show(workspace.view)
                page.show_goal(workspace.goal, workspace.start)
                page.show_curves(*curves)
                if player is not None:
                    page.show_time(100.0 * player.progress)

        for page in tuple(self._pages.values()):
            self._show_in(page, partial(show, page))


def studio(  # noqa: PLR0913 (a public call, by keyword)
    scenario: str = "circle",
    *,
    backend: str = SIMULATION,
    robot: str | None = None,
    solver: str = "forward-dynamics",
    second_solver: str = "",
    options: Options | None = None,
    listen: str = "127.0.0.1",
    port: int = 8080,
) -> Studio:
    """Return a studio that serves its page in a thread of this program, as in a notebook.

    Args:
        scenario: The scenario that *Play* runs: a name, a script, or a file of samples.
        backend: "pybullet", "mujoco", "ursim" or "real"; a simulation by default.
        robot: A name or a file; the cell's, or else ur10, by default.
        solver: The name of a solver, or `"my_ik:step"` for a function in my_ik.py: a step
            `(q, target) -> q`, or a factory `(robot) -> step`.
        second_solver: A second solver on the same goal, likewise; "" for none.
        options: Options, as for a run.
        listen: The page's address.
        port: Port of the page.

    Returns:
        The studio; `url` is its page's address, which gives access to it, and `close()` ends it.

    Raises:
        PortInUse: The port is in use.
        SimbridgeError: The arm or the solver cannot be made, or the controller cannot be used.
    """
    setup = StudioSetup.from_options(
        robot, solver, options or Options(), backend, second_solver=second_solver
    )
    page = Studio(setup, listen=listen, port=port, scenario=scenario, second_solver=second_solver)
    return page.serve_in_background()
