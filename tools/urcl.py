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
from pathlib import Path

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
NEEDED = {  # Debian's packages, by the commands and folders in them
    "cmake": "cmake",
    "g++": "g++",
    "make": "make",
    "/usr/src/googletest": "googletest",
    "unshare": "util-linux",
    "ip": "iproute2",
}
LIMIT = 180.0  # s, of a test or an example
START_LIMIT = 60.0  # s, of an emulator
# What an emulator's log must not show in an example; the program bad_code is sent because it is
# bad.
ERROR = re.compile(
    r"^(fault in (?!bad_code[ :])|C\d+A\d+: Protective stop|Traceback)", re.MULTILINE
)


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
def namespaces() -> Iterator[tuple[list[str], list[str]]]:
    """Yield the words before a command that run it beside the controller, and the client."""
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
        enter = [["nsenter", f"--net=/proc/{number}/ns/net"] for number in ids]
        try:
            for keeper in keepers:
                _await_namespace(keeper)
            cable = [
                "ip",
                "link",
                "add",
                "end",
                "netns",
                ids[0],
                "type",
                "veth",
                "peer",
                "name",
                "end",
                "netns",
            ]
            subprocess.run([*cable, ids[1]], check=True, capture_output=True)
            for before, address in zip(enter, (CONTROLLER, CLIENT), strict=True):
                for command in (
                    f"addr add {address}/24 dev end",
                    "link set end up",
                    "link set lo up",
                ):
                    subprocess.run(
                        [*before, "ip", *command.split()], check=True, capture_output=True
                    )
        except (OSError, subprocess.SubprocessError, TimeoutError) as error:
            said = getattr(error, "stderr", b"") or b"".join(
                k.stderr.read() for k in keepers if k.poll() and k.stderr
            )
            reason = said.decode().splitlines()[0] if said else str(error)
            raise SystemExit(
                f"urcl: this system does not allow it to make two network namespaces ({reason}); "
                "run it as root, where "
                f"that is allowed."
            ) from None
        yield enter[0], enter[1]


def _await_namespace(keeper: subprocess.Popen[bytes], limit: float = 5.0) -> None:
    """Wait until a process has a network of its own."""
    deadline = time.monotonic() + limit
    while keeper.poll() is None and time.monotonic() < deadline:
        if os.readlink(f"/proc/{keeper.pid}/ns/net") != os.readlink("/proc/self/ns/net"):
            return
        time.sleep(0.01)
    raise TimeoutError("no network namespace appeared")


@contextmanager
def emulator(before: list[str], options: argparse.Namespace, log: Path) -> Iterator[None]:
    """A new emulated controller, powered off."""
    series = "cb3" if options.polyscope.startswith("3") else "e-series"
    programs = options.checkout / "tests/resources/dockerursim/programs" / series
    command = [
        *before,
        sys.executable,
        "-m",
        "simbridge",
        "emulate",
        "--robot",
        options.robot,
        "--host",
        CONTROLLER,
    ]
    command += [
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
            deadline = time.monotonic() + START_LIMIT
            while "Ctrl-C ends it" not in log.read_text(errors="replace"):
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
    """Exit status (None counts as 124, when it took too long) and duration, s."""
    # By these, UR's tests know which variables and which model to expect.
    version = "latest" if options.polyscope == LATEST else options.polyscope
    environment = {**os.environ, "URSIM_VERSION": version, "ROBOT_MODEL": options.robot}
    begin = time.monotonic()
    with log.open("wb") as file:
        try:
            ended = subprocess.run(
                command,
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                env=environment,
                timeout=LIMIT,
                check=False,
            )
            status = ended.returncode
        except subprocess.TimeoutExpired:
            status = 124
    return status, time.monotonic() - begin


def tests_of(program: Path, pattern: str) -> list[str]:
    """Return the names of a program's tests that match a pattern, as `Suite.test`."""
    listed = subprocess.run(
        [program, "--gtest_list_tests", f"--gtest_filter={pattern}"],
        capture_output=True,
        text=True,
        check=True,
    )
    names = []
    suite = ""
    for line in listed.stdout.splitlines():
        if line.startswith(" "):
            names.append(suite + line.split("#")[0].strip())
        elif line.endswith("."):
            suite = line
    return names


def main() -> int:
    """Build the library, run what the options name, and return the status to exit with."""
    options = parse()
    options.checkout = options.checkout.resolve()
    log = options.log.resolve()
    folder = options.checkout / "build"
    check(options.checkout)
    log.mkdir(parents=True, exist_ok=True)
    with namespaces():
        pass  # where that is not allowed, it is said before anything is built
    build(options.checkout, log / "build.log")
    examples = sorted(
        path
        for path in (folder / "examples").glob("*")
        if path.is_file() and os.access(path, os.X_OK)
    )
    passed = 0
    total = 0
    failed = []
    left_out = []
    with namespaces() as (controller, client):
        print("| program | tests | passed |\n|---|---|---|", flush=True)
        for name, arguments in PROGRAMS.items():
            if options.only and name not in options.only:
                continue
            good = 0
            names = tests_of(folder / "tests" / name, options.test)
            with emulator(controller, options, log / f"{name}.emulator.log"):
                for test in names:
                    output = (
                        log / f"{test.replace('/', '-')}.log"
                    )  # of a test with parameters: Suite.test/0
                    command = [
                        *client,
                        str(folder / "tests" / name),
                        f"--gtest_filter={test}",
                        *arguments,
                    ]
                    command += ["--robot_ip", CONTROLLER]
                    status, seconds = run(command, options.checkout / "tests", options, output)
                    skipped = "[  SKIPPED ]" in output.read_text(errors="replace")
                    if status:
                        failed.append(f"{name} {test}: status {status} after {seconds:.1f} s")
                    elif skipped:
                        left_out.append(f"{name} {test}")
                    else:
                        good += 1
            print(f"| {name} | {len(names)} | {good} |", flush=True)
            passed += good
            total += len(names)
        print(f"| sum | {total} | {passed} |", flush=True)
        if not options.only or "examples" in options.only:
            good = 0
            for example in examples:
                heard = log / f"{example.name}.emulator.log"
                output = log / f"{example.name}.log"
                with emulator(controller, options, heard):
                    status, seconds = run(
                        [*client, str(example), CONTROLLER, "5"], options.checkout, options, output
                    )
                errors = ERROR.search(heard.read_text(errors="replace"))
                if status == 0 and not errors:
                    good += 1
                else:
                    why = f"status {status}" if status else "an error in the emulator's log"
                    failed.append(f"example {example.name}: {why} after {seconds:.1f} s")
            print(f"| examples | {len(examples)} | {good} |", flush=True)
    for line in left_out:
        print(f"skipped by UR's own file, not counted as passed: {line}")
    for line in failed:
        print(f"not passed: {line}")
    print(f"Everything that was printed is below {log}.")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
