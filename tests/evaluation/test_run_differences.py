"""What differs between compared runs, and their labels by it."""

from __future__ import annotations

from typing import Any

from simbridge.evaluation.run_differences import find_differences


def settings(arm: str = "ur10", **changes: dict[str, Any]) -> dict[str, Any]:
    """Return tables like those of settings.toml."""
    tables: dict[str, dict[str, Any]] = {
        "scenario": {"name": "circle", "feedforward": "off", "speed_scale": 1.0},
        "robot": {"name": arm, "title": arm.upper(), "max_velocity": [len(arm), 2.0]},
        "solver": {
            "name": "forward-dynamics",
            "parameters": {"iterations": 50},
            "host_step_time_s": 1e-5,
        },
        "backend": {"name": "pybullet", "period": 0.008 if arm == "ur10" else 0.002},
    }
    for table, values in changes.items():
        tables[table] = {**tables[table], **values}
    return tables


def test_one_setting_is_named_with_its_values():
    runs = [settings(), settings(scenario={"feedforward": "on"})]

    differences = find_differences(runs, ["first", "second"])

    assert differences.names == ["feedforward"]
    assert differences.labels == ("feedforward off", "feedforward on")
    assert differences.columns == {"feedforward": ("off", "on")}
    assert differences.entries == ("off", "on")


def test_consequences_of_another_arm_are_no_differences():
    differences = find_differences([settings(), settings("ur10e")], ["first", "second"])

    assert differences.names == ["robot"]
    assert differences.labels == ("ur10", "ur10e")


def test_settings_of_other_solvers_are_no_differences():
    other = settings(solver={"name": "feedback", "parameters": {"gain": 1.0}})

    differences = find_differences([settings(), other], ["first", "second"])

    assert differences.names == ["solver"]
    assert differences.only_solvers_differ


def test_setting_of_one_solver_is_named_as_its_flag():
    fewer = settings(solver={"parameters": {"iterations": 5}, "host_step_time_s": 2e-6})

    differences = find_differences([settings(), fewer], ["a", "b"])

    assert differences.labels == ("solver.iterations 50", "solver.iterations 5")


def test_list_of_equal_values_is_short():
    fast = settings(solver={"parameters": {"kp": [50.0, 50.0, 5.0]}})
    slow = settings(solver={"parameters": {"kp": [5.0, 5.0, 0.5]}})

    differences = find_differences([fast, slow], ["a", "b"])

    assert differences.labels == ("solver.kp 50/5", "solver.kp 5/0.5")


def test_setting_that_a_run_lacks_is_said():
    loaded = settings(backend={"unmodelled_payload": 2.0})

    differences = find_differences([settings(), loaded], ["first", "second"])

    assert differences.labels == ("no unmodelled-payload", "unmodelled-payload 2")
    assert differences.entries == ("none", "2")


def test_labels_take_as_many_settings_as_needed():
    runs = []
    for feedforward, scale in (("off", 1.0), ("on", 1.0), ("on", 0.5)):
        for hold in ("linear", "zero-order"):
            scenario = {"feedforward": feedforward, "speed_scale": scale, "hold": hold}
            runs.append(settings(scenario=scenario))

    differences = find_differences(runs, [str(number) for number in range(len(runs))])

    assert len(set(differences.labels)) == len(runs)
    assert differences.labels[-1] == "feedforward on, speed-scale 0.5, hold zero-order"


def test_runs_with_equal_settings_have_their_names():
    same = find_differences([settings(), settings()], ["first", "second"])
    some = find_differences(
        [settings(), settings(), settings(scenario={"feedforward": "on"})], ["a", "b", "c"]
    )

    assert same.labels == ("first", "second")
    assert some.labels == ("feedforward off (a)", "feedforward off (b)", "feedforward on")
    assert list(some.columns) == ["run"]


def labelled(label: str, **changes: dict[str, Any]) -> dict[str, Any]:
    """Return tables like those of a run that the user has labelled."""
    return {"label": label, **settings(**changes)}


def test_labels_of_the_user_name_runs():
    runs = [labelled("stiff"), labelled("ahead", scenario={"feedforward": "on"})]

    differences = find_differences(runs, ["first", "second"])

    assert differences.labels == ("stiff", "ahead")
    assert differences.columns == {"run": ("stiff", "ahead"), "feedforward": ("off", "on")}
    assert differences.entries == ("stiff: off", "ahead: on")


def test_run_without_a_label_keeps_its_name():
    runs = [labelled("stiff"), settings(scenario={"feedforward": "on"})]

    differences = find_differences(runs, ["first", "second"])

    assert differences.labels == ("stiff", "feedforward on")


def test_runs_with_one_label_are_told_apart():
    runs = [labelled("stiff"), labelled("stiff", scenario={"feedforward": "on"})]

    differences = find_differences(runs, ["first", "second"])

    assert differences.labels == ("stiff (feedforward off)", "stiff (feedforward on)")


def test_equal_runs_with_one_label_are_told_apart():
    differences = find_differences([labelled("stiff"), labelled("stiff")], ["first", "second"])

    assert differences.labels == ("stiff (first)", "stiff (second)")


def test_label_like_the_name_of_another_run_is_told_apart():
    runs = [settings(), labelled("feedforward off", scenario={"feedforward": "on"})]

    differences = find_differences(runs, ["first", "second"])

    assert differences.labels == ("feedforward off", "feedforward off (feedforward on)")
