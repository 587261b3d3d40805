"""The keyboard of a terminal: what its keys mean.

An ordinary terminal does not report key releases, so there each press is one bounded step, and a
key that is held repeats it. A terminal with the kitty keyboard protocol reports presses, repeats
and releases (see `key_terminal`): there a held key is a velocity.
"""

from __future__ import annotations

import contextlib
import math
import sys
import time
from collections.abc import Callable, Iterator

from simbridge.teleop.device import AT_REST, NO_STEP, Device, DeviceError, Reading, Request
from simbridge.teleop.key_decoder import Key, KeyDecoder
from simbridge.teleop.key_terminal import KEYBOARD, KeyTerminal
from simbridge.teleop.options import TeleopOptions

# The axis that a key moves along or about, and its sign.
MOTION_KEYS = {
    "w": (0, 1),
    "s": (0, -1),
    "a": (1, 1),
    "d": (1, -1),
    "r": (2, 1),
    "f": (2, -1),
    "l": (3, 1),
    "j": (3, -1),
    "i": (4, 1),
    "k": (4, -1),
    "u": (5, 1),
    "o": (5, -1),
    "up": (0, 1),
    "down": (0, -1),
    "left": (1, 1),
    "right": (1, -1),
    "page up": (2, 1),
    "page down": (2, -1),
}
REQUEST_KEYS: dict[str, Request] = {
    "enter": "engage",
    "x": "disengage",
    "space": "halt",
    "q": "quit",
}
BUTTON_KEYS = frozenset("123456789")

# A held key repeats itself well within this time, s: a key of which nothing is heard so long counts
# as released.
MAX_SILENCE_S = 1.0


class Keyboard(Device):
    """The keys of a terminal.

    Args:
        receive: Returns what was typed since the last call, b"" if nothing; raises OSError when the
            terminal is closed.
        options: The steps, speeds and frame that the first screen names.
        releases: Whether the terminal reports releases of keys.
        suspend: A context manager that gives the terminal back for the time of a question.
        clock: Monotonic, s.
    """

    name = KEYBOARD
    dead_man = "the key"

    def __init__(
        self,
        receive: Callable[[], bytes],
        options: TeleopOptions,
        *,
        releases: bool,
        suspend: Callable[[], contextlib.AbstractContextManager[None]] = contextlib.nullcontext,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._receive = receive
        self._releases = releases
        self._suspend = suspend
        self._clock = clock
        self._decoder = KeyDecoder()
        # Names of the keys that are held.
        self._held: set[str] = set()
        # When a key was heard of last, s.
        self._last_key = 0.0
        # Requests that were typed while the session engaged.
        self._kept_requests: tuple[Request, ...] = ()
        self.guide = _guide(options, releases)

    @classmethod
    @contextlib.contextmanager
    def open(cls, options: TeleopOptions) -> Iterator[Keyboard]:
        """Open the keyboard of the terminal at standard input.

        The terminal is as before at the end, whatever happens.

        Raises:
            DeviceError: Standard input or output is not a terminal.
        """
        if not (sys.stdin.isatty() and sys.stderr.isatty()):
            reason = (
                "it is read from a terminal: standard input and standard error must both be one."
            )
            raise DeviceError(cls.name, reason)
        with KeyTerminal(sys.stdin.fileno(), sys.stderr.fileno()) as terminal:
            yield cls(
                terminal.receive, options, releases=terminal.releases, suspend=terminal.suspend
            )

    def read(self) -> Reading:
        keys = self._receive_keys()
        requests = (*self._kept_requests, *_requests_of(keys))
        self._kept_requests = ()
        if self._clock() - self._last_key > MAX_SILENCE_S:
            self._held.clear()

        steps = list(NO_STEP)
        if not self._releases:
            for key in keys:
                if key.name in MOTION_KEYS:
                    axis, sign = MOTION_KEYS[key.name]
                    # The newest of each axis: repeats that came in meanwhile are one step.
                    steps[axis] = sign

        axes = list(AT_REST)
        held_motions = self._held & MOTION_KEYS.keys()
        for name in held_motions:
            axis, sign = MOTION_KEYS[name]
            axes[axis] += sign

        return Reading(
            axes=tuple(axes),
            held=bool(held_motions),
            steps=tuple(steps),
            buttons=frozenset(self._held & BUTTON_KEYS),
            requests=requests,
        )

    def note_engagement(self) -> None:
        """Drop what was typed while the session engaged, except a stop."""
        keys = [key for key in self._receive_keys() if key.name != "enter"]
        self._kept_requests = _requests_of(keys)

    def suspend(self) -> contextlib.AbstractContextManager[None]:
        return self._suspend()

    def _receive_keys(self) -> list[Key]:
        """Return what was typed since the last call; keep account of what is held.

        Raises:
            KeyboardInterrupt: Ctrl-C, which a terminal with the protocol sends as a key.
        """
        keys = self._decoder.feed(self._receive())
        if keys:
            self._last_key = self._clock()
        if not self._releases:
            # A button is down for one reading.
            self._held = {key.name for key in keys if key.name in BUTTON_KEYS}

        for key in keys:
            if key.name == "ctrl+c":
                raise KeyboardInterrupt
            if key.name == "focus out":
                self._held.clear()
            elif self._releases and key.event == "release":
                # Ctrl may have been pressed meanwhile.
                self._held.discard(key.name.removeprefix("ctrl+"))
            elif self._releases:
                self._held.add(key.name)
        return keys


def _requests_of(keys: list[Key]) -> tuple[Request, ...]:
    """Return what was asked for by the presses among keys, in their order."""
    requests = []
    for key in keys:
        if key.name in REQUEST_KEYS and key.event == "press":
            requests.append(REQUEST_KEYS[key.name])
    return tuple(requests)


def _guide(options: TeleopOptions, releases: bool) -> tuple[str, ...]:
    """Return the lines of the first screen."""
    if releases:
        motion = (
            "This terminal reports key releases: a held key moves the tool, at "
            f"{options.translation_speed:g} m/s or {options.rotation_speed:g} rad/s; "
            "when it is released, the arm holds."
        )
    else:
        motion = (
            "This terminal does not report key releases: each press is one step of "
            f"{1e3 * options.step:g} mm or {math.degrees(options.step_angle):.6g} degrees."
        )
    return (
        motion,
        f"Keys, in the axes of {options.frame}:",
        "  Enter engages   x disengages   Space stops   q ends",
        "  w s  x +-   a d  y +-   r f  z +-   (or arrows and Page Up, Page Down)",
        "  l j  about x +-   i k  about y +-   u o  about z +-",
        "  1 to 9 call the function of --on-button",
    )
