"""Runs the tests and examples of Universal Robots' own client library with the emulator, and prints a table.

    python tools/urcl.py CHECKOUT [--polyscope 5.25] [--robot ur10e] [--only NAME ...] [--test PATTERN] [--log DIR]

CHECKOUT is a built checkout of Universal_Robots_Client_Library (docs/emulator.md names the version): its integration
tests and examples are below its folder build. Nothing is fetched or built here.

Some tests listen on the controller's own ports, so the emulator and the tests have a network each: two namespaces,
joined by a cable, with UR's own addresses. Each program gets a new emulator, each test a process of its own, as UR's
continuous integration does.
"""

from __future__ import annotations

import argparse
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

CONTROLLER, CLIENT = "192.168.56.101", "192.168.56.1"
HEADLESS = ("--headless", "true")
PROGRAMS = {
    "dashboard_client_g5_tests": (),
    "rtde_tests": (),
    "primary_client_test_headless": (),
    "ur_driver_tests_headless": HEADLESS,
    "external_control_program_tests_headless": HEADLESS,
    "trajectory_streaming_tests_headless": HEADLESS,
    "instruction_executor_test_headless": HEADLESS,
    "spline_tests_headless": HEADLESS,
}
LIMIT = 180.0  # s, of a test or an example
START_LIMIT = 60.0  # s, of an emulator
ERROR = re.compile(r"^(error|Traceback)", re.MULTILINE)  # what an emulator's log must not show in an example


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("checkout", type=Path)
    parser.add_argument("--polyscope", default="5.25")
    parser.add_argument("--robot", default="ur10e")
    parser.add_argument("--only", nargs="*", default=[], help="programs to run, or 'examples'")
    parser.add_argument("--test", default="*", help="a pattern as for --gtest_filter")
    parser.add_argument("--log", type=Path, default=Path("runs/urcl"), help="folder for everything that was printed")
    return parser.parse_args()


@contextmanager
def namespaces() -> Iterator[tuple[list[str], list[str]]]:
    """How to run a command beside the controller, and beside the client: what to put before it."""
    with ExitStack() as stack:
        ids = []
        for _ in range(2):
            keeper = subprocess.Popen(["unshare", "--net", "sleep", "infinity"])
            stack.callback(keeper.wait)
            stack.callback(keeper.kill)
            ids.append(str(keeper.pid))
        enter = [["nsenter", f"--net=/proc/{number}/ns/net"] for number in ids]
        try:
            for number in ids:
                _await(lambda number=number: os.readlink(f"/proc/{number}/ns/net") != os.readlink("/proc/self/ns/net"))
            cable = ["ip", "link", "add", "end", "netns", ids[0], "type", "veth", "peer", "name", "end", "netns"]
            subprocess.run([*cable, ids[1]], check=True, capture_output=True)
            for before, address in zip(enter, (CONTROLLER, CLIENT), strict=True):
                for command in (f"addr add {address}/24 dev end", "link set end up", "link set lo up"):
                    subprocess.run([*before, "ip", *command.split()], check=True, capture_output=True)
        except (OSError, subprocess.SubprocessError, TimeoutError) as error:
            reason = (getattr(error, "stderr", b"") or b"").decode().strip() or str(error)
            raise SystemExit(
                f"urcl: this system does not allow it to make two network namespaces ({reason}); run it as root, where "
                f"that is allowed."
            ) from None
        yield enter[0], enter[1]


def _await(condition: object, limit: float = 5.0) -> None:
    deadline = time.monotonic() + limit
    while not condition():  # type: ignore[operator]
        if time.monotonic() > deadline:
            raise TimeoutError("no network namespace appeared")
        time.sleep(0.01)


@contextmanager
def emulator(before: list[str], options: argparse.Namespace, log: Path) -> Iterator[None]:
    """A new emulated controller, powered off."""
    series = "cb3" if options.polyscope.startswith("3") else "e-series"
    programs = options.checkout / "tests/resources/dockerursim/programs" / series
    command = [*before, sys.executable, "-m", "simbridge", "emulate", "--robot", options.robot, "--host", CONTROLLER]
    command += ["--polyscope", options.polyscope, "--programs", str(programs), "--start-pose", "ursim"]
    with log.open("wb") as file:
        process = subprocess.Popen(command, stdout=file, stderr=subprocess.STDOUT)
        try:
            deadline = time.monotonic() + START_LIMIT
            while "Ctrl-C ends it" not in log.read_text(errors="replace"):
                if process.poll() is not None or time.monotonic() > deadline:
                    raise SystemExit(f"urcl: the emulator did not start: {log.read_text(errors='replace')}")
                time.sleep(0.05)
            yield
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(10.0)


def run(command: list[str], folder: Path, log: Path) -> tuple[int, float]:
    """Exit status (None counts as 124, when it took too long) and duration, s."""
    environment = {**os.environ, "URSIM_VERSION": "latest", "ROBOT_MODEL": "ur10e"}
    begin = time.monotonic()
    with log.open("wb") as file:
        try:
            ended = subprocess.run(
                command, cwd=folder, stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.STDOUT,
                env=environment, timeout=LIMIT, check=False,
            )  # fmt: skip
            status = ended.returncode
        except subprocess.TimeoutExpired:
            status = 124
    return status, time.monotonic() - begin


def tests_of(program: Path, pattern: str) -> list[str]:
    listed = subprocess.run(
        [program, "--gtest_list_tests", f"--gtest_filter={pattern}"], capture_output=True, text=True, check=True
    )
    names, suite = [], ""
    for line in listed.stdout.splitlines():
        if line.startswith(" "):
            names.append(suite + line.split("#")[0].strip())
        elif line.endswith("."):
            suite = line
    return names


def main() -> int:
    options = parse()
    options.checkout, log = options.checkout.resolve(), options.log.resolve()
    build = options.checkout / "build"
    examples = sorted(path for path in (build / "examples").glob("*") if path.is_file() and os.access(path, os.X_OK))
    lacking = [name for name in PROGRAMS if not (build / "tests" / name).exists()]
    if lacking or not examples:
        what = lacking[0] if lacking else "examples"
        raise SystemExit(
            f"urcl: {options.checkout} is not a built checkout of Universal_Robots_Client_Library: {what} is not below "
            f"{build}. Build its integration tests and examples as its documentation says."
        )
    log.mkdir(parents=True, exist_ok=True)
    passed, total, failed = 0, 0, []
    with namespaces() as (controller, client):
        print("| program | tests | passed |\n|---|---|---|", flush=True)
        for name, arguments in PROGRAMS.items():
            if options.only and name not in options.only:
                continue
            good, names = 0, tests_of(build / "tests" / name, options.test)
            with emulator(controller, options, log / f"{name}.emulator.log"):
                for test in names:
                    output = log / f"{test}.log"
                    command = [*client, str(build / "tests" / name), f"--gtest_filter={test}", *arguments]
                    command += ["--robot_ip", CONTROLLER]
                    status, seconds = run(command, options.checkout / "tests", output)
                    skipped = "[  SKIPPED ]" in output.read_text(errors="replace")
                    if status == 0 and not skipped:
                        good += 1
                    else:
                        why = "skipped by UR's own test" if status == 0 else f"status {status}"
                        failed.append(f"{name} {test}: {why} after {seconds:.1f} s")
            print(f"| {name} | {len(names)} | {good} |", flush=True)
            passed, total = passed + good, total + len(names)
        print(f"| sum | {total} | {passed} |", flush=True)
        if not options.only or "examples" in options.only:
            good = 0
            for example in examples:
                heard, output = log / f"{example.name}.emulator.log", log / f"{example.name}.log"
                with emulator(controller, options, heard):
                    status, seconds = run([*client, str(example), CONTROLLER, "5"], options.checkout, output)
                errors = ERROR.search(heard.read_text(errors="replace"))
                if status == 0 and not errors:
                    good += 1
                else:
                    why = f"status {status}" if status else "an error in the emulator's log"
                    failed.append(f"example {example.name}: {why} after {seconds:.1f} s")
            print(f"| examples | {len(examples)} | {good} |", flush=True)
    for line in failed:
        print(f"not passed: {line}")
    print(f"Everything that was printed is below {log}.")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
