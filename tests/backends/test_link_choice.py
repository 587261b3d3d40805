"""The link to a controller: chosen, or the best that is possible."""

from __future__ import annotations

import pytest

from simbridge.backends import link_choice
from simbridge.backends.link_choice import choose_link
from simbridge.errors import MissingPackage
from simbridge.ur.errors import UnsupportedController

HOST = "192.0.2.1"
E_SERIES = (5, 12, 6)
CB3 = (3, 15, 8)
POLYSCOPE_X = (10, 12, 0)


@pytest.fixture(params=["installed", "missing"])
def ur_rtde(request, monkeypatch):
    """Whether ur_rtde is installed, as `find_spec` tells."""
    is_installed = request.param == "installed"
    monkeypatch.setattr(link_choice.util, "find_spec", lambda _name: is_installed or None)
    return request.param


def missing(monkeypatch):
    monkeypatch.setattr(link_choice.util, "find_spec", lambda _name: None)


@pytest.mark.parametrize("version", [E_SERIES, CB3])
def test_ur_rtde_is_the_default_where_it_is_possible(version, monkeypatch, recwarn):
    monkeypatch.setattr(link_choice.util, "find_spec", lambda _name: True)

    assert choose_link(HOST, version, None) == "ur_rtde"
    assert not recwarn.list


def test_without_ur_rtde_the_run_says_which_link_it_has(monkeypatch):
    missing(monkeypatch)

    with pytest.warns(UserWarning, match=r"\(--link rtde\): ur_rtde is not installed\."):
        link = choose_link(HOST, E_SERIES, None)

    assert link == "rtde"


def test_on_polyscope_x_the_run_says_which_link_it_has():
    with pytest.warns(UserWarning, match="PolyScope X does not have"):
        link = choose_link(HOST, POLYSCOPE_X, None)

    assert link == "rtde"


@pytest.mark.parametrize("version", [E_SERIES, CB3, POLYSCOPE_X])
def test_a_chosen_own_link_needs_no_words(version, ur_rtde, recwarn):
    assert choose_link(HOST, version, "rtde") == "rtde"
    assert not recwarn.list


def test_a_chosen_ur_rtde_that_is_missing_is_refused(monkeypatch):
    missing(monkeypatch)

    with pytest.raises(MissingPackage) as refusal:
        choose_link(HOST, E_SERIES, "ur_rtde")

    assert refusal.value.package == "ur-rtde"
    assert "--link rtde works without it" in str(refusal.value)


def test_a_chosen_ur_rtde_is_refused_on_polyscope_x():
    with pytest.raises(UnsupportedController, match="--link rtde") as refusal:
        choose_link(HOST, POLYSCOPE_X, "ur_rtde")

    assert refusal.value.version == "10.12.0"
