"""The page that shows the arm of a live session."""

from __future__ import annotations

import urllib.error
import urllib.request

import pytest

from simbridge.browser.session_view import SessionView
from simbridge.robot.obstacles import CollisionScene
from tests.patience import PATIENCE
from tests.stepped_sessions import stepped

pytestmark = pytest.mark.slow


def test_the_page_is_served_behind_its_token(tmp_path):
    with (
        stepped(tmp_path / "run", report=False) as session,
        SessionView(session, CollisionScene()) as view,
    ):
        with urllib.request.urlopen(view.url, timeout=PATIENCE) as page:
            status = page.status
        without_token = view.url.rsplit("/", 2)[0] + "/"
        with pytest.raises(urllib.error.HTTPError):
            urllib.request.urlopen(without_token, timeout=PATIENCE)

    assert status == 200


def test_the_arm_is_drawn_where_it_is(tmp_path):
    drawn = []
    with stepped(tmp_path / "run", report=False) as session:
        view = SessionView(session, CollisionScene())
        with view:
            view._drawing.pose = lambda q, solution: drawn.append(q)
            session.engage()
            session.jog([0.0, 0.0, 0.0, 0.0, 0.0, 0.5])
            session.wait(0.1)
            view._draw()
            expected = session.state.q

    assert drawn[-1] == pytest.approx(expected)
