"""`python -m tests.soak`: a campaign of random faults (campaign.py), bounded in time, number and memory.

`--seed 1 --count 100` runs these seeds. Without `--seed` it is random, and printed. `--table FILE...` only sums up.
"""

from __future__ import annotations

import argparse
import random
import resource
import sys
from pathlib import Path

from tests.soak.campaign import read_results, run_campaign, table

# Address space of each process, bytes; a run takes less than a quarter of it.
MEMORY = 8 << 30


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description=__doc__)
    parser.add_argument("--seed", type=int, default=random.randrange(10**6), help="the first")
    parser.add_argument("--count", type=int, default=10**6, help="how many trials at most")
    parser.add_argument("--minutes", type=float, default=60.0, help="how long at most")
    parser.add_argument("--host", default="127.0.0.81", help="a loopback address for the emulated controller")
    parser.add_argument("--robot", default="ur10e", choices=["ur10e", "ur10"])
    parser.add_argument("--results", type=Path, default=Path("faults.jsonl"), help="takes a line for each trial")
    parser.add_argument("--table", type=Path, nargs="+", metavar="FILE", help="sum up these results")
    given = parser.parse_args()
    if given.table:
        results = read_results(given.table)
    else:
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        print(f"Random faults, seeds from {given.seed} on, for {given.minutes:g} minutes at most; {given.results}")
        seeds = range(given.seed, given.seed + given.count)
        results = run_campaign(seeds, given.host, given.robot, given.results, 60.0 * given.minutes)
    print(table(results))
    for result in results:
        for violation in result.violations:
            print(f"seed {result.seed} ({' and '.join(result.faults)}, {result.phase}): {violation}")
    return int(any(result.violations for result in results))


if __name__ == "__main__":
    sys.exit(main())
