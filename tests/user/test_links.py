"""`--link` and `--registers`: how a run commands its controller, as a user sees it."""

from __future__ import annotations

from pathlib import Path

import pytest

from simbridge.backends import link_choice
from simbridge.recording.run_directory import RunDirectory
from tests.backends.trial import Trial, write_line
from tests.optional_packages import LINKS
from tests.properties import variants
from tests.ur.registers import take

ON_E_SERIES = ("--robot", "ur10e", "--backend", "ursim")
# What a controller gives to a fieldbus such as EtherNet/IP.
FIELDBUS = (
    *(f"input_int_register_{number}" for number in range(24)),
    *(f"input_double_register_{number}" for number in range(24)),
)


@pytest.fixture
def with_fieldbus(e_series):
    """A controller whose lower registers belong to a fieldbus."""
    take(e_series, *FIELDBUS)
    return e_series


@pytest.mark.parametrize("link", LINKS)
def test_a_fieldbus_is_named_and_nothing_moves(link, with_fieldbus, tmp_path):
    with Trial(
        with_fieldbus, tmp_path, write_line(tmp_path), *ON_E_SERIES, "--link", link
    ) as trial:
        status, message = trial.wait_for_end()

    assert status == 2
    assert "input_double_register_0" in message
    assert "EtherNet/IP" in message
    assert "--registers upper" in message
    assert trial.joint_travel() == 0.0


# Through the own link test_controller_backend uses the upper registers, too.
@pytest.mark.parametrize("link", variants(LINKS, LINKS[0]))
def test_the_upper_registers_work_beside_a_fieldbus(link, with_fieldbus, tmp_path):
    flags = (*ON_E_SERIES, "--link", link, "--registers", "upper")

    with Trial(with_fieldbus, tmp_path, write_line(tmp_path, 0.5), *flags) as trial:
        assert trial.wait_for_end() == (0, "")

    assert trial.summary()["outcome"] == "completed"


# test_link_choice shows the choice and its words, and the test below a run through that link.
@pytest.mark.soak
def test_without_ur_rtde_the_run_says_so_and_completes(e_series, tmp_path, monkeypatch):
    monkeypatch.setattr(link_choice.util, "find_spec", lambda _name: None)

    path = write_line(tmp_path, 0.5)

    with Trial(e_series, tmp_path, path, *ON_E_SERIES, names_link=False) as trial:
        status, message = trial.wait_for_end()

    assert status == 0
    assert "(--link rtde): ur_rtde is not installed." in message
    assert RunDirectory.open(trial.out).settings().backend.link == "rtde"


def test_the_own_link_does_not_load_ur_rtde(e_series, tmp_path):
    flags = (*ON_E_SERIES, "--link", "rtde")

    with Trial(e_series, tmp_path, write_line(tmp_path, 0.5), *flags) as trial:
        trial.wait_until_moving()
        libraries = Path(f"/proc/{trial.servo}/maps").read_text()
        status, message = trial.wait_for_end()

    assert (status, message) == (0, "")
    assert "rtde_control" not in libraries


# Each reading of the controller waits for the port for two seconds.
@pytest.mark.soak
def test_the_own_link_works_without_port_30003(e_series, tmp_path):
    e_series.do("mute", port=30003)
    flags = (*ON_E_SERIES, "--link", "rtde")

    with Trial(e_series, tmp_path, write_line(tmp_path, 0.5), *flags) as trial:
        assert trial.wait_for_end() == (0, "")

    assert trial.summary()["outcome"] == "completed"
