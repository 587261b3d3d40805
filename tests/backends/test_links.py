"""Both links to a controller write the same numbers, by the bytes that an emulated one received."""

from __future__ import annotations

import struct
import subprocess
import sys
from dataclasses import dataclass, field

import numpy as np
import pytest

from simbridge.backends.registers import REGISTERS
from simbridge.emulator.handle import Emulator
from simbridge.emulator.rtde import RtdeConnection
from simbridge.emulator.rtde_recipes import RtdeRegistry
from simbridge.emulator.traffic import read_traffic
from simbridge.ur.tables import PRIMARY, REALTIME, RTDE, RuntimeState
from tests.controllers import EMULATOR_PRIORITY, HOME, loopback
from tests.emulator.bench import Bench
from tests.optional_packages import needs_ur_rtde

pytestmark = [pytest.mark.real_time, pytest.mark.slow, needs_ur_rtde]

HOST = loopback(57)
SETPOINTS = 400
SERVOJ = 11
STOP = 255
# How long a stepped controller goes on after the last setpoint, s: it ends the script and brakes.
ENDING_S = 0.5
DOUBLES = (0, 1, 2, 3, 4, 5, 9, 10)


@dataclass
class Conversation:
    """What one client of a controller has sent to a port.

    Attributes:
        port: The port.
        received: The bytes.
    """

    port: int
    received: bytes = b""


@dataclass
class Commands:
    """The commands of a link, as they stood on the wire.

    Attributes:
        setup: The packages of RTDE that are not data.
        before: Data packages before the first setpoint.
        setpoints: Data packages with a setpoint.
        after: Data packages with another command since the last setpoint.
        registers: The eight doubles of each setpoint, as bytes.
        last: Command and eight doubles, as bytes, of the newest data package that has them all.
        cleared_first: Whether a data package came before the script.
        claimed: Names of all inputs that were claimed.
        script: The control script, and the port that it was sent to.
    """

    setup: list[bytes] = field(default_factory=list)
    before: list[bytes] = field(default_factory=list)
    setpoints: list[bytes] = field(default_factory=list)
    after: list[bytes] = field(default_factory=list)
    registers: list[bytes] = field(default_factory=list)
    last: tuple[int, bytes] = (0, b"")
    cleared_first: bool = False
    claimed: set[str] = field(default_factory=set)
    script: str = ""
    script_port: int = 0


def packages(stream: bytes):
    """Yield each package of RTDE with its type."""
    while stream:
        size, kind = struct.unpack_from(">HB", stream)
        yield chr(kind), stream[:size]
        stream = stream[size:]


def decode(conversations, half):
    """Return the commands of the client that has sent setpoints."""
    commands = Commands()
    first = REGISTERS[half].first
    for conversation in conversations:
        if conversation.port in (PRIMARY, REALTIME) and conversation.received:
            commands.script = conversation.received.decode()
            commands.script_port = conversation.port
        if conversation.port == RTDE and b"input_int_register" in conversation.received:
            decode_inputs(conversation.received, first, commands)
    return commands


def decode_inputs(received, first, commands):
    """Fill in what an RTDE client has sent, by UR's guide: recipes are numbered from 1."""
    recipes = []
    for kind, package in packages(received):
        if kind == "I":
            recipes.append([name for name in package[3:].decode().split(",") if name])
            commands.claimed.update(recipes[-1])
        if kind != "U":
            commands.setup.append(package)
            continue

        names = recipes[package[3] - 1]
        layout = "".join("i" if "_int_" in name else "d" for name in names)
        values = dict(zip(names, struct.unpack(f">{layout}", package[4:]), strict=True))
        command = values.get(f"input_int_register_{first}")
        registers = [f"input_double_register_{first + offset}" for offset in DOUBLES]
        if command is not None and values.keys() >= set(registers):
            doubles = struct.pack(">8d", *[values[name] for name in registers])
            commands.last = (command, doubles)
        if command == SERVOJ:
            commands.setpoints.append(package)
            commands.registers.append(doubles)
            commands.after.clear()
        elif not commands.setpoints:
            commands.before.append(package)
        elif command is not None:
            commands.after.append(package)


def conversations_of(exchanges):
    """Return the conversation of each client, by its number."""
    conversations = {}
    for exchange in exchanges:
        conversation = conversations.setdefault(exchange.client, Conversation(exchange.port))
        if exchange.event == "received":
            conversation.received += exchange.bytes
    return conversations


def is_cleared_first(exchanges):
    """Return whether a data package of RTDE came before a script."""
    for exchange in exchanges:
        if exchange.event != "received":
            continue
        if exchange.port == RTDE and "U" in [kind for kind, _ in packages(exchange.bytes)]:
            return True
        if exchange.port in (PRIMARY, REALTIME) and exchange.bytes:
            return False
    return False


@pytest.fixture(scope="module")
def setpoints(tmp_path_factory):
    """Setpoints (SETPOINTS, 6), rad, whose last bits are random, in a file."""
    chance = np.random.default_rng(42)
    phase = np.linspace(0.0, 2.0 * np.pi, SETPOINTS)
    slow = 0.02 * (1.0 - np.cos(phase))[:, np.newaxis]
    noise = chance.uniform(-1e-7, 1e-7, (SETPOINTS, 6))
    file = tmp_path_factory.mktemp("setpoints") / "setpoints.npy"
    np.save(file, HOME + slow + noise)
    return file


def send(setpoints, link, half):
    """Send the setpoints through a link, in a process of its own."""
    arguments = (HOST, "ur10e", link, half, str(setpoints))
    subprocess.run([sys.executable, "-m", "tests.backends.link_sender", *arguments], check=True)


@pytest.fixture(scope="module", params=["lower", pytest.param("upper", marks=pytest.mark.soak)])
def both(request, setpoints, tmp_path_factory):
    """The commands of each link, by its name, with the half of the registers.

    The links use one controller in turn. The numbers of their clients show whose traffic it is.
    """
    half = request.param
    traffic = tmp_path_factory.mktemp("traffic") / "traffic.jsonl"
    with Emulator(
        "ur10e",
        polyscope="5.12",
        host=HOST,
        boot_time=0.05,
        realtime_priority=EMULATOR_PRIORITY,
        traffic=traffic,
    ) as controller:
        send(setpoints, "ur_rtde", half)
        controller.wait_for("runtime_state", "STOPPED")
        last_client = max(exchange.client for exchange in read_traffic(traffic))
        send(setpoints, "rtde", half)

    exchanges = list(read_traffic(traffic))
    commands = {}
    for link, link_exchanges in (
        ("ur_rtde", [exchange for exchange in exchanges if exchange.client <= last_client]),
        ("rtde", [exchange for exchange in exchanges if exchange.client > last_client]),
    ):
        commands[link] = decode(conversations_of(link_exchanges).values(), half)
        commands[link].cleared_first = is_cleared_first(link_exchanges)
    return half, commands


def test_registers_are_equal_bit_for_bit(both, setpoints):
    _, commands = both

    sent = [struct.pack(">6d", *row) for row in np.load(setpoints)]
    assert [row[:48] for row in commands["rtde"].registers] == sent
    assert commands["rtde"].registers == commands["ur_rtde"].registers


def test_scripts_are_equal_except_for_their_number(both):
    _, commands = both

    lines = [commands[link].script.splitlines() for link in ("ur_rtde", "rtde")]
    different = [pair for pair in zip(*lines, strict=True) if pair[0] != pair[1]]
    assert len(different) == 1


def test_the_own_link_claims_nine_inputs_before_the_script_is_sent(both):
    half, commands = both

    assert commands["rtde"].claimed == set(REGISTERS[half].command_inputs)
    assert commands["rtde"].script_port == PRIMARY
    assert commands["ur_rtde"].script_port == REALTIME


def test_the_own_link_clears_the_command_before_the_script_is_sent(both):
    _, commands = both

    assert commands["rtde"].cleared_first


def test_the_own_links_stop_repeats_the_newest_setpoint(both):
    _, commands = both

    assert commands["rtde"].last == (STOP, commands["rtde"].registers[-1])


@dataclass
class SteppedRun:
    """What a stepped controller did with the commands of a link.

    Attributes:
        targets: Its targets (K, 6), rad, from the first setpoint on.
        runtime_state: Whether a program runs at the end, by UR's number.
    """

    targets: np.ndarray
    runtime_state: int


def run_stepped(commands):
    """Give a controller a setpoint in each cycle, then the commands after them."""
    bench = Bench(boot_time=0.05).running()
    bench.controller.load_script(commands.script)
    bench.controller.program.compilation.join()
    connection = RtdeConnection(bench.controller, RtdeRegistry(bench.controller))
    connection.receive(b"".join(commands.setup))
    connection.receive(b"".join(commands.before))
    bench.tick(0.02)

    bench.q = []
    for package in (*commands.setpoints, *commands.after):
        connection.receive(package)
        bench.tick()
    bench.tick(ENDING_S)

    cycles = len(commands.setpoints) + round(ENDING_S / bench.controller.profile.period)
    return SteppedRun(np.array(bench.q[:cycles]), bench.state.runtime_state)


@pytest.fixture(scope="module")
def stepped(both):
    """What a stepped controller did with the commands of each link, by its name."""
    _, commands = both
    return {link: run_stepped(commands[link]) for link in commands}


def test_targets_are_equal_under_a_stepped_clock(stepped):
    targets = stepped["rtde"].targets
    ur_rtde_targets = stepped["ur_rtde"].targets

    assert len(targets) > SETPOINTS
    assert np.array_equal(targets, ur_rtde_targets)
    assert np.ptp(targets, axis=0).min() > 0.01


@pytest.mark.parametrize("link", ["ur_rtde", "rtde"])
def test_both_links_end_the_script_under_a_stepped_clock(link, stepped):
    assert stepped[link].runtime_state == RuntimeState.STOPPED
