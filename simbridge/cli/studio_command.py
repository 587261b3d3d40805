"""The command `simbridge studio`: serves the page until Ctrl-C."""

from __future__ import annotations

import contextlib
import sys
import warnings
import webbrowser

from simbridge.browser.setup import StudioSetup
from simbridge.browser.studio import Studio
from simbridge.cli.flags import StudioFlags
from simbridge.cli.option_flags import options_from_flags
from simbridge.planning.options import Options
from simbridge.running.signals import SignalReceived, end_on_signals
from simbridge.sessions.options import STUDIO


@end_on_signals()
def studio(flags: StudioFlags) -> int:
    """Serve the page until Ctrl-C.

    Returns:
        The exit status, 0.
    """
    values = vars(flags)
    options = Options(**options_from_flags({name: values[name] for name in STUDIO}, Options))
    setup = StudioSetup.from_options(
        flags.robot, flags.solver, options, flags.backend, second_solver=flags.second_solver
    )

    studio_server = Studio(
        setup,
        listen=flags.listen,
        port=flags.port,
        scenario=flags.scenario,
        second_solver=flags.second_solver,
    )
    with studio_server as server:
        print(f"Studio: {server.url}")
        print("Press Ctrl-C to stop.")
        print("Anyone with this address can see the studio and control it.")
        sys.stdout.flush()
        if not flags.no_browser:
            webbrowser.open(server.url)

        with contextlib.suppress(SignalReceived), warnings.catch_warnings():
            # viser's, of a page that has just left.
            warnings.filterwarnings("ignore", message="Queued a .* on a closed connection")
            server.run()
    return 0
