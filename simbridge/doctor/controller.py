"""Checks of the controller's state: pure functions of what was read from it."""

from __future__ import annotations

from simbridge.backends.preflight import docker_command
from simbridge.doctor.finding import Finding, failed, passed, unread, warned
from simbridge.robot.robot import Robot
from simbridge.ur.errors import PORTS, ArmNotReady, ConnectionLost
from simbridge.ur.facts import DASHBOARD, PRIMARY, RTDE, Survey
from simbridge.ur.primary import is_ursim
from simbridge.ur.stops import FULL_SPEED, PROGRAM_RUNS, RUNNING, safety_stop
from simbridge.ur.tables import ROBOT_MODES, RUNTIME_STATES, SAFETY_MODES, named

# Robot modes from which `power on` and `brake release` lead to running: power off, power on, idle.
_TO_BE_POWERED = (3, 4, 5)
_NORMAL, _REDUCED = 1, 2  # safety modes


def check_port(survey: Survey, port: int, robot: Robot, *, ursim: bool) -> Finding:
    """Whether a port of the controller answers as such a port should."""
    name = f"port {port}"
    error = survey.lost.get(port)
    if error is None:
        return passed(name, f"{PORTS[port]} answers")
    reason = error.reason if isinstance(error, ConnectionLost) else str(error)
    if ursim:
        mend = f"Is URSim running, with this port published? It is started with: {docker_command(robot, survey.host)}"
    else:
        mend = (
            f"Try: ping {survey.host}. Look at the cable, at the address (pendant: Settings > System > Network), and "
            f"whether the service is allowed (Settings > Security > Services)."
        )
    return failed(name, f"{PORTS[port]}: {reason}", mend)


def check_software(survey: Survey) -> Finding:
    """Whether simbridge can drive this version, and at which rate."""
    name = "software"
    if survey.unsupported is not None:
        version = f"PolyScope {survey.unsupported.version}" if survey.unsupported.version else "unknown"
        return failed(name, version, survey.unsupported.reason)
    if survey.state is None:
        return unread(name, RTDE)
    state = survey.state
    version = ".".join(map(str, state.version))
    seen = f"PolyScope {version}, {state.series}, {1.0 / state.period:.0f} Hz"
    told = survey.dashboard.version if survey.dashboard is not None else ""
    if told and not f"{told}.".startswith(f"{version}."):
        return warned(name, f"{seen}; its dashboard says {told}", "The two should agree: restart the controller.")
    return passed(name, seen)


def check_kind(survey: Survey, *, ursim: bool) -> Finding:
    """Whether what answers is what --backend says: URSim, or a real arm."""
    name = "arm or URSim"
    if survey.arm is None:
        return unread(name, PRIMARY)
    found = is_ursim(survey.arm.checksum)
    seen = "URSim (checksum of the kinematics all ones)" if found else "a real arm (it has a calibration of its own)"
    if found == ursim:
        return passed(name, seen)
    if found:
        return warned(name, seen, "For URSim say --backend ursim.")
    return failed(name, seen, "It is not URSim, and --backend ursim will not move it. For a real arm: --backend real.")


def check_remote_control(survey: Survey) -> Finding:
    """Whether the controller takes programs from outside."""
    name = "remote control"
    if survey.dashboard is None:
        return unread(name, DASHBOARD)
    remote = survey.dashboard.remote_control
    if remote is None:
        if survey.state is not None and survey.state.series == "CB3":
            return passed(name, "CB3 has no such switch")
        return warned(
            name,
            "the dashboard does not tell",
            "PolyScope 5.6 or later tells. Until then look yourself: top right of the pendant, Remote Control.",
        )
    if remote:
        return passed(name, "on")
    return failed(
        name,
        "off: programs from outside are ignored",
        "At the pendant: Settings > System > Remote Control > Enable, then switch from Local to Remote Control at the "
        "top right.",
    )


def check_robot_mode(survey: Survey, *, ursim: bool) -> Finding:
    """Whether the arm has power and its brakes are released."""
    name = "robot mode"
    if survey.state is None:
        return unread(name, RTDE)
    mode = survey.state.robot_mode
    if mode == RUNNING:
        return passed(name, named(mode, ROBOT_MODES))
    if ursim and mode in _TO_BE_POWERED:
        return passed(name, f"{named(mode, ROBOT_MODES)}; a run powers URSim on")
    return failed(name, named(mode, ROBOT_MODES), ArmNotReady.remedy)


def check_safety_mode(survey: Survey) -> Finding:
    """Whether no stop is in force."""
    name = "safety mode"
    if survey.state is None:
        return unread(name, RTDE)
    mode = survey.state.safety_mode
    if mode == _NORMAL:
        return passed(name, named(mode, SAFETY_MODES))
    if mode == _REDUCED:
        return warned(
            name,
            named(mode, SAFETY_MODES),
            "The reduced limits of the safety configuration hold: a fast plan may end in a protective stop. Leave the "
            "trigger plane or release the input that reduces.",
        )
    stop = safety_stop(mode)
    return failed(name, named(mode, SAFETY_MODES), "" if stop is None else stop.remedy)


def check_program(survey: Survey) -> Finding:
    """Whether no program runs: a run never stops one."""
    name = "program"
    if survey.state is None:
        return unread(name, RTDE)
    state = survey.state.runtime_state
    loaded = survey.dashboard.program if survey.dashboard is not None else ""
    seen = named(state, RUNTIME_STATES) + (f", {loaded}" if loaded else "")
    if state in PROGRAM_RUNS:
        return failed(name, seen, "A run never stops a program unasked. Stop it at the pendant.")
    return passed(name, seen)


def check_registers(taken: tuple[str, ...] | None) -> Finding:
    """Whether the inputs that the bridge writes are free.

    Args:
        taken: Those that are not; None when it could not be asked.
    """
    name = "registers"
    if taken is None:
        return unread(name, RTDE)
    if not taken:
        return passed(name, "free")
    more = f" and {len(taken) - 2} more" if len(taken) > 2 else ""
    return failed(
        name,
        f"held by another client: {', '.join(taken[:2])}{more}",
        "End the other program: a second simbridge, a ROS driver, a fieldbus (EtherNet/IP, PROFINET) enabled in the "
        "installation.",
    )


def check_slider(survey: Survey) -> Finding:
    """Whether the speed slider lets the arm move at the plan's speed."""
    name = "speed slider"
    if survey.state is None:
        return unread(name, RTDE)
    slider = survey.state.slider
    seen = f"{slider * 100.0:.0f} %"
    if slider >= FULL_SPEED:
        return passed(name, seen)
    remedy = "Move it to 100 % at the pendant"
    if slider <= 0.0:
        return failed(name, seen, f"Nothing would move. {remedy}.")
    return warned(name, seen, f"{remedy}, or expect the run to take longer (--on-scaling stop refuses it).")
