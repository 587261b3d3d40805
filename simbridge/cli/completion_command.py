"""`simbridge completion SHELL`: commands and flags are completed at the Tab key.

The script is tyro's, made from the flags of all commands. bash and zsh read one line in their start-up file, which is
added once; fish reads a directory.
"""

from __future__ import annotations

import contextlib
import io
import os
from pathlib import Path

import tyro

from simbridge.cli.option_flags import command_type
from simbridge.errors import OutputError
from simbridge.robot.files import write_file


def completion(shell: str, *, show: bool) -> int:
    """Install the completion of a shell for this user, or print it; returns the exit status, 0.

    Raises:
        OutputError: A file cannot be written.
    """
    if show:
        print(_script_of(shell), end="")
        return 0
    home = Path.home()
    data = Path(os.environ.get("XDG_DATA_HOME") or home / ".local/share")
    config = Path(os.environ.get("XDG_CONFIG_HOME") or home / ".config")
    places: dict[str, tuple[Path, Path | None, str]] = {
        "bash": (data / "simbridge/completion.bash", home / ".bashrc", 'source "{}"'),
        "zsh": (
            data / "simbridge/zsh/_simbridge",
            Path(os.environ.get("ZDOTDIR") or home) / ".zshrc",
            'fpath=("{0.parent}" $fpath); autoload -Uz compinit && compinit',
        ),
        "fish": (config / "fish/completions/simbridge.fish", None, ""),
    }
    script, start, line = places[shell]
    try:
        script.parent.mkdir(parents=True, exist_ok=True)
        write_file(script, _script_of(shell).encode())
        if start is not None:
            _add_line(start, line.format(script))
    except OutputError:
        raise
    except OSError as error:
        raise OutputError(error.filename or script, str(error.strerror), error.errno) from error
    print(f"Completion for {shell}: {script}")
    print(f"{'' if start is None else f'A line of {start} reads it. '}Open a new {shell} to use it.")
    return 0


def _script_of(shell: str) -> str:
    arguments = ["--tyro-write-completion", shell, "-"]
    with contextlib.redirect_stdout(io.StringIO()) as printed, contextlib.suppress(SystemExit):
        tyro.cli(command_type([], every=True), args=arguments, prog="simbridge", config=(tyro.conf.FlagCreatePairsOff,))
    return printed.getvalue()


def _add_line(start: Path, line: str) -> None:
    """Add a line to a shell's start-up file, unless it is there."""
    with start.open("a+", encoding="utf-8") as file:
        file.seek(0)
        text = file.read()
        if line not in text.splitlines():
            file.write(f"{'' if text.endswith(chr(10)) or not text else chr(10)}# Completion of simbridge\n{line}\n")
