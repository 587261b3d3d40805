from __future__ import annotations

import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simbridge.emulator.errors import ProtocolViolation
from simbridge.emulator.rtde import RtdeConnection, frame
from simbridge.emulator.rtde_recipes import MAX_PACKAGE, RtdeRegistry
from simbridge.emulator.rtde_variables import input_variables, output_variables
from simbridge.emulator.state import PROFILES
from simbridge.ur.tables import RTDE_FORMATS, RobotMode, RtdePackage, RuntimeState, SafetyMode
from tests.emulator.fake_controller import FakeController
from tests.properties import few_examples

POLYSCOPE_X = ("10.7", "10.12", "10.14")
PREAMBLE = frame(RtdePackage.PROTOCOL_VERSION, b"\x00\x02")

# What ur_rtde 1.6.5 asks of every version it supports.
UR_RTDE_RECEIVE = {
    "timestamp": "DOUBLE",
    "target_q": "VECTOR6D",
    "target_qd": "VECTOR6D",
    "target_qdd": "VECTOR6D",
    "target_current": "VECTOR6D",
    "target_moment": "VECTOR6D",
    "actual_q": "VECTOR6D",
    "actual_qd": "VECTOR6D",
    "actual_current": "VECTOR6D",
    "joint_control_output": "VECTOR6D",
    "actual_TCP_pose": "VECTOR6D",
    "actual_TCP_speed": "VECTOR6D",
    "actual_TCP_force": "VECTOR6D",
    "target_TCP_pose": "VECTOR6D",
    "target_TCP_speed": "VECTOR6D",
    "actual_digital_input_bits": "UINT64",
    "joint_temperatures": "VECTOR6D",
    "actual_execution_time": "DOUBLE",
    "robot_mode": "INT32",
    "joint_mode": "VECTOR6INT32",
    "safety_mode": "INT32",
    "actual_tool_accelerometer": "VECTOR3D",
    "speed_scaling": "DOUBLE",
    "target_speed_fraction": "DOUBLE",
    "actual_momentum": "DOUBLE",
    "actual_main_voltage": "DOUBLE",
    "actual_robot_voltage": "DOUBLE",
    "actual_robot_current": "DOUBLE",
    "actual_joint_voltage": "VECTOR6D",
    "actual_digital_output_bits": "UINT64",
    "runtime_state": "UINT32",
    "standard_analog_input0": "DOUBLE",
    "standard_analog_input1": "DOUBLE",
    "standard_analog_output0": "DOUBLE",
    "standard_analog_output1": "DOUBLE",
    "robot_status_bits": "UINT32",
    "safety_status_bits": "UINT32",
    "output_int_register_2": "INT32",
    "output_double_register_12": "DOUBLE",
}


class Client:
    """A connection that has agreed on protocol version 2."""

    def __init__(self, controller: FakeController, registry: RtdeRegistry) -> None:
        self.controller = controller
        self.connection = RtdeConnection(controller, registry)
        assert self.connection.receive(PREAMBLE) == frame(RtdePackage.PROTOCOL_VERSION, b"\x01")

    def outputs(self, names: str, frequency: float = 500.0) -> tuple[int, str]:
        reply = self.connection.receive(
            frame(RtdePackage.OUTPUTS, struct.pack(">d", frequency) + names.encode())
        )
        return self._setup(reply, RtdePackage.OUTPUTS)

    def inputs(self, names: str) -> tuple[int, str]:
        return self._setup(
            self.connection.receive(frame(RtdePackage.INPUTS, names.encode())), RtdePackage.INPUTS
        )

    @staticmethod
    def _setup(reply: bytes, kind: int) -> tuple[int, str]:
        size, replied = struct.unpack_from(">HB", reply)
        assert (size, replied) == (len(reply), kind)
        return reply[3], reply[4:].decode()

    def start(self) -> bool:
        reply = self.connection.receive(frame(RtdePackage.START))
        assert reply[:3] == b"\x00\x04S"
        return bool(reply[3])

    def send(self, recipe: int, layout: str, *values: object) -> None:
        assert (
            self.connection.receive(
                frame(RtdePackage.DATA, bytes([recipe]) + struct.pack(layout, *values))
            )
            == b""
        )

    def read(self, layout: str, tick: int = 0) -> tuple[object, ...]:
        package = self.connection.output(tick)
        assert package[:4] == struct.pack(">HBB", len(package), RtdePackage.DATA, 1)
        return struct.unpack(layout, package[4:])


@pytest.fixture
def controller() -> FakeController:
    return FakeController("5.12")


@pytest.fixture
def client(controller: FakeController) -> Client:
    return Client(controller, RtdeRegistry(controller))


def test_versions_one_and_two_are_accepted_and_others_refused(controller: FakeController) -> None:
    connection = RtdeConnection(controller, RtdeRegistry(controller))
    answers = [
        connection.receive(frame(RtdePackage.PROTOCOL_VERSION, bytes([0, v])))[-1]
        for v in (1, 2, 3, 0)
    ]

    assert answers == [1, 1, 0, 0]


@pytest.mark.parametrize("polyscope", PROFILES)
def test_the_controller_reports_its_version(polyscope: str) -> None:
    controller = FakeController(polyscope)
    reply = RtdeConnection(controller, RtdeRegistry(controller)).receive(
        frame(RtdePackage.CONTROLLER_VERSION)
    )

    assert reply == b"\x00\x13v" + struct.pack(">4I", *controller.profile.version)


@pytest.mark.parametrize("polyscope", PROFILES)
def test_every_version_has_the_variables_that_ur_rtde_always_requests(polyscope: str) -> None:
    controller = FakeController(polyscope)
    recipe, types = Client(controller, RtdeRegistry(controller)).outputs(
        ",".join(UR_RTDE_RECEIVE) + ","
    )

    assert (recipe, types.split(",")) == (1, list(UR_RTDE_RECEIVE.values()))


@pytest.mark.parametrize(
    ("variable", "kind", "known"),
    [
        ("ft_raw_wrench", "VECTOR6D", {"5.9", "5.12", "5.25", *POLYSCOPE_X}),
        ("payload_inertia", "VECTOR6D", {"3.15", "5.12", "5.25", *POLYSCOPE_X}),
        ("payload_cog", "VECTOR3D", {"3.15", "5.9", "5.12", "5.25", *POLYSCOPE_X}),
        ("actual_current_as_torque", "VECTOR6D", {"5.25", "10.12", "10.14"}),
        ("target_gravity", "VECTOR3D", {"5.25", "10.12", "10.14"}),
        ("control_step", "UINT64", {"5.25", "10.14"}),
        ("target_base_wrench", "VECTOR6D", {"5.25", "10.14"}),
        ("output_double_register_47", "DOUBLE", {"3.15", "5.9", "5.12", "5.25", *POLYSCOPE_X}),
        ("no_such_thing", "", set()),
        ("output_int_register_48", "", set()),
    ],
)
def test_a_variable_is_found_from_its_first_version_on(
    variable: str, kind: str, known: set[str]
) -> None:
    for polyscope in PROFILES:
        controller = FakeController(polyscope)
        recipe, types = Client(controller, RtdeRegistry(controller)).outputs(
            f"timestamp,{variable}"
        )
        is_known = polyscope in known
        assert (recipe, types) == ((1, f"DOUBLE,{kind}") if is_known else (0, "DOUBLE,NOT_FOUND"))


def test_a_recipe_with_an_unknown_variable_cannot_be_started(client: Client) -> None:
    client.outputs("timestamp,unknown")

    assert not client.start()
    assert client.connection.output(0) == b""

    client.outputs("timestamp")

    assert client.start()
    assert client.connection.output(0)


@pytest.mark.parametrize("version", [1, 2])
def test_start_without_outputs_is_refused(controller: FakeController, version: int) -> None:
    connection = RtdeConnection(controller, RtdeRegistry(controller))
    connection.receive(frame(RtdePackage.PROTOCOL_VERSION, bytes([0, version])))
    connection.receive(frame(RtdePackage.INPUTS, b"input_int_register_24"))

    answer = connection.receive(frame(RtdePackage.START))

    assert answer == frame(RtdePackage.START, b"\x00")
    assert connection.receive(frame(RtdePackage.PAUSE)) == frame(RtdePackage.PAUSE, b"\x01")


def test_outputs_set_up_later_can_start(client: Client) -> None:
    client.inputs("input_int_register_24")
    assert not client.start()

    client.outputs("timestamp")

    assert client.start()
    assert client.connection.output(0)


def test_refused_outputs_end_an_earlier_recipe(client: Client) -> None:
    client.outputs("timestamp")
    client.outputs("timestamp,unknown")

    assert not client.start()


def test_the_package_holds_the_state_in_the_requested_order(
    client: Client, controller: FakeController
) -> None:
    for bit in (3, 31, 64):
        controller.state.output_bit[bit] = True
    controller.state.safety_mode = SafetyMode.PROTECTIVE_STOP
    controller.state.runtime_state = RuntimeState.PAUSED
    controller.state.output_int[7] = -5
    controller.state.digital_outputs = 1 << 17
    client.outputs(
        "actual_q,timestamp,output_bit_registers0_to_31,output_bit_register_64,safety_status_bits,"
        "runtime_state,"
        "output_int_register_7,actual_digital_output_bits,robot_status_bits,robot_mode"
    )
    client.start()
    controller.state.timestamp = 12.5

    *q, time, bits, bit, safety, runtime, register, digital, status, mode = client.read(
        ">6ddI?IIiQIi"
    )

    assert q == [0.1, -1.2, 1.3, -1.4, -1.5, 0.6]
    assert (time, bits, bit, register, digital) == (12.5, 1 << 3 | 1 << 31, True, -5, 1 << 17)
    assert (safety, runtime, status, mode) == (1 << 2 | 1 << 10, 4, 3, RobotMode.RUNNING)


@pytest.mark.parametrize("polyscope", PROFILES)
def test_every_variable_packs_as_its_type(polyscope: str) -> None:
    controller = FakeController(polyscope)
    known = output_variables(controller.profile)
    client = Client(controller, RtdeRegistry(controller))

    recipe, types = client.outputs(",".join(known))

    assert recipe == 1
    assert types.split(",") == [variable.type for variable in known.values()]

    client.start()
    size = struct.calcsize(
        ">" + "".join(RTDE_FORMATS[variable.type] for variable in known.values())
    )

    assert len(client.connection.output(0)) == 4 + size < MAX_PACKAGE


def test_nothing_is_sent_before_start_and_after_pause(client: Client) -> None:
    client.outputs("timestamp")

    assert client.connection.output(0) == b""

    client.start()

    assert client.connection.output(1) != b""
    assert client.connection.receive(frame(RtdePackage.PAUSE)) == b"\x00\x04P\x01"
    assert client.connection.output(2) == b""

    client.start()

    assert client.connection.output(3) != b""


@pytest.mark.parametrize(
    ("polyscope", "frequency", "packages"),
    [
        ("5.12", 500.0, 500),
        ("5.12", 125.0, 125),
        ("5.12", 50.0, 50),
        ("5.12", 300.0, 500),  # floor(500 / 300) = 1
        ("5.12", 160.0, 167),  # floor(500 / 160) = 3
        ("5.12", 1.0, 1),
        ("5.12", 0.0, 1),
        ("5.12", -1.0, 1),
        ("5.12", 1e300, 500),
        ("5.12", float("nan"), 500),
        ("3.15", 125.0, 125),
        ("3.15", 500.0, 125),
        ("3.15", 60.0, 63),  # floor(125 / 60) = 2
    ],
)
def test_the_frequency_divides_the_controllers(
    polyscope: str, frequency: float, packages: int
) -> None:
    controller = FakeController(polyscope)
    client = Client(controller, RtdeRegistry(controller))
    client.outputs("timestamp", frequency)
    client.start()

    a_second = round(1.0 / controller.profile.period)

    assert sum(bool(client.connection.output(tick)) for tick in range(a_second)) == packages


def test_clients_with_the_same_recipe_get_the_same_bytes(controller: FakeController) -> None:
    registry = RtdeRegistry(controller)
    first, second, third = (Client(controller, registry) for _ in range(3))
    for client, names in (
        (first, "timestamp,actual_q"),
        (second, "timestamp,actual_q"),
        (third, "actual_q"),
    ):
        client.outputs(names)
        client.start()
    for tick in range(3):
        controller.state.timestamp = tick * 0.002
        assert first.read(">d6d", tick) == second.read(">d6d", tick)
        assert first.read(">d6d", tick)[0] == tick * 0.002
        assert third.read(">6d", tick) == first.read(">d6d", tick)[1:]


def test_version_one_has_no_output_recipes(
    controller: FakeController,
) -> None:
    connection = RtdeConnection(controller, RtdeRegistry(controller))

    assert connection.receive(frame(RtdePackage.OUTPUTS, b"timestamp")) == frame(
        RtdePackage.OUTPUTS, b"DOUBLE"
    )

    connection.receive(frame(RtdePackage.START))

    assert connection.output(5) == frame(RtdePackage.DATA, struct.pack(">d", 0.0))


def test_inputs_are_written_at_once_and_recorded(
    client: Client, controller: FakeController
) -> None:
    names = (
        "input_int_register_0,input_double_register_5,input_bit_register_64,"
        "input_bit_registers0_to_31,"
    )

    assert client.inputs(names) == (1, "INT32,DOUBLE,BOOL,UINT32")

    client.send(1, ">id?I", -11, 0.25, True, 0x80000001)
    state = controller.state

    assert (state.input_int[0], state.input_double[5], state.input_bit[64]) == (-11, 0.25, True)
    assert [i for i, bit in enumerate(state.input_bit) if bit] == [0, 31, 64]
    assert controller.inputs == [(tuple(names.split(",")[:-1]), (-11, 0.25, True, 0x80000001))]


def test_inputs_can_be_read_back(client: Client) -> None:
    client.inputs("input_int_register_3")
    client.send(1, ">i", 42)
    client.outputs("input_int_register_3")
    client.start()

    assert client.read(">i") == (42,)


def test_recipes_are_numbered_from_one(
    client: Client,
) -> None:
    assert client.inputs("input_int_register_0,input_double_register_0") == (1, "INT32,DOUBLE")
    assert client.inputs("input_int_register_0,input_double_register_1") == (2, "INT32,DOUBLE")


def test_an_input_belongs_to_one_client_until_it_leaves(controller: FakeController) -> None:
    registry = RtdeRegistry(controller)
    client = Client(controller, registry)
    two = Client(controller, registry)
    client.inputs("input_int_register_0")

    assert two.inputs("input_int_register_1,input_int_register_0,nonsense") == (
        0,
        "INT32,IN_USE,NOT_FOUND",
    )
    # A refused recipe has claimed nothing.
    assert client.inputs("input_int_register_1") == (2, "INT32")

    client.connection.close()

    assert two.inputs("input_int_register_0,input_int_register_1") == (1, "INT32,INT32")


def test_data_for_an_unknown_recipe_is_ignored(client: Client, controller: FakeController) -> None:
    client.send(3, ">i", 5)

    assert client.connection.receive(frame(RtdePackage.DATA)) == b""
    assert controller.inputs == []


def test_the_speed_slider_needs_its_mask(client: Client, controller: FakeController) -> None:
    client.inputs("speed_slider_fraction,speed_slider_mask")
    for value, mask, expected in (
        (0.4, 0, 1.0),
        (0.5, 1, 0.5),
        (7.0, 1, 1.0),
        (0.3, 1, 0.3),
        (float("nan"), 1, 0.3),
    ):
        client.send(1, ">dI", value, mask)
        assert controller.state.speed_slider == expected


def test_digital_outputs_change_only_where_masked(
    client: Client, controller: FakeController
) -> None:
    controller.state.digital_outputs = 0b1111
    client.inputs("standard_digital_output,standard_digital_output_mask")
    client.inputs("configurable_digital_output_mask,configurable_digital_output")
    client.inputs("tool_digital_output_mask,tool_digital_output")
    client.send(1, ">BB", 0b10000001, 0b10000010)
    client.send(2, ">BB", 0b1, 0b1)
    client.send(3, ">BB", 0xFF, 0b10)

    assert controller.state.digital_outputs == 0b10_00000001_10001101


def test_analog_outputs_are_ratios_of_a_current_or_a_voltage(
    client: Client, controller: FakeController
) -> None:
    client.inputs(
        "standard_analog_output_mask,standard_analog_output_type,standard_analog_output_0,"
        "standard_analog_output_1"
    )
    client.send(1, ">BBdd", 0b11, 0b10, 0.5, 0.25)

    assert (controller.state.analog_outputs, controller.state.analog_output_types) == (
        [12.0, 2.5],
        0b10,
    )

    client.send(1, ">BBdd", 0b00, 0b00, 1.0, 1.0)

    assert controller.state.analog_outputs == [12.0, 2.5]


def test_due_ticks_are_sent_as_one_package(
    client: Client,
) -> None:
    client.outputs("timestamp", 125.0)
    client.start()

    assert [bool(client.connection.output(tick, 10)) for tick in (10, 20, 30)] == [True] * 3
    assert [bool(client.connection.output(tick, 2)) for tick in (2, 4, 6, 8)] == [
        False,
        True,
        False,
        True,
    ]


def test_an_external_wrench_reaches_the_state(client: Client, controller: FakeController) -> None:
    assert client.inputs("external_force_torque") == (1, "VECTOR6D")

    client.send(1, ">6d", 1.0, 2.0, 3.0, 4.0, 5.0, 6.0)

    np.testing.assert_array_equal(controller.state.external_wrench, [1, 2, 3, 4, 5, 6])


def test_text_messages_are_taken_without_an_answer(client: Client) -> None:
    assert client.connection.receive(frame(RtdePackage.TEXT, b"\x02hi\x02me\x03")) == b""


@pytest.mark.parametrize(
    "data",
    [
        b"\x00\x02V",  # shorter than its own header
        b"\x00\x00\x00",
        frame(1),  # no such type
        frame(RtdePackage.PROTOCOL_VERSION, b"\x02"),
        frame(RtdePackage.OUTPUTS, b"1234567"),  # no frequency
        frame(
            RtdePackage.OUTPUTS, struct.pack(">d", 1.0) + b"actual_q," * 500
        ),  # packages of 24 kB
        frame(RtdePackage.INPUTS, b"," * 30000),  # an answer of 300 kB
        frame(RtdePackage.INPUTS, b"input_int_register_0") * 256,
    ],
)
def test_what_the_protocol_does_not_allow_is_a_violation(client: Client, data: bytes) -> None:
    with pytest.raises(ProtocolViolation) as caught:
        client.connection.receive(data)
    assert caught.value.protocol == "RTDE"


def test_misfit_input_package_is_ignored(client: Client, controller: FakeController) -> None:
    client.inputs("input_int_register_0")
    client.send(1, ">2i", 7, 8)

    assert controller.state.input_int[0] == 0
    assert not controller.inputs

    (event,) = controller.events

    assert event.kind == "unknown"
    assert event.data == struct.pack(">2i", 7, 8)
    assert "8 bytes" in event.text
    assert "has 4 (input_int_register_0)" in event.text

    client.send(1, ">i", 9)

    assert controller.state.input_int[0] == 9


@pytest.mark.parametrize(
    ("request_", "named"),
    [
        (frame(RtdePackage.PROTOCOL_VERSION, b"\x00\x03"), "version 3"),
        (
            frame(RtdePackage.OUTPUTS, struct.pack(">d", 1.0) + b"actual_q,coffee"),
            "without the outputs coffee",
        ),
        (frame(RtdePackage.INPUTS, b"sugar"), "without the inputs sugar"),
        (frame(RtdePackage.DATA, b"\x07\x00"), "was not set up"),
        (frame(RtdePackage.TEXT, b"\x02hi\x02me\x03"), "message"),
    ],
)
def test_refused_request_is_reported_with_bytes(
    client: Client, controller: FakeController, request_: bytes, named: str
) -> None:
    client.connection.receive(request_)
    (event,) = controller.events

    assert event.kind == "unknown"
    assert named in event.text
    assert request_.endswith(event.data)


def test_frames_may_arrive_in_any_pieces(controller: FakeController) -> None:
    stream = (
        PREAMBLE
        + frame(RtdePackage.CONTROLLER_VERSION)
        + frame(RtdePackage.INPUTS, b"input_int_register_0")
        + frame(RtdePackage.START)
    )
    whole = RtdeConnection(controller, RtdeRegistry(controller)).receive(stream)

    connection = RtdeConnection(controller, RtdeRegistry(controller))

    assert b"".join(connection.receive(stream[i : i + 1]) for i in range(len(stream))) == whole


_NAMES = st.lists(
    st.sampled_from(
        [*output_variables(PROFILES["5.25"]), *input_variables(PROFILES["5.25"]), "nonsense", ""]
    ),
    max_size=6,
).map(lambda names: ",".join(names).encode())
_FRAMES = st.one_of(
    st.binary(max_size=40),
    st.builds(frame, st.sampled_from(b"VvMOISPU"), st.binary(max_size=40)),
    st.builds(
        lambda f, n: frame(RtdePackage.OUTPUTS, struct.pack(">d", f) + n), st.floats(), _NAMES
    ),
    st.builds(lambda n: frame(RtdePackage.INPUTS, n), _NAMES),
    st.builds(
        lambda n, rest: struct.pack(">HB", n, 79) + rest,
        st.integers(0, 65535),
        st.binary(max_size=40),
    ),
    st.just(frame(RtdePackage.START)),
    st.just(PREAMBLE),
)


@pytest.mark.slow
@few_examples(40, soak=2000)
@given(st.lists(_FRAMES, max_size=8))
def test_any_bytes_do_not_accumulate(chunks: list[bytes]) -> None:
    controller = FakeController("5.25")
    connection = RtdeConnection(controller, RtdeRegistry(controller))
    try:
        for tick, chunk in enumerate(chunks):
            connection.receive(chunk)
            connection.output(tick)
            assert len(connection._buffer) < 65536
    except ProtocolViolation as violation:
        assert violation.protocol == "RTDE"
    finally:
        connection.close()
