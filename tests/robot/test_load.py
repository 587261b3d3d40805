"""Robots by their names."""

from __future__ import annotations

from simbridge import load_robot


def test_names_of_robots_are_read_in_any_case():
    assert load_robot("UR5e").name == "ur5e"
