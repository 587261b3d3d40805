"""Hypothesis settings for every test: repeatable in CI, and no verdict that depends on how busy the machine is."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

# The first call of a kernel compiles it, which takes seconds.
settings.register_profile("local", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("ci", settings.get_profile("local"), derandomize=True, print_blob=True)
settings.load_profile("ci" if os.environ.get("CI") else "local")
