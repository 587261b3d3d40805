"""Which of the open pages drives."""

from __future__ import annotations

import pytest

from simbridge.browser.access import Access


@pytest.fixture
def access():
    """Two pages, opened one after the other."""
    pages = Access()
    pages.open_page(1)
    pages.open_page(2)
    return pages


def test_the_first_page_drives_and_others_watch(access):
    assert access.admits(1)
    assert not access.admits(2)
    assert access.refused == 1


def test_another_page_drives_once_it_takes_control(access):
    access.take_control(2)

    assert access.admits(2)
    assert not access.admits(1)


def test_a_page_that_is_not_open_cannot_take_control(access):
    access.take_control(3)

    assert access.driver == 1


def test_a_leaving_driver_frees_the_control(access):
    access.close_page(1)
    assert access.driver is None
    assert not access.admits(2)

    access.take_control(2)
    assert access.admits(2)
