"""Ends of a run other than that of its motion: signals during its evaluation, and unseen ends.

The arm is simulated: how a session with a controller ends is tested in tests/backends.
"""

from __future__ import annotations

import json
import os
import signal

import numpy as np
import pytest

from simbridge.backends.backend import Ending
from simbridge.backends.pybullet import PyBulletBackend
from simbridge.cli import report_command
from simbridge.errors import GuardViolation, Interrupted, UnforeseenError
from simbridge.recording.run_directory import RunDirectory
from simbridge.running import repeating, run_ending
from simbridge.running.repeating import repeat
from simbridge.running.run_ending import EndNotVerified
from simbridge.running.run_setup import prepare
from simbridge.running.runner import execute
from simbridge.running.signals import SignalReceived

pytestmark = [pytest.mark.slow, pytest.mark.shares_setup]


def interrupt(*_arguments, **_values):
    raise KeyboardInterrupt


def summary_of(path):
    return json.loads((path / "summary.json").read_text())


@pytest.fixture(scope="module")
def prepared(line):
    """The line, which may be executed again and again."""
    return prepare(line)


@pytest.fixture
def refused(monkeypatch):
    """The guard refuses a setpoint in the middle of the stream."""
    stream = PyBulletBackend.stream

    def stream_with_a_jump(self, setpoints):
        setpoints = np.array(setpoints)
        setpoints[20] += 1.0
        return stream(self, setpoints)

    monkeypatch.setattr(PyBulletBackend, "stream", stream_with_a_jump)


def test_ctrl_c_in_a_report_keeps_the_refusal(cli, line, tmp_path, monkeypatch, refused):
    monkeypatch.setattr(run_ending, "write_report", interrupt)
    out = tmp_path / "out"

    answer = cli("run", line, "--out", out)

    assert answer.status == 2
    assert "refused" in answer.message
    assert (
        f"The evaluation was interrupted; complete it with `simbridge report {out}`."
        in answer.message
    )
    assert answer.message.endswith(f"What was recorded up to then is in {out}")
    assert summary_of(out)["ended_by"]["cause"] == "guard"


def test_a_second_ctrl_c_says_how_to_finish(cli, line, tmp_path, monkeypatch, without_pages):
    monkeypatch.setattr(PyBulletBackend, "move_to", interrupt)
    monkeypatch.setattr(run_ending, "summarize", interrupt)
    out = tmp_path / "out"

    answer = cli("run", line, "--out", out)

    assert answer.status == 130
    assert answer.message.startswith(
        "The run was interrupted. The arm is at rest. The evaluation was interrupted; "
    )
    assert f"`simbridge report {out}`" in answer.message
    assert summary_of(out)["outcome"] == summary_of(out)["ended_by"]["cause"] == "interrupted"


def test_the_outcome_is_written_first(prepared, tmp_path, monkeypatch):
    write = RunDirectory.write_summary

    def interrupted_write(self, summary):
        signal.raise_signal(signal.SIGINT)
        write(self, summary)

    monkeypatch.setattr(RunDirectory, "write_summary", interrupted_write)

    with pytest.raises(Interrupted):
        execute(prepared, out=tmp_path / "out")

    assert summary_of(tmp_path / "out")["outcome"] == "completed"


@pytest.mark.parametrize(
    ("number", "status"),
    [
        (signal.SIGINT, 130),
        # Also in test_a_signal_in_python_is_an_error.
        pytest.param(signal.SIGTERM, 143, marks=pytest.mark.soak),
        pytest.param(signal.SIGHUP, 129, marks=pytest.mark.soak),
    ],
    ids=str,
)
def test_report_finishes_an_interrupted_evaluation(
    cli, line, line_run, tmp_path, monkeypatch, write_short_page, number, status
):
    monkeypatch.setattr(run_ending, "summarize", lambda *_, **__: signal.raise_signal(number))
    out = tmp_path / "out"

    answer = cli("run", line, "--out", out)

    assert answer.status == status
    assert answer.message.startswith(
        "The run is complete and the arm is at rest. Only the evaluation was interrupted; "
        f"complete it with `simbridge report {out}`."
    )

    monkeypatch.undo()
    monkeypatch.setattr(report_command, "write_report", write_short_page)

    assert cli("report", out).status == 0
    assert (out / "report.html").is_file()

    finished = summary_of(out)
    usual = summary_of(line_run)

    assert finished["tracking_error"] == usual["tracking_error"]
    assert finished["outcome"] == "completed"


@pytest.mark.parametrize("ending", [Ending(), None])
def test_only_a_seen_rest_is_called_rest(prepared, tmp_path, monkeypatch, ending):
    monkeypatch.setattr(run_ending, "summarize", interrupt)
    monkeypatch.setattr(PyBulletBackend, "ending", ending)

    with pytest.raises(Interrupted) as caught:
        execute(prepared, out=tmp_path / "out")

    assert str(caught.value).startswith(
        "The run is complete. It could not be determined whether the arm is at rest."
    )


@pytest.mark.parametrize("count", [1, 2])
def test_ctrl_c_while_printing_leaves_a_complete_run(
    cli, line, tmp_path, monkeypatch, without_pages, without_common_page, count
):
    monkeypatch.setattr("simbridge.cli.run_tables.show_run", interrupt)
    monkeypatch.setattr("simbridge.cli.run_tables.show_repeats", interrupt)
    out = tmp_path / "out"

    answer = cli("run", line, "--repeat", count, "--out", out)

    assert answer.status == 130
    assert (
        answer.message
        == f"The run is complete; only printing its result was interrupted. It is in {out}"
    )


def test_a_signal_in_python_is_an_error(prepared, tmp_path, monkeypatch):
    before = signal.getsignal(signal.SIGTERM)
    monkeypatch.setattr(run_ending, "write_report", lambda *_: os.kill(os.getpid(), signal.SIGTERM))

    with pytest.raises(Interrupted) as caught:
        execute(prepared, out=tmp_path / "out")

    assert caught.value.number == signal.SIGTERM
    assert caught.value.run_directory == tmp_path / "out"
    assert signal.getsignal(signal.SIGTERM) is before


def test_a_stop_at_the_end_is_named_alike(cli, line, tmp_path, monkeypatch):
    seen = Ending(
        shown=["protective_stop"], evidence=["safety mode protective stop"], arm_at_rest=True
    )
    monkeypatch.setattr(PyBulletBackend, "ending", seen)
    monkeypatch.setattr(PyBulletBackend, "move_to", interrupt)

    answer = cli("run", line, "--out", tmp_path / "out")

    assert answer.status == 2
    assert answer.message.startswith(
        "The run was interrupted. As it ended, the controller stopped the arm: protective stop"
    )
    assert summary_of(tmp_path / "out")["ended_by"]["cause"] == "protective_stop"


# The end of a complete run

NOT_VERIFIED = {
    "It could not be determined whether the arm is at rest. Watch it.": Ending(
        evidence=["could not watch the controller"]
    ),
    "The arm is still moving. Watch it.": Ending(arm_at_rest=False, script_ended=True),
    "The arm is at rest, but simbridge's control script is still on the controller (paused or "
    "running): stop it at the pendant.": Ending(arm_at_rest=True, script_ended=False),
    (
        "The arm is at rest, but it could not be determined whether simbridge's control script "
        "has ended: check the pendant."
    ): Ending(arm_at_rest=True),
}


@pytest.mark.parametrize(("words", "ending"), NOT_VERIFIED.items())
def test_the_words_say_what_was_seen(words, ending):
    assert run_ending.describe_rest(ending) == words


@pytest.mark.parametrize(
    ("words", "ending"),
    [
        pytest.param(*item, marks=[pytest.mark.soak] * (number > 0))
        for number, item in enumerate(NOT_VERIFIED.items())
    ],
    ids=["nothing", "moving", "script", "script?"],
)
def test_an_unseen_end_is_no_success(
    cli, line, line_run, tmp_path, monkeypatch, short_pages, words, ending
):
    monkeypatch.setattr(PyBulletBackend, "ending", ending)
    out = tmp_path / "out"

    answer = cli("run", line, "--out", out)

    assert (answer.status, answer.out) == (2, "")

    seen = "".join(f" ({clause})" for clause in ending.evidence)

    assert answer.message == (
        "The run is complete, but whether it ended properly on the controller could not be "
        f"verified{seen}. {words} What was recorded up to then is in {out}"
    )

    summary = summary_of(out)

    assert (out / "report.html").is_file()
    assert summary["tracking_error"] == summary_of(line_run)["tracking_error"]
    assert (summary["outcome"], summary["ended_by"]["cause"]) == ("completed", "completed")
    assert summary["ended_by"]["arm_at_rest"] is ending.arm_at_rest


def test_nothing_moves_after_an_unseen_end(
    prepared, tmp_path, monkeypatch, without_pages, without_common_page
):
    monkeypatch.setattr(PyBulletBackend, "ending", Ending())

    with pytest.raises(EndNotVerified) as caught:
        repeat(prepared, 3, out=tmp_path / "out")

    assert (caught.value.cause, caught.value.arm_at_rest, caught.value.script_ended) == (
        "completed",
        None,
        None,
    )

    common = summary_of(tmp_path / "out")

    assert (len(common["runs"]), common["completed"]) == (1, 1)
    assert common["outcome"].startswith("no further run was started")


# Repeats


@pytest.mark.soak
def test_an_interrupted_evaluation_leaves_the_repeat_complete(
    cli, prepared, tmp_path, monkeypatch, without_pages
):
    summarize = run_ending.summarize
    measured = []

    def interrupted_at_the_second(*arguments, **values):
        measured.append(0)
        return interrupt() if len(measured) == 2 else summarize(*arguments, **values)

    monkeypatch.setattr(run_ending, "summarize", interrupted_at_the_second)
    out = tmp_path / "out"

    with pytest.raises(Interrupted, match="The run is complete and the arm is at rest"):
        repeat(prepared, 3, out=out)

    assert (
        summary_of(out / "02")["outcome"]
        == summary_of(out / "02")["ended_by"]["cause"]
        == "completed"
    )

    common = summary_of(out)

    assert common["completed"] == 2
    assert common["outcome"].startswith("no further run was started")
    assert common["runs"][1]["tracking_error"] is not None

    monkeypatch.undo()

    assert "2 of 3 runs completed" in cli("report", out).message
    assert "tracking_error" in summary_of(out / "02")


def test_ctrl_c_between_repeats_keeps_the_first(
    prepared, tmp_path, monkeypatch, without_pages, without_common_page
):
    begin = repeating.begin
    begun = []

    def interrupted_at_the_second(*arguments, **values):
        begun.append(0)
        return interrupt() if len(begun) == 2 else begin(*arguments, **values)

    monkeypatch.setattr(repeating, "begin", interrupted_at_the_second)

    with pytest.raises(Interrupted, match="The run was interrupted"):
        repeat(prepared, 3, out=tmp_path / "out")

    assert summary_of(tmp_path / "out" / "01")["outcome"] == "completed"


def test_ctrl_c_in_the_summary_keeps_complete_repeats(
    cli, line, tmp_path, monkeypatch, without_pages
):
    monkeypatch.setattr(repeating, "summarize_repeats", interrupt)
    out = tmp_path / "out"

    answer = cli("run", line, "--repeat", 2, "--out", out)

    assert answer.status == 130
    assert answer.message.startswith(
        "The runs are complete and the arm is at rest. Only the evaluation was interrupted;"
    )
    assert f"`simbridge report {out}`" in answer.message


def test_ctrl_c_in_the_summary_keeps_the_error(
    prepared, tmp_path, monkeypatch, without_pages, refused
):
    monkeypatch.setattr(repeating, "summarize_repeats", interrupt)

    with pytest.raises(GuardViolation) as caught:
        repeat(prepared, 2, out=tmp_path / "out")

    assert caught.value.run_directory == tmp_path / "out"
    assert caught.value.aftermath.endswith(f"`simbridge report {tmp_path / 'out'}` completes it.")


def test_a_later_signal_keeps_the_cause(cli, line, tmp_path, monkeypatch, without_pages, refused):
    def interrupted_stop(self, *_exception):
        raise SignalReceived(signal.SIGINT)

    monkeypatch.setattr(PyBulletBackend, "__exit__", interrupted_stop)
    out = tmp_path / "out"
    answer = cli("run", line, "--out", out)

    assert answer.status == 130
    assert "A setpoint was refused" in answer.message
    assert "Then it was interrupted." in answer.message

    ended_by = summary_of(out)["ended_by"]

    assert ended_by["cause"] == "guard"
    assert ended_by["evidence"][0].startswith("GuardViolation")


def test_an_unforeseen_error_carries_the_end(prepared, tmp_path, without_pages):
    def fail(_state):
        raise ZeroDivisionError("of a user")

    with pytest.raises(UnforeseenError) as caught:
        execute(prepared, out=tmp_path / "out", progress=fail)

    assert isinstance(caught.value.__cause__, ZeroDivisionError)
    assert caught.value.cause == "internal_error"
    assert caught.value.aftermath == "The arm is at rest."
    assert caught.value.run_directory == tmp_path / "out"
