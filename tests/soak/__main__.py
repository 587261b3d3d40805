"""`python -m tests.soak`: what needs long real time, within a number of minutes and with bounded
memory.

First the tests marked `soak`, and expensive properties with more examples than in `make test`, for
at most half of the time; then a stream at the controller's rate for a tenth of it, random inputs of
a live session (live.py) for an eighth, dragging in the studio's page (studio.py) for an eighth, but
at most half an hour, and random faults (campaign.py) until the time is over, for half of it through
each link to the controller. `--only faults --seed 1 --count 100` repeats these faults through both
links, and with `--link rtde` through that one; `--only live` repeats streams of inputs; `--table
FILE...` sums up the results of several campaigns.
"""

from __future__ import annotations

import argparse
import os
import random
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import get_args

from simbridge.planning.link_choices import LinkName
from tests.soak import deadline
from tests.soak.campaign import read_results, run_campaign, table
from tests.soak.live import run_streams
from tests.soak.stream import stream
from tests.soak.studio import LONGEST, drag

# Address space of each process, bytes; a run takes less than a quarter of it.
MEMORY = 8 << 30
# For tests that are cut off to end what they have started, s.
_END_TIMEOUT = 60.0
# For the tests that have begun before the time is over, s.
_LONGEST_TEST = 600.0
LINKS = get_args(LinkName)
PARTS = ("tests", "stream", "live", "studio", "faults")


def _tests(seconds: float) -> list[str]:
    """Run the marked tests, and properties with many examples.

    Args:
        seconds: Time after which no further test begins, s. Pytest counts the rest as skipped.

    Returns:
        A sentence if a test failed, or if the last ones did not end; else nothing.
    """
    marked = ["-m", "soak or property", "--hypothesis-profile", "soak", "-p", "tests.soak.deadline"]
    command = [sys.executable, "-m", "pytest", "-n", "auto", *marked]
    environment = {**os.environ, deadline.END: str(time.time() + seconds)}
    with subprocess.Popen(command, env=environment) as tests:
        try:
            status = tests.wait(seconds + _LONGEST_TEST)
        except subprocess.TimeoutExpired:
            # As with Ctrl-C, the tests end the controllers that they have started.
            tests.send_signal(signal.SIGINT)
            try:
                tests.wait(_END_TIMEOUT)
            except subprocess.TimeoutExpired:
                tests.kill()
            return [f"A test marked soak did not end within {_LONGEST_TEST / 60.0:.0f} minutes."]

    return [] if status == 0 else [f"The tests marked soak ended with status {status}."]


def _faults(given: argparse.Namespace, seconds: float) -> list[str]:
    """Run random faults through each link, and print what they showed; what must not be."""
    links = LINKS if given.link is None else (given.link,)
    if given.polyscope:
        links = ("rtde",)
    print(
        f"Random faults, from seed {given.seed} on, for {seconds / 60.0:.0f} minutes at most, "
        f"through {' and '.join(links)}: {given.results}",
        flush=True,
    )
    seeds = range(given.seed, given.seed + given.count)
    results = []
    for link in links:
        results += run_campaign(
            seeds,
            given.host,
            given.robot,
            link,
            polyscope=given.polyscope,
            results=given.results,
            seconds=seconds / len(links),
        )
    print(table(results))
    return [
        f"seed {one.seed}, {one.link} ({' and '.join(one.faults)}, {one.phase}): {it}"
        for one in results
        for it in one.violations
    ]


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.soak",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--minutes",
        type=float,
        default=60.0,
        help="how long at most, after the environment is made",
    )
    parser.add_argument("--only", choices=PARTS, help="only this part")
    parser.add_argument(
        "--seed",
        type=int,
        default=random.randrange(10**6),
        help="of the first fault or stream; else random",
    )
    parser.add_argument(
        "--count", type=int, default=10**6, help="how many faults or streams at most"
    )
    parser.add_argument(
        "--host", default="127.0.0.81", help="a loopback address for the emulated controller"
    )
    parser.add_argument("--robot", default="ur10e", choices=["ur10e", "ur10"])
    parser.add_argument(
        "--link", choices=LINKS, help="only faults through this link to the controller"
    )
    parser.add_argument(
        "--polyscope",
        default="",
        choices=("10.7", "10.12", "10.14"),
        help="faults on a UR10e with this version of PolyScope X, through the only link to it",
    )
    parser.add_argument(
        "--results", type=Path, default=Path("soak.jsonl"), help="takes a line for each result"
    )
    parser.add_argument(
        "--table", type=Path, nargs="+", metavar="FILE", help="only sum up these results"
    )
    given = parser.parse_args()
    if given.table:
        print(table(read_results(given.table)))
        return 0
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, resource.getrlimit(resource.RLIMIT_AS)[1]))
    # A shell starts what it puts in the background deaf to Ctrl-C, nohup what it starts deaf to a
    # hangup, and the runs would be so, too.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    end = time.monotonic() + 60.0 * given.minutes
    violations = []
    for part in PARTS if given.only is None else (given.only,):
        left = end - time.monotonic()
        if left <= 0.0:
            print(f"No time was left for: {part}.")
        elif part == "tests":
            violations += _tests(left if given.only else min(left, 30.0 * given.minutes))
        elif part == "faults":
            violations += _faults(given, left)
        elif part == "live":
            seeds = range(given.seed, given.seed + given.count)
            length = left if given.only else min(left, 7.5 * given.minutes)
            violations += run_streams(seeds, given.host, given.robot, given.results, length)
        elif part == "studio":
            length = min(LONGEST, 7.5 * given.minutes)
            violations += drag(left if given.only else min(left, length))
        else:
            violations += stream(
                left if given.only else 6.0 * given.minutes, given.host, given.robot, given.results
            )
    print("\n".join(violations) or "No violation.")
    return int(bool(violations))


if __name__ == "__main__":
    sys.exit(main())
