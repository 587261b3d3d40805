"""Record what simbridge does, so that a change of its code can be shown to change nothing else.

    python tools/net.py record DIRECTORY   with the environment of the checkout to record
    python tools/net.py compare OLD NEW    print what differs; exits with 1 where anything does

A record is a tree of small text files. Arrays are kept as one SHA-256 per column, so that a
difference names the column. Masked are: columns of the host's clock, wall times, versions, dates,
paths, and identities that hash our source.

Names that move between packages are imported in one place each; who moves a module adapts the
import here.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import contextlib
import csv
import hashlib
import html.parser
import io
import json
import multiprocessing
import os
import re
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

CHECKOUT = Path(__file__).resolve().parents[1]
RECORDINGS = Path(os.environ.get("SIMBRIDGE_RECORDINGS", CHECKOUT.parent / "shared" / "real"))
PROCESSES = 2

SCENARIOS = sorted(path.stem for path in (CHECKOUT / "scenarios").glob("*.py"))
SOLVERS = [
    "forward-dynamics",
    "jacobian-transpose",
    "damped-least-squares",
    "pseudoinverse",
    "selectively-damped",
    "feedback",
    "closed-form",
    "constrained",
]
COMMANDS = [
    "run", "check", "inspect", "robots", "scenarios", "runs", "view", "export", "report", "compare",
    "evaluate", "identify", "teleop", "studio", "sweep", "doctor", "emulate", "experiment",
    "completion",
]  # fmt: skip

# Keys of JSON and TOML whose values depend on the machine, the date or our source.
MASKED_KEYS = {
    "date", "created", "time", "started", "host", "versions", "version", "python", "platform",
    "hash", "identity", "wall_time_s", "seconds", "source", "file", "directory", "path", "report",
    "replay", "cpu", "git", "command", "solve_time_s", "compute_time_s", "host_name", "latency",
    "timing", "process", "environment", "software",
}  # fmt: skip


# ---- writing what was observed, with what varies masked


def mask_text(text: str, directory: Path) -> str:
    """Replace paths, dates, durations of computation and hashes by fixed words."""
    text = text.replace(str(directory), "<dir>").replace(str(CHECKOUT), "<checkout>")
    text = re.sub(r"Note: Compiling[^\n]*\n", "", text)
    text = re.sub(
        r"\d{4}-\d{2}-\d{2}([_T ]\d{2}[-:]\d{2}([-:]\d{2})?)?(\.\d+)?(Z|[+-]\d{2}:\d{2})?",
        "<date>",
        text,
    )
    text = re.sub(r"/tmp/[\w./-]+", "<tmp>", text)
    text = re.sub(r"\b[0-9a-f]{12,64}\b", "<hash>", text)
    text = re.sub(r"\b(version|simbridge) \d+\.\d+\.\d+\S*", r"\1 <version>", text)
    return text


def mask_values(value: Any, directory: Path) -> Any:
    """Mask the values of a JSON or TOML document by their keys."""
    if isinstance(value, dict):
        return {
            key: "<masked>"
            if key in MASKED_KEYS or "host" in key or "wall" in key
            else mask_values(item, directory)
            for key, item in value.items()
        }
    if isinstance(value, list):
        return [mask_values(item, directory) for item in value]
    if isinstance(value, str):
        return mask_text(value, directory)
    return value


def digest(array: Any) -> str:
    """SHA-256 of an array's type, shape and bytes, shortened."""
    array = np.ascontiguousarray(array)
    content = f"{array.dtype}{array.shape}".encode() + array.tobytes()
    return hashlib.sha256(content).hexdigest()[:16]


class Text(html.parser.HTMLParser):
    """Collects the text of a page.

    Left out are its styles, its scripts and the coordinates of its drawings.
    """

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []
        self._hidden = 0

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self._hidden += tag in ("style", "script")
        self.lines += [
            f"[{name}] {value}"
            for name, value in attributes
            if name in ("title", "aria-label", "alt")
        ]

    def handle_endtag(self, tag: str) -> None:
        self._hidden -= tag in ("style", "script")

    def handle_data(self, data: str) -> None:
        if not self._hidden and data.strip():
            self.lines.append(" ".join(data.split()))


class Record:
    """One case's files in the tree."""

    def __init__(self, out: Path, name: str, scratch: Path) -> None:
        self.scratch = scratch
        self._base = out / name
        self._base.mkdir(parents=True, exist_ok=True)

    def text(self, name: str, text: str) -> None:
        (self._base / f"{name}.txt").write_text(mask_text(text, self.scratch), encoding="utf-8")

    def document(self, name: str, value: Any) -> None:
        masked = mask_values(value, self.scratch)
        self.text(name, json.dumps(masked, indent=1, default=repr, allow_nan=True))

    def arrays(self, name: str, arrays: dict[str, Any]) -> None:
        lines = [f"{digest(array)} {key}" for key, array in sorted(arrays.items())]
        self.text(name, "\n".join(lines) + "\n")

    def columns(self, name: str, path: Path) -> None:
        """The columns of a CSV, one digest each, without those of the host's clock."""
        with path.open(newline="", encoding="utf-8") as file:
            header, *rows = list(csv.reader(file))
        columns = list(zip(*rows, strict=True)) if rows else [()] * len(header)
        lines = [
            f"{hashlib.sha256(repr(column).encode()).hexdigest()[:16]} {title}"
            for title, column in zip(header, columns, strict=True)
            if "host" not in title and "wall" not in title and "seconds" not in title
        ]
        self.text(name, f"{len(rows)} rows\n" + "\n".join(lines) + "\n")

    def page(self, name: str, path: Path, *, ordered: bool = True) -> None:
        parser = Text()
        parser.feed(path.read_text(encoding="utf-8"))
        lines = parser.lines if ordered else sorted(parser.lines)
        self.text(name, "\n".join(lines) + "\n")

    def run_directory(self, directory: Path) -> None:
        """Everything that a run left: settings, summary, plan, log, pages."""
        import msgspec

        for path in sorted(directory.iterdir()):
            if path.suffix == ".toml":
                self.document(path.name, msgspec.toml.decode(path.read_bytes()))
            elif path.suffix == ".json":
                self.document(path.name, json.loads(path.read_text(encoding="utf-8")))
            elif path.suffix == ".jsonl":
                lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
                self.document(path.name, lines)
            elif path.suffix == ".npz":
                with np.load(path) as arrays:
                    self.arrays(path.name, dict(arrays))
            elif path.suffix == ".html":
                self.page(path.name, path)
        if (directory / "log.mcap").exists():
            command(self, "export_csv", "export", str(directory), "--to", "csv")
            self.columns("log", directory / "samples.csv")


def command(record: Record, name: str, *arguments: str) -> None:
    """Run the program in this process; keep its status and what it prints."""
    from simbridge.cli.command_line import main

    output = io.StringIO()
    errors = io.StringIO()
    with (
        contextlib.redirect_stdout(output),
        contextlib.redirect_stderr(errors),
        contextlib.chdir(record.scratch),
    ):
        try:
            status: Any = main(list(arguments))
        except SystemExit as end:
            status = end.code
    record.text(
        name, f"status {status}\n{output.getvalue()}\n---- standard error\n{errors.getvalue()}"
    )


# ---- the cases


def helps(record: Record) -> None:
    """Record every help text, and the lists of robots and scenarios."""
    for name in COMMANDS:
        command(record, f"help_{name}", name, "--help")
    for name in ("robots", "scenarios"):
        command(record, name, name)
        command(record, f"{name}_json", name, "--json")
    for solver in SOLVERS:
        command(record, f"help_{solver}", "run", "circle", "--solver", solver, "--help")


def run_case(*arguments: str) -> Callable[[Record], None]:
    """Return the case of one `simbridge run`: what it prints and the run directory."""

    def case(record: Record) -> None:
        out = record.scratch / "out"
        command(record, "terminal", "run", *arguments, "--out", str(out))
        if out.exists():
            record.run_directory(out)

    return case


def check_case(*arguments: str) -> Callable[[Record], None]:
    """Return the case of one `simbridge check`: its text and its JSON."""

    def case(record: Record) -> None:
        command(record, "check", "check", *arguments)
        command(record, "check_json", "check", *arguments, "--json")

    return case


def recording(record: Record) -> None:
    """A motion as a TUM file and as a CSV: inspected, checked and run."""
    times = np.arange(0.0, 3.0, 0.02)
    angle = np.pi * (1.0 - np.cos(np.pi * times / times[-1]))
    poses = np.zeros((len(times), 7))
    poses[:, 0] = 0.6 + 0.05 * np.cos(angle)
    poses[:, 1] = 0.16 + 0.05 * np.sin(angle)
    poses[:, 2] = 0.5
    poses[:, 3] = 1.0
    rows = np.column_stack([times, poses])
    tum = record.scratch / "motion.tum"
    np.savetxt(tum, rows)
    table = record.scratch / "motion.csv"
    np.savetxt(table, rows, delimiter=",", header="t,x,y,z,qx,qy,qz,qw", comments="")
    for path in (tum, table):
        command(record, f"inspect_{path.suffix[1:]}", "inspect", str(path))
        command(record, f"check_{path.suffix[1:]}", "check", str(path), "--robot", "ur10e")
    run_case(str(tum), "--robot", "ur10e")(record)


def exports(record: Record) -> None:
    """Record what follows a run: exports, figures, a comparison, a replay, an evaluation."""
    out = record.scratch / "out"
    command(record, "run", "run", "square_corners", "--robot", "ur5e", "--out", str(out))
    for kind in ("csv", "parquet", "mat", "tum", "mcap", "bag"):
        command(record, f"export_{kind}", "export", str(out), "--to", kind)
    command(record, "figures", "report", str(out), "--figures", str(record.scratch / "figures"))
    second = record.scratch / "second"
    command(
        record,
        "run_2",
        "run",
        "square_corners",
        "--robot",
        "ur5e",
        "--feedforward",
        "on",
        "--out",
        str(second),
    )
    compared = record.scratch / "compared"
    command(record, "compare", "compare", str(out), str(second), "--out", str(compared))
    record.page("compare_page", compared / "compare.html")
    again = record.scratch / "again"
    replay = ("run", "square_corners", "--robot", "ur5e", "--plan", str(out))
    command(record, "replay", *replay, "--out", str(again))
    record.run_directory(again)
    command(record, "evaluate", "evaluate", str(out), "--attained", str(second / "samples.csv"))
    for path in sorted(out.glob("*.tum")):
        record.text(path.name, hashlib.sha256(path.read_bytes()).hexdigest()[:10])


def repeats(record: Record) -> None:
    """Record a run that is repeated, with its summaries and pages."""
    out = record.scratch / "out"
    command(record, "terminal", "run", "circle", "--repeat", "2", "--out", str(out))
    for path in sorted(out.glob("*.json")):
        record.document(path.name, json.loads(path.read_text()))
    for path in sorted(out.glob("*.html")):
        record.page(path.name, path)


def sweep(record: Record) -> None:
    """Record a sweep: its terminal, its table of results and its page."""
    out = record.scratch / "out"
    grid = ("--grid", "solver.kp=5,10", "--grid", "servo-gain=300,2000", "--jobs", "1")
    command(record, "terminal", "sweep", "circle", "step", *grid, "--out", str(out))
    record.columns("results", out / "results.csv")
    # The page lists the points in the order in which they ended.
    record.page("page", out / "sweep.html", ordered=False)


def refusals(record: Record) -> None:
    """Record what is printed for arguments that are refused."""
    cases = {
        "unknown scenario": ("run", "circel"),
        "unknown robot": ("run", "circle", "--robot", "ur11"),
        "unknown option": ("run", "circle", "--solverr", "x"),
        "wrong value": ("run", "circle", "--speed-scale", "fast"),
        "too fast": ("check", "circle", "--speed-scale", "20"),
        "past the edge": ("check", "past_the_edge", "--on-limits", "refuse"),
        "wrong solver": ("check", "circle", "--solver", "nothing"),
        "wrong setting": ("check", "circle", "--solver.kp", "-1"),
        "no run": ("report", "nothing"),
        "no file": ("check", "./nothing.tum"),
    }
    for name, arguments in cases.items():
        command(record, name.replace(" ", "_"), *arguments)


def session(record: Record) -> None:
    """Record a live session in stepped time that takes every kind of input."""
    from tests.stepped_sessions import every_input, stepped

    out = record.scratch / "out"
    with stepped(out) as live_session:
        every_input(live_session)
    record.run_directory(out)


URSCRIPTS = {
    "movej": "movej([q[0] + 0.3, q[1], q[2], q[3], q[4], q[5]], a=1.4, v=1.0)",
    "movel": "p0 = get_target_tcp_pose()\nmovel(pose_add(p0, p[0, 0.1, 0, 0, 0, 0]), a=1.0, v=0.1)",
    "blend": (
        "p0 = get_target_tcp_pose()\n"
        "movel(pose_add(p0, p[0, 0.1, 0, 0, 0, 0]), a=1.0, v=0.1, r=0.02)\n"
        "movel(pose_add(p0, p[0.1, 0.1, 0, 0, 0, 0]), a=1.0, v=0.1)"
    ),
    "movep": "p0 = get_target_tcp_pose()\nmovep(pose_add(p0, p[0, 0.1, 0, 0, 0, 0]), a=1.0, v=0.1)",
    "speedj": "speedj([0.2, 0, 0, 0, 0, 0], 0.5, 0.5)\nstopj(1.0)",
    "speedl": "speedl([0.05, 0, 0, 0, 0, 0], 0.5, 0.5)\nstopl(1.0)",
    "servoj": (
        "i = 0\nwhile i < 250:\n"
        "  servoj([q[0] + 0.001 * i, q[1], q[2], q[3], q[4], q[5]], "
        "t=0.002, lookahead_time=0.05, gain=500)\n"
        "  i = i + 1\nend\nstopj(2.0)"
    ),
    "threads": (
        "n = 0\nthread count():\n  while True:\n    n = n + 1\n    sync()\n  end\nend\n"
        "t = run count()\nsleep(0.1)\nkill t\nwrite_output_integer_register(0, n)"
    ),
    "mathematics": (
        "set_standard_digital_out(0, norm(get_actual_tcp_pose()) > 0.1)\nfault = [1, 2][5]"
    ),
}


def urscript(record: Record) -> None:
    """Record where programs in URScript move the emulated arm, and what they print."""
    from tests.emulator.bench import Bench

    for name, body in URSCRIPTS.items():
        bench = Bench().running()
        bench.load(*body.splitlines())
        with contextlib.suppress(AssertionError):
            bench.finish(10.0)
        record.arrays(name, {"target_q": np.array(bench.q)})
        record.text(f"{name}_messages", "\n".join(map(str, bench.messages)))


def fake_link(record: Record) -> None:
    """Record what the servo loop sends to a simulated controller, with each kind of trouble."""
    from simbridge.backends.streamed_motion import PlanReplay
    from simbridge.errors import SimbridgeError
    from tests.backends.servo_bench import Bench, glide

    troubles: dict[str, dict[str, Any]] = {
        "none": {},
        "drift": {"drift": 5e-4},
        "slider": {
            "changes": {60: {"target_speed_fraction": 0.3}, 120: {"target_speed_fraction": 1.0}}
        },
        "pause": {"changes": {60: {"runtime_state": 4}, 120: {"runtime_state": 2}}},
        "protective stop": {"changes": {60: {"safety_mode": 3, "runtime_state": 4}}},
        "freeze": {"freezes": {60: 0.05, 90: 0.15}},
        "lost states": {"delay": lambda tick: None if 50 < tick < 60 else 0.0},
        "late states": {"delay": lambda tick: 0.006 if tick % 7 == 0 else 0.0},
    }
    for period in (0.008, 0.002):
        for trouble, options in troubles.items():
            bench = Bench(period, **options)
            ending = "completed"
            try:
                bench.run(PlanReplay(glide(200, period=period)))
            except SimbridgeError as error:
                ending = f"{type(error).__name__}: {error}"
            name = f"{trouble.replace(' ', '_')}_{period}"
            record.arrays(name, {"setpoints": bench.wire, "sent at": bench.sent_at})
            record.text(f"{name}_ending", ending)


def identify(record: Record) -> None:
    """Record what is identified from the recordings of real arms."""
    for path in sorted(RECORDINGS.rglob("*.csv.gz")):
        name = f"{path.parent.name}_{path.name.split('.')[0]}"
        command(record, name, "identify", str(path))


def experiments(record: Record) -> None:
    """Record what two experiments print."""
    command(
        record, "homogenization", "experiment", "homogenization", "--out", str(record.scratch / "a")
    )
    command(record, "convergence", "experiment", "convergence", "--out", str(record.scratch / "b"))


def panda_file() -> str:
    """Return the path of the URDF of an arm by another manufacturer."""
    import pybullet_data

    return str(Path(pybullet_data.getDataPath(), "franka_panda", "panda.urdf"))


def cases() -> Iterator[tuple[str, Callable[[Record], None]]]:
    """The longest first, so that both processes end together."""
    if RECORDINGS.exists():
        yield "identify", identify
    yield "sweep", sweep
    yield "repeats", repeats
    yield "exports", exports
    yield "session", session
    yield "recording", recording
    for name in SCENARIOS:
        yield f"run_{name}", run_case(name)
    for name in SOLVERS:
        yield f"solver_{name}", run_case("step", "--robot", "ur10e", "--solver", name)
        yield f"check_{name}", check_case("figure_eight", "--robot", "ur5e", "--solver", name)
    yield (
        "feedforward",
        run_case("circle", "--robot", "ur10e", "--feedforward", "on", "--sample-noise", "0.5"),
    )
    yield "ideal", run_case("circle", "--robot", "ur3e", "--servo", "ideal", "--speed-scale", "0.5")
    yield "planar", run_case("circle", "--robot", "planar3r")
    yield "panda", run_case("circle", "--robot", panda_file(), "--tip", "panda_grasptarget")
    yield "urscript", urscript
    yield "fake_link", fake_link
    yield "helps", helps
    yield "refusals", refusals
    yield "experiments", experiments


def record_case(name: str, out: Path) -> tuple[str, float]:
    """Record one case in a scratch directory of its own; what it raises is part of the record."""
    begin = time.monotonic()
    os.environ["COLUMNS"] = "100"
    functions = dict(cases())
    with tempfile.TemporaryDirectory() as scratch:
        record = Record(out, name, Path(scratch))
        try:
            functions[name](record)
        except Exception as error:
            record.text("raised", f"{type(error).__name__}: {error}")
            print(f"{name} raised:", *traceback.format_exc().splitlines()[-4:], sep="\n")
    return name, time.monotonic() - begin


def record_all(out: Path, only: str) -> None:
    """Record the cases whose names match a regular expression, each in a process of its own."""
    names = [name for name, _ in cases() if re.search(only, name)]
    context = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(PROCESSES, mp_context=context) as pool:
        futures = [pool.submit(record_case, name, out) for name in names]
        for future in concurrent.futures.as_completed(futures):
            name, seconds = future.result()
            print(f"{seconds:6.1f} s  {name}", flush=True)


def compare(old: Path, new: Path) -> int:
    """Print which files differ, with their first differing lines."""
    paths = sorted({path.relative_to(tree) for tree in (old, new) for path in tree.rglob("*.txt")})
    different = 0
    for path in paths:
        missing = [tree for tree in (old, new) if not (tree / path).exists()]
        if missing:
            different += 1
            print(f"{path}: only in {new if missing == [old] else old}")
            continue
        before = (old / path).read_text().splitlines()
        after = (new / path).read_text().splitlines()
        if before != after:
            different += 1
            print(f"{path}:")
            changes = [(a, b) for a, b in zip(before, after, strict=False) if a != b][:4]
            for a, b in changes:
                print(f"  - {a[:200]}\n  + {b[:200]}")
            if len(before) != len(after):
                print(f"  {len(before)} lines, {len(after)} now")
    print(f"{len(paths)} files, {different} different")
    return int(different > 0)


def main() -> int:
    """Record or compare, as the command line says, and return the status to exit with."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    recorder = commands.add_parser("record")
    recorder.add_argument("out", type=Path)
    recorder.add_argument("--only", default="", help="a regular expression of the cases' names")
    comparer = commands.add_parser("compare")
    comparer.add_argument("old", type=Path)
    comparer.add_argument("new", type=Path)
    arguments = parser.parse_args()
    sys.path.insert(0, str(CHECKOUT))
    if arguments.command == "compare":
        return compare(arguments.old, arguments.new)
    record_all(arguments.out.resolve(), arguments.only)
    return 0


if __name__ == "__main__":
    sys.exit(main())
