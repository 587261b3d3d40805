"""Find the gains with the smallest error by Optuna (pip install optuna), run by run."""

import optuna

import simbridge

robot = simbridge.load_robot("ur10")


def tracking_error(trial: optuna.Trial) -> float:
    """RMS of the tracking error, m, of a run with the gains of a trial."""
    kp = trial.suggest_float("kp", 1.0, 100.0, log=True)
    iterations = trial.suggest_int("iterations", 5, 50)
    solver = simbridge.ForwardDynamics(robot, kp=kp, iterations=iterations)

    run = simbridge.run("square_tracking", robot=robot, solver=solver)

    return run.summary["tracking_error"]["position_m"]["rms"]


# A solver that diverges, or needs too high velocities, is refused: such a trial has failed.
study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=0))
study.optimize(tracking_error, n_trials=6, catch=simbridge.SimbridgeError)
print(f"best: {study.best_params}, {1e3 * study.best_value:.3f} mm RMS")
