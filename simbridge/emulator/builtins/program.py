"""URScript's functions by which a program speaks to people, and is watched."""

from __future__ import annotations

from typing import Any

from simbridge.emulator.builtins.arguments import Wait
from simbridge.emulator.builtins.functions import Functions
from simbridge.emulator.urscript.values import to_text


class ProgramFunctions(Functions):
    """Messages, popups, the watchdog, a protective stop."""

    def do_rtde_set_watchdog(
        self, _thread: Any, variable_name: str, min_frequency: float, action: str = "pause"
    ) -> None:
        self._controller.watch(str(variable_name), float(min_frequency), str(action))

    def do_textmsg(self, _thread: Any, s1: Any, s2: Any = "") -> None:
        self._controller.on_message("text", to_text(s1) + to_text(s2), 0)

    def do_popup(
        self,
        _thread: Any,
        s: Any,
        title: str = "Popup",
        warning: bool = False,
        error: bool = False,
        blocking: bool = False,
    ) -> Wait:
        self._controller.popup(str(s))
        while blocking and self._controller.popup_text:
            yield

    def do_protective_stop(self, _thread: Any) -> Wait:
        self._controller.protective_stop("the program asked for it")
        yield
