from __future__ import annotations

import contextlib
import errno
import select
import socket
import struct
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simbridge.emulator import scripts
from simbridge.emulator.connections import MAX_WAITING
from simbridge.emulator.errors import CannotListen
from simbridge.emulator.primary import message_of
from simbridge.emulator.rtde import frame
from simbridge.emulator.servers import MAX_CLIENTS
from simbridge.emulator.state import ControllerEvent
from simbridge.errors import UnknownName
from simbridge.ur.tables import DASHBOARD, PRIMARY, REALTIME, RTDE, SECONDARY, RtdePackage
from tests.controllers import loopback
from tests.emulator.fake_controller import ANY_PORTS, FakeController, Stand, stand, write_program
from tests.optional_packages import needs_ur_rtde
from tests.patience import PATIENCE

HOST = loopback(41)
OTHER = loopback(42)
ALL_PORTS = (DASHBOARD, PRIMARY, SECONDARY, REALTIME, RTDE)
GREETING = b"Connected: Universal Robots Dashboard Server\n"
PREAMBLE = frame(RtdePackage.PROTOCOL_VERSION, b"\x00\x02")


class Plug:
    """A plain TCP client."""

    def __init__(self, served: Stand, port: int) -> None:
        self.sock = socket.create_connection(
            (served.host, served.servers.ports[port]), timeout=PATIENCE
        )

    def __enter__(self) -> Plug:
        return self

    def __exit__(self, *_: object) -> None:
        self.sock.close()

    def read(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            piece = self.sock.recv(size - len(data))
            if not piece:
                raise EOFError(data)
            data += piece
        return data

    def waits(self) -> bool:
        """Return whether something is to be read."""
        return bool(select.select([self.sock], [], [], 0.01)[0])

    def ask(self, request: bytes, size: int) -> bytes:
        self.sock.sendall(request)
        return self.read(size)

    def closed(self) -> bool:
        """Wait until the other side has closed; what it still says is thrown away."""
        try:
            while self.sock.recv(65536):
                pass
        except ConnectionError:
            pass
        return True

    def package(self) -> bytes:
        """One package of the primary or real-time interface."""
        head = self.read(4)
        return head + self.read(struct.unpack(">i", head)[0] - 4)


def rtde(served: Stand, names: bytes = b"timestamp", frequency: float = 500.0) -> Plug:
    """A client whose stream has begun."""
    plug = Plug(served, RTDE)
    assert plug.ask(PREAMBLE, 4) == frame(RtdePackage.PROTOCOL_VERSION, b"\x01")
    plug.sock.sendall(frame(RtdePackage.OUTPUTS, struct.pack(">d", frequency) + names))
    size = struct.unpack(">H", plug.read(2))[0]
    plug.read(size - 2)
    assert plug.ask(frame(RtdePackage.START), 4) == frame(RtdePackage.START, b"\x01")
    return plug


def timestamps(plug: Plug, count: int) -> list[float]:
    return [struct.unpack(">HBBd", plug.read(12))[3] for _ in range(count)]


def eventually(condition: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + PATIENCE
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.005)
    return condition()


def test_every_tick_is_streamed_once_and_in_order() -> None:
    with stand("5.12") as served, rtde(served) as plug:
        served.tick(300)
        assert timestamps(plug, 300) == [pytest.approx(0.002 * tick) for tick in range(1, 301)]


def test_clients_get_their_own_frequencies() -> None:
    with (
        stand("5.12") as served,
        rtde(served) as fast,
        rtde(served, frequency=125.0) as slow,
        rtde(served) as third,
    ):
        served.tick(100)
        assert len(timestamps(fast, 100)) == len(timestamps(third, 100)) == 100
        assert timestamps(slow, 25) == [pytest.approx(0.008 * tick) for tick in range(1, 26)]


def test_inputs_are_in_use_until_their_client_has_left() -> None:
    request = frame(RtdePackage.INPUTS, b"input_int_register_0")
    with stand() as served, Plug(served, RTDE) as one, Plug(served, RTDE) as two:
        assert one.ask(request, 9) == frame(RtdePackage.INPUTS, b"\x01INT32")
        assert two.ask(request, 10) == frame(RtdePackage.INPUTS, b"\x00IN_USE")
        one.sock.sendall(frame(RtdePackage.DATA, b"\x01" + struct.pack(">i", 7)))
        assert eventually(lambda: served.controller.state.input_int[0] == 7)
        one.sock.close()
        assert eventually(lambda: served.servers.clients(RTDE) == 1)
        assert two.ask(request, 9) == frame(RtdePackage.INPUTS, b"\x01INT32")


def test_version_comes_before_periodic_states() -> None:
    with stand("5.12") as served, Plug(served, PRIMARY) as one, Plug(served, SECONDARY) as two:
        for plug in (one, two):
            assert plug.package()[4] == 20
        served.tick(100)
        for plug in (one, two):
            states = [plug.package() for _ in range(2)]
            assert [state[4] for state in states] == [16, 16]
            assert [struct.unpack_from(">Q", state, 10)[0] for state in states] == [
                100_000,
                200_000,
            ]


def test_messages_go_to_the_primary_interface_only() -> None:
    with stand("5.12") as served, Plug(served, PRIMARY) as one, Plug(served, SECONDARY) as two:
        one.package(), two.package()
        with served.lock:
            served.servers.broadcast_message(
                message_of(served.controller, ControllerEvent("error", "what", 1, 2))
            )
        served.tick(50)
        assert [one.package()[4] for _ in range(2)] == [20, 16]
        assert two.package()[4] == 16


@pytest.mark.parametrize(("polyscope", "period"), [("3.15", 0.008), ("5.12", 0.002)])
def test_the_real_time_port_streams_every_tick(polyscope: str, period: float) -> None:
    with stand(polyscope) as served, Plug(served, REALTIME) as plug:
        assert eventually(lambda: served.servers.clients(REALTIME) == 1)
        served.tick(20)
        times = [struct.unpack_from(">d", plug.package(), 4)[0] for _ in range(20)]
        assert times == [pytest.approx(period * tick) for tick in range(1, 21)]


@pytest.mark.parametrize("port", [PRIMARY, SECONDARY, REALTIME])
def test_scripts_are_accepted_on_all_three_ports(port: int) -> None:
    script = "def a():\n  sync()\nend\n"
    with stand("5.12") as served, Plug(served, port) as plug:
        plug.sock.sendall(script.encode())
        assert eventually(lambda: served.controller.calls == [("load_script", script)])


def test_a_program_outlives_its_client() -> None:
    script = "def p():\n  movej([0, 0, 0, 0, 0, 0])\nend\n"
    with stand() as served, Plug(served, REALTIME) as client:
        while not client.waits():
            served.tick()
        with served.lock:
            client.sock.sendall(script.encode())
            client.sock.close()  # with a state unread: the connection is reset
            for tick in range(100):
                served.servers.send_due(tick)
        assert eventually(lambda: served.controller.calls == [("load_script", script)])


def test_an_e_series_in_local_control_ignores_scripts() -> None:
    with (
        stand("5.12") as served,
        Plug(served, DASHBOARD) as dashboard,
        Plug(served, SECONDARY) as plug,
    ):
        served.controller.remote_control = False
        plug.sock.sendall(b"stopj(2.0)\n")
        plug.sock.shutdown(socket.SHUT_WR)
        assert plug.closed()
        assert dashboard.ask(b"is in remote control\n", len(GREETING) + 6) == GREETING + b"false\n"
        assert served.controller.calls == []


def test_quit_is_answered_and_then_the_connection_is_closed() -> None:
    with stand() as served, Plug(served, DASHBOARD) as plug:
        assert plug.ask(b"quit\n", len(GREETING) + 13) == GREETING + b"Disconnected\n"
        assert plug.closed()


def test_several_controllers_run_side_by_side() -> None:
    with stand("3.15", HOST, {}) as one, stand("5.12", OTHER, {}) as two:
        answers = []
        for served in (one, two):
            with Plug(served, DASHBOARD) as plug:
                plug.read(len(GREETING))
                answers.append(plug.ask(b"PolyscopeVersion\n", 16))
        assert answers == [b"URSoftware 3.15.", b"URSoftware 5.12."]


def test_port_in_use_is_named_with_remedy() -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        used_port = other.getsockname()[1]
        with (
            pytest.raises(CannotListen, match=r"--host 127\.0\.0\.2") as caught,
            stand(ports={**ANY_PORTS, RTDE: used_port}),
        ):
            pass

    assert (caught.value.host, caught.value.port, caught.value.reason) == (
        "127.0.0.1",
        used_port,
        errno.EADDRINUSE,
    )


def test_an_address_of_another_machine_is_refused() -> None:
    with pytest.raises(CannotListen) as caught, stand(host="192.0.2.1"):
        pass
    assert caught.value.reason == errno.EADDRNOTAVAIL


# Faults


@pytest.mark.parametrize("port", ALL_PORTS)
def test_a_dropped_port_takes_new_connections(port: int) -> None:
    with stand() as served, Plug(served, port) as plug, Plug(served, DASHBOARD) as other:
        connected = 2 if port == DASHBOARD else 1
        assert eventually(
            lambda: served.servers.clients(port) == connected
        )  # drop() leaves those not yet accepted
        served.servers.drop(port)
        assert plug.closed()
        if port != DASHBOARD:
            assert (
                other.ask(b"running\n", len(GREETING) + 23)
                == GREETING + b"Program running: false\n"
            )
        with Plug(served, port):
            assert eventually(lambda: served.servers.clients(port) == 1)


@pytest.mark.slow
def test_a_muted_port_accepts_and_is_silent_until_unmuted() -> None:
    with stand() as served, Plug(served, DASHBOARD) as old:
        old.read(len(GREETING))
        served.servers.mute(DASHBOARD)
        with Plug(served, DASHBOARD) as new:
            for plug in (old, new):
                plug.sock.sendall(b"robotmode\n")
                plug.sock.settimeout(0.2)
                with pytest.raises(TimeoutError):
                    plug.sock.recv(1)
                plug.sock.settimeout(PATIENCE)
            served.servers.mute(DASHBOARD, False)
            assert old.read(19) == b"Robotmode: RUNNING\n"
            assert new.read(len(GREETING) + 19) == GREETING + b"Robotmode: RUNNING\n"


def test_muted_client_is_read_after_unmuting() -> None:
    with stand() as served:
        served.servers.mute(REALTIME)
        with Plug(served, REALTIME) as plug:
            assert eventually(lambda: served.servers.clients(REALTIME) == 1)
            plug.sock.sendall(b"def p():\n  sync()\nend\n")
            time.sleep(0.2)
            assert served.controller.calls == []
            served.servers.mute(REALTIME, False)
            assert eventually(
                lambda: [name for name, *_ in served.controller.calls] == ["load_script"]
            )


def test_a_muted_stream_pauses() -> None:
    with stand() as served, rtde(served) as plug:
        served.tick(2)
        served.servers.mute(RTDE)
        served.tick(5)
        served.servers.mute(RTDE, False)
        served.tick()
        assert timestamps(plug, 3) == [pytest.approx(0.002 * tick) for tick in (1, 2, 8)]


def test_a_refusing_port_accepts_nobody_and_keeps_its_clients() -> None:
    with stand() as served, rtde(served) as plug:
        served.servers.refuse(RTDE)
        with pytest.raises(ConnectionRefusedError):
            Plug(served, RTDE)
        served.tick()
        assert len(timestamps(plug, 1)) == 1
        served.servers.refuse(RTDE, False)
        with rtde(served) as again:
            served.tick()
            assert len(timestamps(again, 1)) == 1


@pytest.mark.slow
def test_delayed_answers_come_late_but_in_order() -> None:
    with stand() as served, rtde(served) as plug, Plug(served, DASHBOARD) as dashboard:
        dashboard.read(len(GREETING))
        served.servers.delay(RTDE, 0.1, jitter=0.1)
        served.servers.delay(DASHBOARD, 0.3)
        start = time.monotonic()
        assert dashboard.ask(b"robotmode\n", 19) == b"Robotmode: RUNNING\n"
        assert time.monotonic() - start >= 0.3
        served.tick(50)
        assert timestamps(plug, 50) == [pytest.approx(0.002 * tick) for tick in range(1, 51)]
        served.servers.delay(RTDE, 0.0)
        served.tick()
        assert timestamps(plug, 1) == [pytest.approx(0.002 * 51)]


def test_inputs_can_be_claimed_as_by_another_client() -> None:
    request = frame(RtdePackage.INPUTS, b"input_int_register_0")
    with stand() as served, Plug(served, RTDE) as plug:
        with served.lock:
            assert served.servers.take_inputs(("input_int_register_0",)) == ()
        assert plug.ask(request, 10) == frame(RtdePackage.INPUTS, b"\x00IN_USE")
        with served.lock:
            served.servers.release_inputs()
        assert plug.ask(request, 9) == frame(RtdePackage.INPUTS, b"\x01INT32")
        with served.lock:
            assert served.servers.take_inputs(("input_int_register_0",)) == (
                "input_int_register_0",
            )
            with pytest.raises(UnknownName, match="input_int_register_99"):
                served.servers.take_inputs(("input_int_register_99",))


# Hostile clients


@pytest.mark.parametrize(
    ("port", "data"),
    [
        (RTDE, b"\x00\x00\x00"),
        (RTDE, b"GET / HTTP/1.1\r\n\r\n"),
        (DASHBOARD, b"x" * 5000),
        (PRIMARY, b"def a():\n" + b"x" * (1 << 16)),
        (SECONDARY, b"def a():\n" + b"x\n" * (1 << 15)),
        (REALTIME, b"x" * ((1 << 16) + 1)),
    ],
)
def test_an_offender_is_disconnected_and_a_stream_continues(
    monkeypatch: pytest.MonkeyPatch, port: int, data: bytes
) -> None:
    monkeypatch.setattr(scripts, "MAX_SCRIPT", 1 << 16)  # a mebibyte takes a second
    with stand() as served, rtde(served) as stream, Plug(served, port) as offender:
        with contextlib.suppress(ConnectionError):
            offender.sock.sendall(data)
        assert offender.closed()
        served.tick(10)
        assert len(timestamps(stream, 10)) == 10


def test_crowd_is_limited_to_its_port() -> None:
    with stand() as served, rtde(served) as stream:
        crowd = [Plug(served, PRIMARY) for _ in range(MAX_CLIENTS + 20)]
        try:
            assert sum(not plug.sock.recv(1) for plug in crowd) == 20
            assert served.servers.clients(PRIMARY) == MAX_CLIENTS
            served.tick(60)
            assert len(timestamps(stream, 60)) == 60
            with Plug(served, DASHBOARD) as dashboard:
                assert dashboard.read(len(GREETING)) == GREETING
        finally:
            for plug in crowd:
                plug.sock.close()
        assert eventually(lambda: served.servers.clients(PRIMARY) == 0)


@pytest.mark.slow
def test_silent_client_delays_nobody() -> None:
    every = b",".join(b"output_double_register_%d" % i for i in range(48)) + b",timestamp"
    with stand() as served, rtde(served, every) as deaf, rtde(served) as stream:
        for _ in range(60):
            served.tick(100)
            timestamps(stream, 100)
        waiting = max(client.waiting for client in served.servers._ports[RTDE].clients)
        assert waiting < 400  # never more than the rest of one package
        # What it missed is lost; what it gets is complete and in order.
        served.tick()
        times = []
        deaf.sock.settimeout(0.2)
        try:
            while True:
                package = deaf.read(396)
                assert package[:4] == struct.pack(">HBB", 396, RtdePackage.DATA, 1)
                times.append(struct.unpack_from(">d", package, 388)[0])
        except TimeoutError:
            pass
        assert len(times) < 6_000
        assert times == sorted(times)


@pytest.mark.slow
def test_a_client_that_asks_without_reading_is_disconnected() -> None:
    with stand() as served, Plug(served, RTDE) as deaf, rtde(served) as stream:
        request = frame(118) * 1000
        sent = 0
        with pytest.raises(OSError, match=r"reset|pipe"):
            while sent < 64 * MAX_WAITING:
                sent += deaf.sock.send(request)
        served.tick(5)
        assert len(timestamps(stream, 5)) == 5


@pytest.mark.parametrize(
    ("port", "flood"),
    [(RTDE, frame(118)), (DASHBOARD, b"robotmode\n"), (PRIMARY, b"x = 1\n"), (REALTIME, b"end\n")],
)
def test_a_flood_does_not_disturb_a_stream(port: int, flood: bytes) -> None:
    with stand() as served, rtde(served) as stream, Plug(served, port) as flooder:
        over = threading.Event()

        def pour() -> None:
            flooder.sock.settimeout(0.05)
            with contextlib.suppress(OSError):
                while not over.is_set():
                    with contextlib.suppress(TimeoutError):
                        flooder.sock.send(flood * 1000)

        thread = threading.Thread(target=pour)
        thread.start()
        try:
            served.tick(300)
            assert len(timestamps(stream, 300)) == 300
        finally:
            over.set()
            thread.join()


def test_last_of_several_programs_runs() -> None:
    secondary = "sec blink():\n  sync()\nend\n"
    with stand("5.12") as served, Plug(served, SECONDARY) as plug:
        plug.sock.sendall(("stopj(1.0)\n" * 20 + secondary + "stopj(2.0)\n").encode())
        assert eventually(
            lambda: (
                served.controller.calls[-2:]
                == [("load_script", secondary), ("load_script", "stopj(2.0)\n")]
            )
        )


def test_half_open_connections_are_cleaned_up() -> None:
    with stand() as served, rtde(served) as stream:
        half = Plug(served, RTDE)
        half.sock.sendall(PREAMBLE[:3])
        half.sock.shutdown(socket.SHUT_WR)
        assert half.closed()
        half.sock.close()
        # And one that is reset.
        cut = rtde(served)
        cut.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        cut.sock.close()
        served.tick(20)
        assert len(timestamps(stream, 20)) == 20
        assert eventually(lambda: served.servers.clients(RTDE) == 1)


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from(ALL_PORTS), st.binary(min_size=1, max_size=200)),
        min_size=1,
        max_size=6,
    )
)
def test_random_bytes_do_not_disturb_a_stream(attack: list[tuple[int, bytes]]) -> None:
    with stand() as served, rtde(served) as stream:
        plugs = []
        for port, data in attack:
            plug = Plug(served, port)
            plug.sock.sendall(data)
            plugs.append(plug)
        served.tick(10)
        assert len(timestamps(stream, 10)) == 10
        for plug in plugs:
            plug.sock.close()


def test_bug_disconnects_the_client() -> None:
    served = Stand(FakeController(), "127.0.0.1", ANY_PORTS)
    served.servers.start()

    def broken() -> None:
        raise KeyError("a bug")

    served.controller.power_on = broken  # type: ignore[method-assign]
    with Plug(served, DASHBOARD) as plug, Plug(served, DASHBOARD) as other:
        plug.sock.sendall(b"power on\n")
        assert plug.closed()
        assert other.ask(b"running\n", len(GREETING) + 23).endswith(b"false\n")

    with pytest.raises(KeyError, match="a bug"):
        served.stop()


# The real client, in a separate process, which it has been seen to crash.


def run(code: str) -> list[str]:
    result = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert result.returncode == 0, result.stderr
    return result.stdout.split("\n")[:-1]


@pytest.mark.slow
@needs_ur_rtde
@pytest.mark.parametrize(
    ("polyscope", "newer"),
    [("3.15", "getPayloadInertia"), ("5.12", "getFtRawWrench"), ("5.25", "getFtRawWrench")],
)
def test_ur_rtde_receives(polyscope: str, newer: str) -> None:
    with stand(polyscope, HOST, {}, run=True) as served:
        q, mode, new = run(f"""
            import time
            from rtde_receive import RTDEReceiveInterface
            r = RTDEReceiveInterface("{HOST}")
            print(r.getActualQ())
            start = r.getTimestamp()
            while r.getTimestamp() <= start:
                time.sleep(0.01)
            print(r.getRobotMode())
            print(len(r.{newer}()))
        """)
        assert q == str(served.controller.state.actual_q.tolist())
        assert (mode, new) == ("7", "6")


@pytest.mark.slow
@needs_ur_rtde
def test_ur_rtde_receives_a_custom_recipe() -> None:
    with stand("5.12", HOST, {}, run=True) as served:
        served.controller.state.output_double[12] = 0.125
        assert run(f"""
            from rtde_receive import RTDEReceiveInterface
            names = ["timestamp", "output_double_register_12", "runtime_state"]
            r = RTDEReceiveInterface("{HOST}", 50.0, names)
            print(r.getOutputDoubleRegister(12), r.getRuntimeState(), r.isConnected())
        """) == ["0.125 1 True"]


@needs_ur_rtde
def test_ur_rtde_writes_inputs() -> None:
    with stand("5.12", HOST, {}, run=True) as served:
        assert run(f"""
            from rtde_io import RTDEIOInterface
            io = RTDEIOInterface("{HOST}")
            results = [
                io.setSpeedSlider(0.5),
                io.setStandardDigitalOut(3, True),
                io.setInputDoubleRegister(18, 2.5),
            ]
            print(*results)
        """) == ["True True True"]
        assert eventually(lambda: served.controller.state.input_double[18] == 2.5)
        assert served.controller.state.speed_slider == 0.5
        assert served.controller.state.digital_outputs == 1 << 3


@pytest.mark.slow
@needs_ur_rtde
@pytest.mark.parametrize("polyscope", ["3.15", "5.12", "5.25"])
def test_ur_rtde_understands_the_dashboard(polyscope: str, tmp_path: Path) -> None:
    with stand(polyscope, HOST, {}) as served:
        write_program(tmp_path / "weld.urp")
        served.controller.programs = tmp_path
        output = run(f"""
            from dashboard_client import DashboardClient
            d = DashboardClient("{HOST}")
            d.connect()
            for name in ("polyscopeVersion", "robotmode", "programState", "getLoadedProgram",
                         "getRobotModel", "safetymode", "running", "isProgramSaved",
                         "isInRemoteControl"):
                print(getattr(d, name)())
            d.loadURP("weld.urp")
            for name in ("play", "pause", "stop", "powerOff", "powerOn", "brakeRelease",
                         "unlockProtectiveStop", "closePopup", "closeSafetyPopup",
                         "restartSafety", "safetystatus"):
                getattr(d, name)()
            d.popup("hello")
            d.addToLog("hello")
            print(d.getLoadedProgram())
            if "{polyscope}" != "3.15":
                print(d.getSerialNumber())
            d.quit()
        """)
        version = ".".join(str(part) for part in served.controller.profile.version)
        assert output[:7] == [
            version,
            "Robotmode: RUNNING",
            "STOPPED <unnamed>",
            "No program loaded",
            "UR10",
            "Safetymode: NORMAL",
            "False",
        ]
        assert output[8] == str(polyscope != "3.15")
        assert output[9:] == ["Loaded program: /programs/weld.urp"] + ["20261234567"] * (
            polyscope != "3.15"
        )
        names = (
            "play_program pause_program stop_program power_off power_on brake_release "
            "unlock_protective_stop"
        )
        assert [call[0] for call in served.controller.calls] == [
            *names.split(),
            "close_popup",
            "restart_safety",
            "popup",
        ]
