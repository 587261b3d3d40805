"""The ISO 9283-style part of the page: whose word each sentence and each count of cycles is."""

from __future__ import annotations

from typing import Any

import pytest

from simbridge.report.iso import iso_section

BOTH, OWN, OUTSIDE = "No AV, RV or FV.", "No AT or RT.", "No figures of stop 1."


def view(witness: str, *missing: str) -> dict[str, Any]:
    return {"witness": witness, "figures": [], "stops_m": [], "limit_band_m": None, "missing": list(missing)}


def test_what_only_one_witness_does_not_tell_is_said_of_that_one() -> None:
    page = iso_section([view("self-reported", BOTH, OWN), view("external", OUTSIDE, BOTH)])
    for sentence in (BOTH, f"Self-reported: {OWN}", f"External: {OUTSIDE}"):
        assert page.count(f">{sentence}</p>") == 1


@pytest.mark.parametrize("witness", ["self-reported", "external"])
def test_of_one_witness_alone_nothing_need_be_said(witness: str) -> None:
    assert f">{OWN}</p>" in iso_section([view(witness, OWN)])
