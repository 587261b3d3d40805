"""`simbridge completion`: what a shell completes after it, and what the command leaves of the user's files."""

from __future__ import annotations

import shutil
import subprocess

import pytest

# As bash does at the Tab key: words so far, the last of them unfinished.
TAB = """
tab() {
    COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMPREPLY=()
    $(complete -p simbridge | sed 's/.*-F \\([^ ]*\\).*/\\1/')
    echo "${COMPREPLY[@]}"
}
tab simbridge i
tab simbridge run --servo-
tab simbridge check --on-l
tab simbridge experiment so
tab simbridge run --solver.k
"""


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("XDG_DATA_HOME", "XDG_CONFIG_HOME", "ZDOTDIR"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_a_new_bash_completes_commands_and_flags(cli, home):
    (home / ".bashrc").write_text("answer=42")
    for _ in range(2):
        assert cli("completion", "bash").status == 0
    assert (home / ".bashrc").read_text().splitlines() == [
        "answer=42",
        "# Completion of simbridge",
        f'source "{home}/.local/share/simbridge/completion.bash"',
    ]
    done = subprocess.run(["bash", "-ic", TAB], capture_output=True, text=True, stdin=subprocess.DEVNULL, check=True)
    words = ["identify inspect", "--servo-gain --servo-lookahead", "--on-limits", "solvers", "--solver.kp --solver.kd"]
    assert done.stdout.splitlines() == words


def test_showing_the_script_installs_nothing(cli, home):
    answer = cli("completion", "bash", "--show")
    assert answer.status == 0 and "complete -F _tyro_simbridge" in answer.out
    assert list(home.iterdir()) == []


@pytest.mark.soak
@pytest.mark.parametrize(
    ("shell", "script", "start"),
    [
        ("zsh", ".local/share/simbridge/zsh/_simbridge", ".zshrc"),
        ("fish", ".config/fish/completions/simbridge.fish", None),
    ],
)
def test_other_shells_find_their_script(cli, home, shell, script, start):
    assert cli("completion", shell).status == 0
    assert "simbridge" in (home / script).read_text()
    assert start is None or str((home / script).parent) in (home / start).read_text()


def test_a_start_up_file_that_cannot_be_written_is_named(cli, home):
    (home / ".bashrc").mkdir()
    answer = cli("completion", "bash")
    assert answer.status == 2 and f"{home}/.bashrc cannot be written" in answer.err
