"""Where compiled kernels are kept."""

from __future__ import annotations

from simbridge.kernels.cache import cache_directory


def test_the_directory_follows_the_environment(monkeypatch, tmp_path):
    monkeypatch.delenv("SIMBRIDGE_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))

    assert cache_directory() == tmp_path / "simbridge" / "kernels"

    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    monkeypatch.setenv("HOME", str(tmp_path))

    assert cache_directory() == tmp_path / ".cache" / "simbridge" / "kernels"

    monkeypatch.setenv("SIMBRIDGE_CACHE", str(tmp_path / "here"))

    assert cache_directory() == tmp_path / "here"
