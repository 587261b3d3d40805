"""Test software for a UR arm without one: an emulated controller, a run, a protective stop."""

import simbridge
from simbridge.emulator import Emulator
from simbridge.trajectory import square

small = simbridge.Scenario(square(side=0.05, speed=0.1), name="small square")

with Emulator("ur10e", host="127.0.0.9") as controller:
    options = simbridge.Options(host="127.0.0.9")
    run = simbridge.run(small, robot="ur10e", backend="ursim", options=options)
    print(
        f"{run.summary['outcome']}, "
        f"{1e3 * run.summary['tracking_error']['position_m']['rms']:.2f} mm RMS"
    )

    controller.do("protective_stop")
    try:
        simbridge.run(small, robot="ur10e", backend="ursim", options=options)
    except simbridge.SimbridgeError as error:
        print("refused:", error)
