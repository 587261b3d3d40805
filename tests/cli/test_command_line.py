"""`simbridge completion`: the script that it prints, and what a shell completes with it."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from tests.program import answer_to

pytestmark = [pytest.mark.slow, pytest.mark.shares_setup]

# As bash does at the Tab key: words so far, the last of them unfinished.
TAB = """
tab() {
    COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMPREPLY=()
    $(complete -p simbridge | sed 's/.*-F \\([^ ]*\\).*/\\1/')
    echo "${COMPREPLY[@]}"
}
tab simbridge i
tab simbridge run --servo-
tab simbridge experiment so
tab simbridge run --solver.k
"""


@pytest.fixture(scope="module")
def home_and_script(tmp_path_factory):
    """An empty home, and the script for bash that was printed in it."""
    home = tmp_path_factory.mktemp("home")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", str(home))
        answer = answer_to("completion", "bash")
    assert answer.status == 0
    return home, answer.out


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_bash_completes_commands_and_flags(home_and_script, tmp_path):
    script = tmp_path / "simbridge"
    script.write_text(home_and_script[1])

    done = subprocess.run(
        ["bash", "-c", f"source {script}\n{TAB}"], capture_output=True, text=True, check=True
    )

    words = [
        "identify inspect",
        "--servo-gain --servo-lookahead",
        "solvers",
        "--solver.kp --solver.kd",
    ]

    assert done.stdout.splitlines() == words


@pytest.mark.parametrize(
    ("shell", "line"),
    [
        # Completed with, above.
        pytest.param("bash", "complete -F _tyro_simbridge simbridge", marks=pytest.mark.soak),
        ("zsh", "#compdef simbridge"),
        pytest.param("fish", "complete --no-files --command 'simbridge'", marks=pytest.mark.soak),
    ],
)
def test_each_shells_script_is_printed(cli, shell, line):
    answer = cli("completion", shell)

    assert answer.status == 0
    assert line in answer.out


def test_the_users_files_are_left_alone(home_and_script):
    home, _ = home_and_script

    assert list(home.iterdir()) == []
