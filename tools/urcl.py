"""Build and run the tests and examples of Universal Robots' client library with the emulator.

    python tools/urcl.py CHECKOUT [--polyscope 5.25] [--robot ur10e] [--only NAME ...]
                         [--test PATTERN] [--log DIR]

It prints a table. CHECKOUT is a checkout of Universal_Robots_Client_Library, which is built in its
folder build. The version is in docs/emulator_fidelity.md. Nothing is fetched.

Some tests listen on the controller's own ports, so the emulator and the tests have a network each:
two namespaces, joined by a cable, with UR's own addresses. Each program gets a new emulator, each
test a process of its own, as UR's continuous integration does.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from simbridge.emulator.handle import READY

LATEST = "5.25"
CONTROLLER = "192.168.56.101"
CLIENT = "192.168.56.1"
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
# Without the flag, tests with a fake server of theirs read a variable that has no value.
CONFIGURE = (
    "-DCMAKE_BUILD_TYPE=Release",
    "-DCMAKE_CXX_FLAGS=-ftrivial-auto-var-init=zero",
    "-DBUILDING_TESTS=ON",
    "-DINTEGRATION_TESTS=ON",
    "-DFETCHCONTENT_SOURCE_DIR_GOOGLETEST=/usr/src/googletest",
)
# Debian's packages, by the commands and folders in them.
NEEDED = {
    "cmake": "cmake",
    "g++": "g++",
    "make": "make",
    "/usr/src/googletest": "googletest",
    "unshare": "util-linux",
    "ip": "iproute2",
}
# Longest duration of a test or an example, s.
MAX_DURATION_S = 180.0
# Exit status of a test or an example that took longer, as of the command timeout.
TIMEOUT_STATUS = 124
# Longest time that an emulator takes to start, s.
MAX_START_S = 60.0
# Longest time until a new process has its own network, s.
MAX_NAMESPACE_S = 5.0
# What an emulator's log must not show in an example. A fault in the program bad_code is no error:
# the example sends it to see that fault.
ERROR = re.compile(
    r"^(fault in (?!bad_code[ :])|C\d+A\d+: Protective stop|Traceback)", re.MULTILINE
)


class Networks(NamedTuple):
    """The networks of the controller and of the client.

    Attributes:
        controller: What a command begins with to run in the controller's network.
        client: What a command begins with to run in the client's network.
    """

    controller: list[str]
    client: list[str]


@dataclass
class Results:
    """What came of tests or examples.

    Attributes:
        count: How many there are.
        passed: How many passed.
        failed: A line for each that failed.
        skipped: A line for each that skipped itself.
    """

    count: int = 0
    passed: int = 0
    failed: list[str] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)

    def add(self, results: Results) -> None:
        """Add the results of more tests or examples."""
        self.count += results.count
        self.passed += results.passed
        self.failed += results.failed
        self.skipped += results.skipped


def parse() -> argparse.Namespace:
    """Return the options of the command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("checkout", type=Path)
    parser.add_argument("--polyscope", default=LATEST)
    parser.add_argument("--robot", default="ur10e")
    parser.add_argument("--only", nargs="*", default=[], help="programs to run, or 'examples'")
    parser.add_argument("--test", default="*", help="a pattern as for --gtest_filter")
    parser.add_argument(
        "--log", type=Path, default=Path("runs/urcl"), help="folder for everything that was printed"
    )
    return parser.parse_args()


def check(checkout: Path) -> None:
    """End with a sentence unless this is a checkout, and what builds and runs it is installed."""
    if not (checkout / "tests/test_rtde_client.cpp").exists():
        raise SystemExit(f"urcl: {checkout} is not a checkout of Universal_Robots_Client_Library.")
    lacking = [
        name
        for need, name in NEEDED.items()
        if not (shutil.which(need) or (need[0] == "/" and Path(need).is_dir()))
    ]
    if lacking:
        raise SystemExit(
            "urcl: to build the library and run it, install Debian's packages "
            f"{' '.join(lacking)} first."
        )


def build(checkout: Path, log: Path) -> None:
    """Build what has changed since the last time."""
    folder = checkout / "build"
    jobs = f"-j{os.cpu_count()}"
    steps = [
        ["cmake", "-S", checkout, "-B", folder, *CONFIGURE],
        ["make", "-C", folder, jobs, *PROGRAMS],
        ["make", "-C", folder / "examples", jobs],
    ]
    print(f"Building {checkout} (some minutes the first time)", flush=True)
    with log.open("wb") as file:
        for step in steps:
            if subprocess.run(step, stdout=file, stderr=subprocess.STDOUT, check=False).returncode:
                raise SystemExit(
                    f"urcl: the library cannot be built: {step[0]} failed, and {log} says why."
                )


@contextmanager
def namespaces() -> Iterator[Networks]:
    """Make two networks, joined by a cable, until the block ends."""
    with ExitStack() as stack:
        ids = []
        keepers = []
        for _ in range(2):
            keeper = subprocess.Popen(
                ["unshare", "--net", "sleep", "infinity"], stderr=subprocess.PIPE
            )
            stack.callback(keeper.wait)
            stack.callback(keeper.kill)
            ids.append(str(keeper.pid))
            keepers.append(keeper)
        controller = ["nsenter", f"--net=/proc/{ids[0]}/ns/net"]
        client = ["nsenter", f"--net=/proc/{ids[1]}/ns/net"]
        try:
            for keeper in keepers:
                _await_namespace(keeper)
            # A pair of virtual interfaces, one in each network, both named "end".
            cable = f"ip link add end netns {ids[0]} type veth peer name end netns {ids[1]}"
            subprocess.run(cable.split(), check=True, capture_output=True)
            for network, address in ((controller, CONTROLLER), (client, CLIENT)):
                for command in (
                    f"ip addr add {address}/24 dev end",
                    "ip link set end up",
                    "ip link set lo up",
                ):
                    subprocess.run([*network, *command.split()], check=True, capture_output=True)
        except (OSError, subprocess.SubprocessError, TimeoutError) as error:
            output = b""
            if isinstance(error, subprocess.CalledProcessError):
                output = error.stderr
            for keeper in keepers:
                if keeper.poll() and keeper.stderr:
                    output += keeper.stderr.read()
            reason = output.decode().splitlines()[0] if output else str(error)
            raise SystemExit(
                f"urcl: two network namespaces cannot be made on this system ({reason}). Run it as "
                "root, where that is allowed."
            ) from None
        yield Networks(controller, client)


def _await_namespace(keeper: subprocess.Popen[bytes]) -> None:
    """Wait until a process has a network of its own."""
    deadline = time.monotonic() + MAX_NAMESPACE_S
    while keeper.poll() is None and time.monotonic() < deadline:
        if os.readlink(f"/proc/{keeper.pid}/ns/net") != os.readlink("/proc/self/ns/net"):
            return
        time.sleep(0.01)
    raise TimeoutError("no network namespace appeared")


@contextmanager
def emulator(network: list[str], options: argparse.Namespace, log: Path) -> Iterator[None]:
    """Run a new emulated controller, powered off, until the block ends.

    Args:
        network: What a command begins with to run in the controller's network.
        options: The options of the command line.
        log: File for what the emulator prints.
    """
    series = "cb3" if options.polyscope.startswith("3") else "e-series"
    programs = options.checkout / "tests/resources/dockerursim/programs" / series
    command = [
        *network,
        sys.executable,
        "-m",
        "simbridge",
        "emulate",
        "--robot",
        options.robot,
        "--host",
        CONTROLLER,
        "--polyscope",
        options.polyscope,
        "--programs",
        str(programs),
        "--start-pose",
        "ursim",
    ]
    with log.open("wb") as file:
        process = subprocess.Popen(command, stdout=file, stderr=subprocess.STDOUT)
        try:
            deadline = time.monotonic() + MAX_START_S
            while READY not in log.read_text(errors="replace"):
                if process.poll() is not None or time.monotonic() > deadline:
                    raise SystemExit(
                        f"urcl: the emulator did not start: {log.read_text(errors='replace')}"
                    )
                time.sleep(0.05)
            yield
        finally:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(10.0)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def run(
    command: list[str], folder: Path, options: argparse.Namespace, log: Path
) -> tuple[int, float]:
    """Run a test or an example.

    Args:
        command: The command.
        folder: The folder that it runs in.
        options: The options of the command line.
        log: File for what it prints.

    Returns:
        The exit status and the duration, s.
    """
    # These tell UR's tests which variables and which model to expect.
    version = "latest" if options.polyscope == LATEST else options.polyscope
    environment = {**os.environ, "URSIM_VERSION": version, "ROBOT_MODEL": options.robot}
    begin = time.monotonic()
    with log.open("wb") as file:
        try:
            completed = subprocess.run(
                command,
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                env=environment,
                timeout=MAX_DURATION_S,
                check=False,
            )
            status = completed.returncode
        except subprocess.TimeoutExpired:
            status = TIMEOUT_STATUS
    return status, time.monotonic() - begin


def tests_of(program: Path, pattern: str) -> list[str]:
    """Return the names of a program's tests that match a pattern, as `Suite.test`."""
    listing = subprocess.run(
        [program, "--gtest_list_tests", f"--gtest_filter={pattern}"],
        capture_output=True,
        text=True,
        check=True,
    )
    names = []
    suite = ""
    for line in listing.stdout.splitlines():
        if line.startswith(" "):
            names.append(suite + line.split("#")[0].strip())
        elif line.endswith("."):
            suite = line
    return names


def run_tests(name: str, networks: Networks, options: argparse.Namespace, log: Path) -> Results:
    """Run the tests of one of UR's programs, with an emulator of their own.

    Args:
        name: The program, a key of `PROGRAMS`.
        networks: The networks of the controller and of the client.
        options: The options of the command line.
        log: Folder for everything that is printed.
    """
    program = options.checkout / "build" / "tests" / name
    results = Results()
    with emulator(networks.controller, options, log / f"{name}.emulator.log"):
        for test in tests_of(program, options.test):
            # The name of a test with parameters ends with a slash and a number: Suite.test/0.
            output = log / f"{test.replace('/', '-')}.log"
            command = [
                *networks.client,
                str(program),
                f"--gtest_filter={test}",
                *PROGRAMS[name],
                "--robot_ip",
                CONTROLLER,
            ]
            status, seconds = run(command, options.checkout / "tests", options, output)

            results.count += 1
            if status:
                results.failed.append(f"{name} {test}: status {status} after {seconds:.1f} s")
            elif "[  SKIPPED ]" in output.read_text(errors="replace"):
                results.skipped.append(f"{name} {test}")
            else:
                results.passed += 1
    return results


def run_examples(networks: Networks, options: argparse.Namespace, log: Path) -> Results:
    """Run the examples of the library, each with an emulator of its own.

    An example passes if its exit status is 0 and the emulator's log shows no error.

    Args:
        networks: The networks of the controller and of the client.
        options: The options of the command line.
        log: Folder for everything that is printed.
    """
    results = Results()
    for example in sorted((options.checkout / "build" / "examples").glob("*")):
        if not (example.is_file() and os.access(example, os.X_OK)):
            continue

        emulator_log = log / f"{example.name}.emulator.log"
        command = [*networks.client, str(example), CONTROLLER, "5"]
        with emulator(networks.controller, options, emulator_log):
            status, seconds = run(command, options.checkout, options, log / f"{example.name}.log")
        has_error = ERROR.search(emulator_log.read_text(errors="replace")) is not None

        results.count += 1
        if status == 0 and not has_error:
            results.passed += 1
        else:
            why = f"status {status}" if status else "an error in the emulator's log"
            results.failed.append(f"example {example.name}: {why} after {seconds:.1f} s")
    return results


def main() -> int:
    """Build the library, run what the options name, and return the status to exit with."""
    options = parse()
    options.checkout = options.checkout.resolve()
    log = options.log.resolve()
    check(options.checkout)
    log.mkdir(parents=True, exist_ok=True)

    # Where namespaces are not allowed, say so before anything is built.
    with namespaces():
        pass
    build(options.checkout, log / "build.log")

    total = Results()
    with namespaces() as networks:
        print("| program | tests | passed |\n|---|---|---|", flush=True)
        for name in PROGRAMS:
            if not options.only or name in options.only:
                results = run_tests(name, networks, options, log)
                print(f"| {name} | {results.count} | {results.passed} |", flush=True)
                total.add(results)
        print(f"| sum | {total.count} | {total.passed} |", flush=True)

        if not options.only or "examples" in options.only:
            results = run_examples(networks, options, log)
            print(f"| examples | {results.count} | {results.passed} |", flush=True)
            total.add(results)

    for line in total.skipped:
        print(f"skipped by UR's own file, not counted as passed: {line}")
    for line in total.failed:
        print(f"not passed: {line}")
    print(f"Everything that was printed is below {log}.")
    return 1 if total.failed else 0


if __name__ == "__main__":
    sys.exit(main())
