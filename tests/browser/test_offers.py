"""A page's event is checked against what its control offers."""

from __future__ import annotations

import math
from unittest.mock import MagicMock

import pytest
import viser

from simbridge.browser.offers import (
    EventRefused,
    NumberRange,
    NumberVector,
    OnOff,
    Text,
    TextChoice,
    UnitQuaternion,
    check_offered,
    offer_of,
)

NAN = math.nan
INF = math.inf

CHOICE = TextChoice(("circle", "line"))
SPEED = NumberRange(0, 100)


@pytest.mark.parametrize(
    ("offer", "value"),
    [
        (CHOICE, "circle"),
        (SPEED, 0),
        (SPEED, 100.0),
        (SPEED, 100.0 + 1e-8),
        (NumberRange(), -1e9),
        (NumberVector(3), (0.0, 1, -2.5)),
        (UnitQuaternion(), (1.0, 0.0, 0.0, 0.0)),
        (UnitQuaternion(), (0.5, -0.5, 0.5, 0.5001)),
        (Text(), ""),
        (Text(), "runs/größe-1"),
        (OnOff(), True),
    ],
)
def test_what_is_offered_is_accepted(offer, value):
    check_offered("a control", value, offer)


@pytest.mark.parametrize(
    ("offer", "value"),
    [
        (CHOICE, "/tmp/evil.py"),
        (CHOICE, ""),
        (CHOICE, None),
        (CHOICE, ["circle"]),
        (SPEED, -1),
        (SPEED, 101),
        (SPEED, NAN),
        (SPEED, INF),
        (SPEED, "50"),
        (SPEED, True),
        (SPEED, 2**70),
        (SPEED, None),
        (NumberRange(), NAN),
        (NumberRange(), 1e308),
        (NumberRange(), 2**2000),
        (NumberRange(), b"1"),
        (NumberVector(3), (0.0, 0.0)),
        (NumberVector(3), (0.0,) * 4),
        (NumberVector(3), (NAN, 0.0, 0.0)),
        (NumberVector(3), (INF, 0.0, 0.0)),
        (NumberVector(3), "abc"),
        (NumberVector(3), 1.0),
        (NumberVector(3), {"x": 1, "y": 2, "z": 3}),
        (UnitQuaternion(), (2.0, 0.0, 0.0, 0.0)),
        (UnitQuaternion(), (0.0,) * 4),
        (UnitQuaternion(), (NAN,) * 4),
        (Text(), "x" * 100_000),
        (Text(), "two\nlines"),
        (Text(), "nul\0"),
        (Text(), 1),
        (Text(), b"bytes"),
        (OnOff(), 1),
        (OnOff(), "on"),
    ],
)
def test_anything_else_is_refused(offer, value):
    with pytest.raises(EventRefused) as error:
        check_offered("a control", value, offer)

    assert error.value.control == "a control"
    assert error.value.offered == offer.description
    assert len(str(error.value)) < 300


@pytest.mark.parametrize(
    ("handle", "offer"),
    [
        (MagicMock(spec=viser.GuiDropdownHandle, options=("circle", "line")), CHOICE),
        (
            MagicMock(spec=viser.GuiButtonGroupHandle, options=("Play", "Stop")),
            TextChoice(("Play", "Stop")),
        ),
        (MagicMock(spec=viser.GuiSliderHandle, min=0, max=100), SPEED),
        (MagicMock(spec=viser.GuiNumberHandle, min=None, max=None), NumberRange()),
        (MagicMock(spec=viser.GuiNumberHandle, min=1, max=None), NumberRange(low=1)),
        (MagicMock(spec=viser.GuiVector3Handle), NumberVector(3)),
        (MagicMock(spec=viser.GuiTextHandle), Text()),
        (MagicMock(spec=viser.GuiCheckboxHandle), OnOff()),
    ],
)
def test_the_offer_follows_from_the_handle(handle, offer):
    assert offer_of(handle) == offer


def test_an_unknown_control_cannot_be_used():
    with pytest.raises(TypeError):
        offer_of(MagicMock(spec=viser.GuiUploadButtonHandle))
