"""Texts of users in pages and in the links of pages."""

from __future__ import annotations

from simbridge.report.rendering import link, render

# A byte of a file name that is no text, as Python holds it.
NO_TEXT = "run\udcff"


def test_a_page_can_be_written_whatever_a_name_holds():
    names = {"scenario": NO_TEXT, "robot": "UR10", "reference": "", "meshes": "", "largest": ""}

    page = render("replay_legend.html", steps=[], **names)

    assert b"<b>run\\udcff</b>" in page.encode()


def test_a_link_leads_to_a_file_whose_name_is_no_text():
    assert link(NO_TEXT) == "run%FF"
