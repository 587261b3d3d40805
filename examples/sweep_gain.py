"""Run a scenario for several gains of the solver, on all cores, and print the errors."""

import simbridge

# The processes of a sweep import this file: what begins it stands under this line.
if __name__ == "__main__":
    error = "solver_error.position_m.rms"
    grid = {"solver.kp": [5, 20, 50], "solver.iterations": [10, 50]}
    swept = simbridge.sweep("pick_and_place", grid=grid, out="gain_sweep")
    for row in swept.rows("solver.kp", "solver.iterations", error):
        print(
            f"kp {row['solver.kp']:>2}, N {row['solver.iterations']}: "
            f"{1e3 * float(row[error]):8.4f} mm RMS"
        )
    print("page:", swept.directory / "sweep.html")
