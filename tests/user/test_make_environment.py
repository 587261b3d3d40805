"""`make` makes its environment with a Python of the computer, or else with uv; without the network.

The programs on the path are stand-ins, which note how they are called.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

pytestmark = pytest.mark.quick

CHECKOUT = Path(__file__).parents[2]
# What make and its scripts use of the system.
SYSTEM_PROGRAMS = ("cat", "ls", "make", "mkdir", "rm", "sh", "test", "touch", "uname")

PYTHON = """#!/bin/sh
# A Python: `-c` is asked for the version or whether modules can be imported.
case "$*" in
    *version_info*) echo {version} ;;
    *ensurepip*) exit {has_venv} ;;
    "-m venv "*) echo "python $*" >>{calls}; mkdir -p "$3/bin"; touch "$3/pyvenv.cfg" ;;
    *"pip --version"*) exit {has_pip} ;;
    *"--target "*)
        echo "python $*" >>{calls}
        for word in "$@"; do [ "$previous" = --target ] && target=$word; previous=$word; done
        mkdir -p "$target/bin"
        cat {uv} >"$target/bin/uv"
        /bin/chmod +x "$target/bin/uv" ;;
esac
"""
UV = """#!/bin/sh
echo "uv $*" >>{calls}
for word in "$@"; do directory=$word; done
mkdir -p "$directory/bin"
touch "$directory/pyvenv.cfg"
"""


class Computer:
    """A computer with stand-ins for Python and uv.

    Attributes:
        calls: What they were called with, a line each.
        environment: The directory that make is to make.
    """

    def __init__(self, directory: Path) -> None:
        self._path = directory / "bin"
        self._path.mkdir()
        self._calls = directory / "calls"
        self._uv = directory / "uv"
        self._uv.write_text(UV.format(calls=self._calls))
        self.environment = directory / "environment"
        for name in SYSTEM_PROGRAMS:
            (self._path / name).symlink_to(shutil.which(name))

    def add_python(self, name: str, version: str, *, venv: bool = True, pip: bool = True) -> None:
        text = PYTHON.format(
            version=version,
            has_venv=0 if venv else 1,
            has_pip=0 if pip else 1,
            calls=self._calls,
            uv=self._uv,
        )
        self._add(name, text)

    def add_uv(self) -> None:
        self._add("uv", self._uv.read_text())

    def _add(self, name: str, text: str) -> None:
        program = self._path / name
        program.write_text(text)
        program.chmod(0o755)

    def make(self, *words: str) -> subprocess.CompletedProcess[str]:
        python = self.environment / "bin/python"
        return subprocess.run(
            ["make", f"VENV={self.environment}", *words, str(python)],
            cwd=CHECKOUT,
            env={"PATH": str(self._path)},
            capture_output=True,
            text=True,
        )

    @property
    def calls(self) -> list[str]:
        return self._calls.read_text().splitlines() if self._calls.exists() else []


@pytest.fixture
def computer(tmp_path):
    return Computer(tmp_path)


@pytest.mark.parametrize("version", ["3.10", "3.11", "3.12", "3.13", "3.14"])
def test_a_python_of_the_computer_is_used(computer, version):
    computer.add_python("python3", version)

    ended = computer.make()

    assert ended.returncode == 0, ended.stderr
    assert computer.calls == [f"python -m venv {computer.environment}"]


def test_a_python_with_ur_rtde_comes_first(computer):
    computer.add_python("python3", "3.13")
    computer.add_python("python3.12", "3.12")

    ended = computer.make()

    assert "with python3.12 (3.12)" in ended.stdout


def test_an_installed_uv_takes_pythons_place(computer):
    computer.add_uv()

    ended = computer.make()

    assert ended.returncode == 0, ended.stderr
    assert computer.calls == [
        f"uv venv --seed --allow-existing --python 3.12 {computer.environment}"
    ]


def test_the_download_is_announced_before(computer):
    computer.add_uv()

    ended = computer.make()

    assert "with Python 3.12, which it downloads if this computer does not have it" in ended.stdout


@pytest.mark.parametrize(("name", "version"), [("python3", "3.8"), ("python3.9", "3.9")])
def test_an_older_python_installs_uv(computer, name, version):
    computer.add_python(name, version)

    ended = computer.make()

    target = computer.environment / ".uv"
    assert ended.returncode == 0, ended.stderr
    assert f"--target {target} uv" in computer.calls[0]
    assert computer.calls[1].startswith("uv venv ")


def test_a_python_without_venv_installs_uv(computer):
    computer.add_python("python3", "3.13", venv=False)

    ended = computer.make()

    assert ended.returncode == 0, ended.stderr
    assert computer.calls[-1].startswith("uv venv ")


def test_without_python_one_command_installs_uv(computer):
    ended = computer.make()

    assert ended.returncode != 0
    assert "curl -LsSf https://astral.sh/uv/install.sh | sh" in ended.stderr
    assert not computer.environment.exists()


def test_a_python_too_old_for_uv_is_named(computer):
    computer.add_python("python3", "3.6")

    ended = computer.make()

    assert ended.returncode != 0
    assert "(python3 is Python 3.6)" in ended.stderr


def test_debians_python_is_completed_by_its_package(computer):
    computer.add_python("python3", "3.11", venv=False, pip=False)

    ended = computer.make()

    assert ended.returncode != 0
    assert "sudo apt install python3.11-venv" in ended.stderr


def test_a_chosen_python_is_not_replaced_by_uv(computer):
    computer.add_uv()
    computer.add_python("python3.9", "3.9")

    ended = computer.make("PYTHON=python3.9")

    assert ended.returncode != 0
    assert "(python3.9 is Python 3.9)" in ended.stderr
    assert computer.calls == []


def test_a_directory_of_something_else_is_kept(computer):
    computer.add_python("python3", "3.12")
    computer.environment.mkdir()
    (computer.environment / "thesis.tex").touch()

    ended = computer.make()

    assert ended.returncode != 0
    assert (computer.environment / "thesis.tex").exists()


def check_compiler(directory: Path, machine: str, *programs: str) -> subprocess.CompletedProcess:
    for name, text in {"uname": f"echo {machine}", **dict.fromkeys(programs, "exit 0")}.items():
        (directory / name).write_text(f"#!/bin/sh\n{text}\n")
        (directory / name).chmod(0o755)
    script = CHECKOUT / "tools/check_compiler.sh"
    environment = {"PATH": str(directory)}
    return subprocess.run(["/bin/sh", script], env=environment, capture_output=True, text=True)


def test_aarch64_needs_a_compiler(tmp_path):
    ended = check_compiler(tmp_path, "aarch64")

    assert ended.returncode != 0
    assert "sudo apt install g++ python3-dev" in ended.stderr


@pytest.mark.parametrize(("machine", "programs"), [("x86_64", ()), ("aarch64", ("g++",))])
def test_wheels_or_a_compiler_are_enough(tmp_path, machine, programs):
    assert check_compiler(tmp_path, machine, *programs).returncode == 0
