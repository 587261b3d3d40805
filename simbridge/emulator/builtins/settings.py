"""URScript's functions that set what the arm carries, and those that have nothing to act on here."""

from __future__ import annotations

from typing import Any

from simbridge.emulator.builtins.arguments import as_list, not_negative, numbers
from simbridge.emulator.builtins.functions import Functions


class SettingFunctions(Functions):
    """Tool centre point, payload, gravity; forces and free drive are accepted and have no effect."""

    def do_set_tcp(self, _thread: Any, pose: Any, name: str = "") -> None:
        self._controller.set_tcp(numbers("TCP", pose, 6))

    def do_set_payload(self, _thread: Any, m: float, cog: Any = None) -> None:
        self._state.payload = not_negative("payload", m)
        if cog is not None:
            self._state.payload_cog = numbers("centre of gravity", cog, 3)

    def do_set_target_payload(
        self, _thread: Any, m: float, cog: Any = None, inertia: Any = None, transition: float = 0.0
    ) -> None:
        self.do_set_payload(_thread, m, cog)
        if inertia is not None:
            self._state.payload_inertia = numbers("inertia", inertia, 6)

    def do_set_payload_mass(self, _thread: Any, m: float) -> None:
        self._state.payload = not_negative("payload", m)

    def do_set_payload_cog(self, _thread: Any, cog: Any) -> None:
        self._state.payload_cog = numbers("centre of gravity", cog, 3)

    def do_get_target_payload(self, _thread: Any) -> float:
        return self._state.payload

    def do_get_target_payload_cog(self, _thread: Any) -> list[float]:
        return as_list(self._state.payload_cog)

    def do_get_target_payload_inertia(self, _thread: Any) -> list[float]:
        return as_list(self._state.payload_inertia)

    def do_set_gravity(self, _thread: Any, d: Any) -> None:
        self._state.gravity = numbers("gravity", d, 3)

    # What is accepted and has no effect on an arm without forces

    def _nothing(self, _thread: Any, *_arguments: Any, **_named: Any) -> None:
        return None

    do_force_mode = do_end_force_mode = do_force_mode_set_damping = do_force_mode_set_gain_scaling = _nothing
    do_freedrive_mode = do_end_freedrive_mode = do_teach_mode = do_end_teach_mode = _nothing
    do_zero_ftsensor = do_ft_rtde_input_enable = do_enable_external_ft_sensor = _nothing

    def do_get_freedrive_status(self, _thread: Any) -> int:
        return 0
