"""Clicks in a page's scene place the goal of a planar arm, and double clicks its start."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from unittest.mock import MagicMock

import numpy as np
import pytest

from simbridge.browser.goal_frame import GoalFrame
from simbridge.browser.inputs import PanelInputs

DOWN = (0.0, 0.0, -1.0)
UP = (0.0, 0.0, 1.0)


class Scene:
    """A page's scene, and the events that it sends."""

    def __init__(self):
        self.events = []
        self.client = MagicMock()
        GoalFrame(self.client, PanelInputs(3, MagicMock(), self.events.append), 0.1, 0.0)

    def click(self, direction, x=0.4):
        (callback,) = self.client.scene.on_click.return_value.call_args.args
        event = SimpleNamespace(ray_origin=(x, 0.0, 2.0), ray_direction=direction)
        # In a thread: in this one playwright may have left its event loop.
        with ThreadPoolExecutor(1) as pool:
            pool.submit(asyncio.run, callback(event)).result()

    @property
    def names(self):
        return [event.name for event in self.events]


@pytest.fixture
def scene(monkeypatch):
    monkeypatch.setattr("simbridge.browser.goal_frame.MAX_DOUBLE_CLICK_S", 3600.0)
    return Scene()


def test_a_click_meets_the_plane(scene):
    scene.click(DOWN)

    assert scene.names == ["clicked goal"]
    assert np.allclose(scene.events[0].value, (0.4, 0.0, 0.0))


def test_a_second_click_places_the_start(scene):
    scene.click(DOWN)
    scene.click(DOWN)

    assert scene.names == ["clicked goal", "clicked start"]


def test_a_click_beside_the_plane_places_nothing(scene):
    scene.click(UP)

    assert scene.names == []


def test_a_click_beside_the_plane_makes_no_double_click(scene):
    scene.click(UP)
    scene.click(DOWN)

    assert scene.names == ["clicked goal"]
