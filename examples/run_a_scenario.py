"""Run a scenario in simulation and print the tracking error, split by source."""

import simbridge
from simbridge.text import millimetres

run = simbridge.run("pick_and_place")

print(f"{run.summary['outcome']}: {run.directory / 'report.html'}")
for source in ("sampling", "solver", "limiter", "plant", "tracking"):
    error = run.summary[f"{source}_error"]["position_m"]
    print(
        f"{source:10} {millimetres(error['rms']):>8} mm RMS, "
        f"{millimetres(error['max']):>8} mm at most"
    )
