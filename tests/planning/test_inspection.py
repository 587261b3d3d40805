"""`simbridge inspect` describes a trajectory in a table, as JSON, in a picture."""

from __future__ import annotations

import functools
import json

import numpy as np
import pytest

from simbridge.planning.inspection import inspect
from simbridge.report.palette import ALARM
from simbridge.trajectory import Trajectory, square, write_bag
from tests.program import answer_to

pytestmark = pytest.mark.slow


def test_a_square_has_its_facts(cli, tum, tmp_path):
    file = tum(tmp_path / "square.tum", square(side=0.4, speed=0.2, rate=50.0, laps=2))
    answer = cli("inspect", file, "--json")
    facts = json.loads(answer.out)

    assert answer.status == 0
    assert facts["samples"] == 801
    assert facts["duration_s"] == pytest.approx(16.0)
    assert facts["rate_hz"] == pytest.approx(50.0)
    assert facts["step_std_s"] == pytest.approx(0.0, abs=1e-12)
    assert facts["gaps"] == 0
    assert facts["length_m"] == pytest.approx(3.2)

    for name in ("mean", "p95", "max"):
        assert facts["speed_m_s"][name] == pytest.approx(0.2)
        assert facts["turn_rate_rad_s"][name] == pytest.approx(0.0)

    assert facts["extent_min_m"] == pytest.approx([0.55, -0.036, 0.3])
    assert facts["extent_max_m"] == pytest.approx([0.95, 0.364, 0.3])
    assert facts["reach"]["share"] == 1.0
    assert facts["reach"]["first_missed"] is None


def test_gaps_and_fast_stretches_are_located(through):
    times = np.array([0.0, 0.1, 0.2, 0.7, 0.8, 0.9])
    x = np.array([0.0, 0.01, 0.02, 0.07, 0.08, 0.12])

    facts, attained = inspect(through(np.column_stack([x, 0.0 * x, 0.0 * x]), times))

    assert facts.gaps == 1
    assert attained is None
    assert facts.reach is None
    assert facts.longest_gap_s == pytest.approx(0.5)
    assert facts.longest_gap_at_s == pytest.approx(0.2)
    assert facts.speed_m_s.mean == pytest.approx(0.12 / 0.9)
    assert facts.speed_m_s.max == pytest.approx(0.4)
    # 0.8 of 0.9 s go at 0.1 m/s: the last ninth is above the 95th percentile's rank.
    assert facts.speed_m_s.p95 == pytest.approx(0.4)


def test_a_single_sample_has_no_rate(cli, tum, tmp_path, through):
    file = tum(tmp_path / "one.tum", through([[0.7, 0.1, 0.3]], [0.0]))
    facts = json.loads(cli("inspect", file, "--json").out)

    assert facts["samples"] == 1
    assert facts["rate_hz"] is None
    assert facts["speed_m_s"] is None
    assert cli("inspect", file).status == 0


def test_reach_is_shown(cli, tum, tmp_path, through):
    # 1.27 m is about as far as a UR10 gets with its tool down: of 0.8 to 1.7 m half and a bit is
    # within.
    x = np.linspace(0.8, 1.7, 31)
    points = np.column_stack([x, np.full(31, 0.164), np.full(31, 0.3)])
    file = tum(tmp_path / "out.tum", through(points, np.arange(31.0)))
    reach = json.loads(cli("inspect", file, "--json").out)["reach"]
    missed = reach["first_missed"]

    assert reach["robot"] == "ur10"
    assert reach["solved"] == 31
    assert 1.2 < x[missed] < 1.35
    assert reach["first_missed_s"] == pytest.approx(float(missed))
    assert reach["share"] == pytest.approx(missed / 31)
    assert f"first not reached: sample {missed}" in " ".join(cli("inspect", file).out.split())


def test_the_table_fits_eighty_columns(cli, line, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    out = cli("inspect", line).out

    assert all(len(text) <= 80 for text in out.splitlines()[1:])

    for word in ("samples", "rate", "gaps", "length", "speed", "turning", "reachable"):
        assert f"\n{word} " in out

    assert "10.00 Hz" in out
    assert "mean 0.100" in out


@pytest.fixture(scope="module")
def picture(tmp_path_factory, tum, through):
    """Draws a line of ten samples that ends at a point (3,), m, as .svg; returns the drawing.

    `inspect` says on stdout where the picture is.
    """
    directory = tmp_path_factory.mktemp("pictures")

    @functools.cache
    def draw(*end):
        points = np.linspace([0.7, 0.0, 0.3], end, 10)
        file = tum(directory / "line.tum", through(points, np.arange(10.0)))
        answer = answer_to("inspect", file, "--out", directory / "line.svg")
        assert answer.status == 0
        assert f"Picture: {directory / 'line.svg'}" in answer.out
        return (directory / "line.svg").read_text()

    return draw


@pytest.mark.shares_setup
@pytest.mark.parametrize(
    ("end", "title"), [((0.9, 0.0, 0.3), "from the side"), ((0.7, 0.2, 0.3), "from the front")]
)
def test_a_picture_shows_the_motions_plane(picture, end, title):
    assert f"<!-- {title} -->" in picture(*end)


@pytest.mark.shares_setup
def test_a_picture_marks_what_is_out_of_reach(picture):
    assert ALARM not in picture(0.9, 0.0, 0.3)
    assert ALARM in picture(1.9, 0.0, 0.3)


@pytest.fixture(scope="module")
def drawn(tmp_path_factory, line):
    """What `inspect --json` prints to stdout and stderr, and the picture that it draws, a .png."""
    picture = tmp_path_factory.mktemp("drawn") / "line.png"
    answer = answer_to("inspect", line, "--json", "--out", picture)
    assert answer.status == 0
    return answer.out, answer.err, picture


@pytest.mark.shares_setup
def test_the_suffix_decides_the_format(drawn, picture):
    _, _, png = drawn

    assert png.read_bytes().startswith(b"\x89PNG")
    assert picture(0.9, 0.0, 0.3).startswith("<?xml")


# test_the_suffix_decides_the_format has the other formats.
@pytest.mark.soak
def test_a_picture_may_be_a_pdf(cli, line, tmp_path):
    answer = cli("inspect", line, "--out", tmp_path / "line.pdf")

    assert answer.status == 0
    assert f"Picture: {tmp_path / 'line.pdf'}" in answer.out
    assert (tmp_path / "line.pdf").read_bytes().startswith(b"%PDF")


@pytest.mark.shares_setup
def test_json_leaves_the_picture_to_stderr(drawn):
    out, errors, picture = drawn

    json.loads(out)
    assert f"Picture: {picture}" in errors


def test_an_unknown_format_is_refused(cli, line, tmp_path):
    answer = cli("inspect", line, "--out", tmp_path / "line.xyz")

    assert answer.status == 2
    assert ".png, .svg, .pdf" in answer.message


def test_a_scenario_can_be_inspected_by_its_name(cli):
    facts = json.loads(cli("inspect", "circle", "--robot", "ur3e", "--json").out)

    assert facts["length_m"] == pytest.approx(2.0 * 2.0 * np.pi * 0.15 * 0.45, rel=1e-3)
    assert facts["reach"]["robot"] == "ur3e"


def test_foreign_frames_are_shown_as_they_are(cli, tmp_path):
    write_bag(tmp_path / "mocap.mcap", square(side=0.2), frame_id="mocap")

    assert cli("inspect", tmp_path / "mocap.mcap").status == 0


@pytest.fixture
def terminal(monkeypatch):
    """A terminal at which a person types these answers, one a question."""

    def typing(*answers):
        replies = iter(answers)

        def typed(*_):
            try:
                return next(replies)
            except StopIteration:
                raise EOFError from None

        monkeypatch.setattr("sys.stdin.isatty", lambda: True)
        monkeypatch.setattr("builtins.input", typed)

    return typing


@pytest.fixture
def two_topics(tmp_path):
    """A bag with a line under /near, and another one under /far."""
    from rosbags import rosbag2
    from rosbags.typesys import Stores, get_typestore

    store = get_typestore(Stores.ROS2_HUMBLE)
    kind = "geometry_msgs/msg/PoseStamped"
    types = store.types
    with rosbag2.Writer(tmp_path / "two", version=9) as writer:
        for topic, count, x in (("/near", 30, 0.6), ("/far", 20, 0.8)):
            connection = writer.add_connection(topic, kind, typestore=store)
            for k in range(count):
                stamp = types["builtin_interfaces/msg/Time"](k, 0)
                header = types["std_msgs/msg/Header"](stamp, "base_link")
                point = types["geometry_msgs/msg/Point"](x + 0.001 * k, 0.1, 0.3)
                turn = types["geometry_msgs/msg/Quaternion"](1.0, 0.0, 0.0, 0.0)
                message = types[kind](header, types["geometry_msgs/msg/Pose"](point, turn))
                writer.write(connection, k, store.serialize_cdr(message, kind))
    return tmp_path / "two"


def test_a_terminal_asks_for_the_topic(cli, terminal, two_topics):
    terminal("", "/far", "0", "3", "2")
    answer = cli("inspect", two_topics, "--json")
    facts = json.loads(answer.out)

    assert answer.status == 0
    assert facts["samples"] == 20
    assert facts["extent_min_m"][0] == pytest.approx(0.8)
    assert answer.message.count("Which topic?") == 5
    assert "1 /near 2 /far" in answer.message


def test_a_closed_terminal_ends_the_question(cli, terminal, two_topics):
    terminal("no idea")

    assert cli("inspect", two_topics).status == 130


def test_without_a_terminal_topics_are_named(cli, two_topics, monkeypatch):
    monkeypatch.setattr("sys.stdin.isatty", lambda: False)
    answer = cli("check", two_topics)

    assert answer.status == 2
    assert "choose one with --topic: /near, /far" in answer.message


def test_a_named_topic_is_used(cli, terminal, two_topics):
    terminal()
    facts = json.loads(cli("inspect", two_topics, "--topic", "/far", "--json").out)

    assert facts["samples"] == 20


def test_a_long_recording_is_solved_in_part():
    from simbridge import ForwardDynamics, load_robot

    long = square(rate=2000.0)
    facts, attained = inspect(
        Trajectory(long.times, long.poses), ForwardDynamics(load_robot("ur10"))
    )

    assert facts.samples == 16001
    assert facts.reach.solved == 400
    assert attained.shape == (16001,)
    assert attained.all()
