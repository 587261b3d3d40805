"""Where compiled kernels are kept."""

from __future__ import annotations

import threading

from simbridge.kernels import cache
from simbridge.kernels.cache import cache_directory, compile_once, load_module
from tests.patience import PATIENCE


def test_the_directory_follows_the_environment(monkeypatch, tmp_path):
    monkeypatch.delenv("SIMBRIDGE_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))

    assert cache_directory() == tmp_path / "simbridge" / "kernels"

    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    monkeypatch.setenv("HOME", str(tmp_path))

    assert cache_directory() == tmp_path / ".cache" / "simbridge" / "kernels"

    monkeypatch.setenv("SIMBRIDGE_CACHE", str(tmp_path / "here"))

    assert cache_directory() == tmp_path / "here"


def test_a_second_process_waits_for_the_first(monkeypatch, tmp_path):
    monkeypatch.setenv("SIMBRIDGE_CACHE", str(tmp_path))
    # The second must not give up waiting before the test does.
    monkeypatch.setattr(cache, "LONGEST_WAIT_S", 2.0 * PATIENCE)
    module = load_module("value = 1\n")
    order = []

    def compile_second():
        with compile_once(module):
            order.append("second")

    second = threading.Thread(target=compile_second)
    with compile_once(module):
        second.start()
        second.join(0.2)
        order.append("first")
    second.join(PATIENCE)

    assert order == ["first", "second"]


def test_compiling_does_not_wait_for_ever(monkeypatch, tmp_path):
    monkeypatch.setenv("SIMBRIDGE_CACHE", str(tmp_path))
    monkeypatch.setattr(cache, "LONGEST_WAIT_S", 0.1)
    module = load_module("value = 2\n")

    with compile_once(module), compile_once(module):
        pass


def test_no_lock_is_left(monkeypatch, tmp_path):
    monkeypatch.setenv("SIMBRIDGE_CACHE", str(tmp_path))

    with compile_once(load_module("value = 3\n")):
        pass

    assert not list(tmp_path.glob("*.lock"))
