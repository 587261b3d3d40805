"""Backends that only run plans: what is known of them, and who refuses them."""

from __future__ import annotations

from collections.abc import Generator

import pytest

from simbridge import backends, live
from simbridge.backends import BACKENDS, ENGINES, LIVE_BACKENDS, backend_class, is_simulated
from simbridge.backends.backend import ArmState, Backend, Capabilities
from simbridge.backends.controller_backend import ControllerBackend
from simbridge.browser.setup import StudioSetup
from simbridge.doctor.doctor import doctor
from simbridge.errors import InvalidParameter, UnknownName
from simbridge.planning.options import Options
from simbridge.robot.pose import Array


class MadeUpBackend(Backend):
    """A real arm of another maker, which only runs plans."""

    capabilities = Capabilities(simulated_time=False, effort_unit="A")
    approach_joint_speed = 1.0
    approach_tool_speed = 1.0

    def read(self) -> ArmState:
        raise NotImplementedError

    def move_to(self, q: Array) -> None:
        raise NotImplementedError

    def stream(self, setpoints: Array) -> Generator[ArmState, None, None]:
        raise NotImplementedError

    def stop(self) -> None:
        raise NotImplementedError

    def recover(self) -> None:
        raise NotImplementedError


@pytest.fixture
def made_up(monkeypatch: pytest.MonkeyPatch) -> str:
    """The name of a registered backend that has no live sessions."""
    monkeypatch.setitem(backends.BACKENDS, "made_up", f"{__name__}:MadeUpBackend")
    return "made_up"


def test_simulated_backends_are_known_by_capability(made_up: str) -> None:
    simulated = [name for name in BACKENDS if is_simulated(name)]

    assert simulated == list(ENGINES)
    assert not is_simulated("a backend of another installation")


def test_sessions_have_a_driver_for_each_live_backend() -> None:
    driven = [
        name
        for name in BACKENDS
        if name in ENGINES or issubclass(backend_class(name), ControllerBackend)
    ]

    assert list(LIVE_BACKENDS) == driven


def test_a_live_session_names_the_backends_that_have_one(made_up: str) -> None:
    with pytest.raises(InvalidParameter, match="pybullet, mujoco, ursim, real") as refusal:
        live(made_up)

    assert refusal.value.value == "made_up"


def test_a_studio_refuses_a_backend_without_sessions(made_up: str) -> None:
    with pytest.raises(InvalidParameter, match="made_up"):
        StudioSetup.from_options(None, "forward-dynamics", Options(), made_up)


def test_a_session_refuses_an_unknown_backend() -> None:
    with pytest.raises(UnknownName):
        live("no_such_backend")


def test_doctor_refuses_an_arm_without_checks(made_up: str) -> None:
    with pytest.raises(InvalidParameter, match="backend must be"):
        doctor(made_up, host="127.0.0.1")
