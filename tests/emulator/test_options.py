"""The emulator's options as arguments of its command."""

from __future__ import annotations

from dataclasses import dataclass

from simbridge.emulator.options import EmulatorOptions


@dataclass(frozen=True)
class OptionsWithDefaultTrue(EmulatorOptions):
    """Options with one more flag, whose default is True."""

    extra_check: bool = True


def test_defaults_are_no_arguments():
    assert EmulatorOptions().flags() == []


def test_changed_options_become_flags():
    options = EmulatorOptions(boot_time=2.0, verbose=True)

    assert options.flags() == ["--boot-time", "2.0", "--verbose"]


def test_a_flag_turned_off_is_negated():
    assert OptionsWithDefaultTrue(extra_check=False).flags() == ["--no-extra-check"]
