"""Who may act on a studio."""

from __future__ import annotations

from simbridge.browser.view import Access


def test_on_this_computer_the_first_page_drives_and_others_watch():
    access = Access(token=False)
    access.opened(1)
    access.opened(2)
    assert access.drives(1) and not access.drives(2)
    assert access.refused == 1


def test_another_page_drives_once_it_takes_control():
    access = Access(token=False)
    access.opened(1)
    access.opened(2)
    assert access.takes_control(2)
    assert access.drives(2) and not access.drives(1)


def test_with_a_token_a_page_acts_only_after_it_was_entered():
    access = Access(token=True)
    access.opened(1)
    assert not access.drives(1) and not access.takes_control(1)
    assert not access.shows(1, "guess") and not access.drives(1)
    assert access.shows(1, access.token) and access.drives(1)
    assert access.refused == 4


def test_when_the_driver_leaves_nobody_drives_until_a_page_takes_control():
    access = Access(token=False)
    access.opened(1)
    access.opened(2)
    access.closed(1)
    assert access.driver is None and not access.drives(2)
    assert access.takes_control(2) and access.drives(2)
