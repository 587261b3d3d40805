"""A stand-in for the programs docker and podman, without containers.

It knows the commands that simbridge uses. What docker's service would keep is in files of the
directory that STAND_IN_DIRECTORY names: `containers.json`, and `images` and `registry` with a name
of an image a line. STAND_IN_CONTENT says what a container is: an emulated controller ("emulator"),
a process that listens nowhere ("silent"), or one that ends at once ("ended"). STAND_IN_SIGNAL names
a command after which simbridge is sent SIGINT, as by Ctrl-C, once there is a container.
"""

from __future__ import annotations

import itertools
import json
import os
import signal
import sys
import time
from pathlib import Path

DIRECTORY = Path(os.environ["STAND_IN_DIRECTORY"])
CONTAINERS = DIRECTORY / "containers.json"
# An emulator ends after this time even where a test was killed, s.
LONGEST_LIFE = "300"
END_TIMEOUT_S = 20.0


def names_in(file: str) -> list[str]:
    path = DIRECTORY / file
    return path.read_text().split() if path.exists() else []


def load() -> dict:
    return json.loads(CONTAINERS.read_text()) if CONTAINERS.exists() else {}


def store(containers: dict) -> None:
    CONTAINERS.write_text(json.dumps(containers))


def is_alive(pid: int) -> bool:
    status = Path(f"/proc/{pid}/stat")
    return status.exists() and status.read_text().rpartition(")")[2].split()[0] != "Z"


def fail(message: str) -> int:
    print(message, file=sys.stderr)
    return 125


def ps(arguments: list[str]) -> int:
    label = ""
    if "--filter" in arguments:
        label = arguments[arguments.index("--filter") + 1].removeprefix("label=")
    for number, facts in load().items():
        if not label or label in facts["labels"]:
            print(number)
    return 0


def inspect(arguments: list[str]) -> int:
    containers = load()
    print(
        json.dumps(
            [
                {
                    "Id": number,
                    "Config": {"Labels": containers[number]["labels"]},
                    "State": {"Running": is_alive(containers[number]["pid"])},
                }
                for number in arguments
            ]
        )
    )
    return 0


def image(arguments: list[str]) -> int:
    return 0 if arguments[1] in names_in("images") else fail(f"no such image: {arguments[1]}")


def pull(arguments: list[str]) -> int:
    if arguments[0] not in names_in("registry"):
        return fail(f"manifest for {arguments[0]} not found: manifest unknown")
    print(f"Pulling {arguments[0]}")
    with (DIRECTORY / "images").open("a") as images:
        images.write(f"{arguments[0]}\n")
    return 0


def run(arguments: list[str]) -> int:
    # Most commands need not import it, and each of them is a process of its own.
    import subprocess

    *options, name = arguments
    values: dict[str, list[str]] = {"--label": [], "-e": [], "-p": []}
    for option, value in itertools.pairwise(options):
        if option in values:
            values[option].append(value)
    if name not in names_in("images"):
        return fail(f"unable to find image {name} locally")

    model = dict(value.split("=") for value in values["-e"])["ROBOT_MODEL"].lower()
    address = values["-p"][0].split(":")[0]
    number = os.urandom(16).hex()
    with (DIRECTORY / f"{number}.log").open("wb") as log:
        process = subprocess.Popen(
            content(model, name, address),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    containers = load()
    labels = dict(value.split("=") for value in values["--label"])
    containers[number] = {"labels": labels, "pid": process.pid, "arguments": arguments}
    store(containers)
    print(number)
    return 0


def content(model: str, image_name: str, address: str) -> list[str]:
    kind = os.environ.get("STAND_IN_CONTENT", "emulator")
    if kind == "silent":
        return ["sleep", LONGEST_LIFE]
    if kind == "ended":
        return ["echo", "the license was not accepted"]
    robot = model if "cb3" in image_name else f"{model}e"
    _, _, tag = image_name.rpartition(":")
    polyscope = "5.12" if tag == "latest" else ".".join(tag.split(".")[:2])
    emulator = [os.environ["STAND_IN_PYTHON"], "-m", "simbridge", "emulate", "--robot", robot]
    return ["timeout", LONGEST_LIFE, *emulator, "--polyscope", polyscope, "--host", address]


def logs(arguments: list[str]) -> int:
    print((DIRECTORY / f"{arguments[-1]}.log").read_text(), end="")
    return 0


def rm(arguments: list[str]) -> int:
    containers = load()
    pid = containers.pop(arguments[-1])["pid"]
    if is_alive(pid):
        os.kill(pid, signal.SIGTERM)
    deadline = time.monotonic() + END_TIMEOUT_S
    while is_alive(pid) and time.monotonic() < deadline:
        time.sleep(0.01)
    store(containers)
    return 0


def main() -> int:
    if os.environ.get("STAND_IN_SERVICE") == "down":
        return fail("Cannot connect to the Docker daemon. Is the docker daemon running?")
    commands = {
        "ps": ps, "inspect": inspect, "image": image, "pull": pull, "run": run, "logs": logs,
        "rm": rm,
    }  # fmt: skip
    command, *arguments = sys.argv[1:]
    status = commands[command](arguments)
    sys.stdout.flush()
    if os.environ.get("STAND_IN_SIGNAL") == command and load():
        os.kill(os.getppid(), signal.SIGINT)
    return status


if __name__ == "__main__":
    sys.exit(main())
