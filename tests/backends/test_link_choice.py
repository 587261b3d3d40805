"""The link to a controller: chosen, or the best that is possible."""

from __future__ import annotations

from dataclasses import replace

import pytest

from simbridge.backends import link_choice
from simbridge.backends.link_choice import choose_link
from simbridge.errors import MissingPackage
from simbridge.ur.errors import ConnectionLost, UnsupportedController
from tests.backends.controller_facts import facts_with_state

E_SERIES = facts_with_state(version=(5, 12, 6))
CB3 = facts_with_state(version=(3, 15, 8))
POLYSCOPE_X = facts_with_state(version=(10, 12, 0))
CLOSED = ConnectionLost(E_SERIES.host, 30003, "Connection refused", was_connected=False)
WITHOUT_REALTIME = replace(E_SERIES, realtime_error=CLOSED)
POLYSCOPE_X_WITHOUT_REALTIME = replace(POLYSCOPE_X, realtime_error=CLOSED)


def install(monkeypatch, *, installed):
    """Let ur_rtde seem to be installed or not."""
    monkeypatch.setattr(link_choice.util, "find_spec", lambda _name: installed or None)


@pytest.mark.parametrize("facts", [E_SERIES, CB3])
def test_ur_rtde_is_the_default_where_it_is_possible(facts, monkeypatch, recwarn):
    install(monkeypatch, installed=True)

    assert choose_link(facts, None) == "ur_rtde"
    assert not recwarn.list


def test_without_ur_rtde_the_run_says_which_link_it_has(monkeypatch):
    install(monkeypatch, installed=False)

    with pytest.warns(UserWarning, match=r"\(--link rtde\): ur_rtde is not installed\."):
        link = choose_link(E_SERIES, None)

    assert link == "rtde"


def test_on_polyscope_x_the_run_says_which_link_it_has():
    with pytest.warns(UserWarning, match="PolyScope X does not have"):
        link = choose_link(POLYSCOPE_X, None)

    assert link == "rtde"


@pytest.mark.parametrize("facts", [E_SERIES, CB3, POLYSCOPE_X, WITHOUT_REALTIME])
@pytest.mark.parametrize("installed", [True, False])
def test_a_chosen_own_link_needs_no_words(facts, installed, monkeypatch, recwarn):
    install(monkeypatch, installed=installed)

    assert choose_link(facts, "rtde") == "rtde"
    assert not recwarn.list


def test_without_port_30003_the_run_says_which_link_it_has(monkeypatch):
    install(monkeypatch, installed=True)

    with pytest.warns(UserWarning, match="port 30003, which does not answer"):
        link = choose_link(WITHOUT_REALTIME, None)

    assert link == "rtde"


def test_a_chosen_ur_rtde_needs_port_30003(monkeypatch):
    install(monkeypatch, installed=True)

    with pytest.raises(ConnectionLost) as refusal:
        choose_link(WITHOUT_REALTIME, "ur_rtde")

    assert refusal.value.port == 30003


def test_a_chosen_ur_rtde_that_is_missing_is_refused(monkeypatch):
    install(monkeypatch, installed=False)

    with pytest.raises(MissingPackage) as refusal:
        choose_link(E_SERIES, "ur_rtde")

    assert refusal.value.package == "ur-rtde"
    assert "--link rtde works without it" in str(refusal.value)


@pytest.mark.parametrize("facts", [POLYSCOPE_X, POLYSCOPE_X_WITHOUT_REALTIME])
@pytest.mark.parametrize("installed", [True, False])
def test_a_chosen_ur_rtde_is_refused_on_polyscope_x(facts, installed, monkeypatch):
    install(monkeypatch, installed=installed)

    with pytest.raises(UnsupportedController, match="--link rtde") as refusal:
        choose_link(facts, "ur_rtde")

    assert refusal.value.version == "10.12.0"
