"""The command `simbridge studio`: serves the page until Ctrl-C."""

from __future__ import annotations

import contextlib
import sys
import warnings
import webbrowser

from simbridge.browser.setup import StudioSetup
from simbridge.browser.studio import Studio
from simbridge.cli.option_flags import options_from_flags
from simbridge.planning.options import Options
from simbridge.running.signals import SignalReceived, ended_by_signals
from simbridge.sessions.options import STUDIO


@ended_by_signals()
def studio(
    scenario: str,
    *,
    backend: str,
    robot: str | None,
    solver: str,
    listen: str,
    port: int,
    no_browser: bool,
    **flags: object,
) -> int:
    """Serve the page.

    Returns:
        The exit status, 0.
    """
    options = Options(**options_from_flags({name: flags[name] for name in STUDIO}, Options))
    setup = StudioSetup.from_options(robot, solver, options, backend)

    with Studio(setup, listen=listen, port=port, scenario=scenario) as server:
        print(f"Studio: {server.url}")
        print("Ctrl-C ends it.")
        print("Whoever has this address sees the studio and may act in it.")
        sys.stdout.flush()
        if not no_browser:
            webbrowser.open(server.url)

        with contextlib.suppress(SignalReceived), warnings.catch_warnings():
            # viser's, of a page that has just left.
            warnings.filterwarnings("ignore", message="Queued a .* on a closed connection")
            server.run()
    return 0
