"""`simbridge studio`: serves the page until Ctrl-C."""

from __future__ import annotations

import contextlib
import sys
import webbrowser

from simbridge.browser.setup import StudioSetup
from simbridge.browser.studio import Studio
from simbridge.cli.commands import given_options
from simbridge.planning.live.options import SIMULATED
from simbridge.planning.options import Options


def studio(
    scenario: str, *, robot: str | None, solver: str, listen: str, port: int, no_browser: bool, **flags: object
) -> int:
    """Serve the page; returns the exit status, 0."""
    options = Options(**given_options({name: flags[name] for name in SIMULATED}))
    setup = StudioSetup(robot or options.robot, solver, base=options)
    with Studio(setup, listen=listen, port=port, scenario=scenario) as served:
        print(f"Studio: {served.url}\nCtrl-C ends it.")
        if served.access.token:
            print(f"Token:  {served.access.token}\nA page acts once it was entered there.")
        sys.stdout.flush()
        if not no_browser:
            webbrowser.open(served.url)
        with contextlib.suppress(KeyboardInterrupt):
            served.run()
    return 0
