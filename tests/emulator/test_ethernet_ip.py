"""EtherNet/IP data of a program."""

from __future__ import annotations

from tests.emulator.calls import fault_of


def test_ethernet_ip_data_has_the_labels_that_were_defined():
    source = (
        'h = eip_writer_factory("101", 8)\nh.define_bit(0, 1, "on")\n'
        'h.define_int16_array(2, 3, "axes")\n'
        'h.write(struct(on=True))\nr = h.read(["on", "axes"])\n'
        'write_output_integer_register(0, length(r.axes))\nh.read("none")\n'
    )
    controller, messages = fault_of(source)

    assert controller.state.output_int[0] == 3
    assert "has no label 'none'" in messages[0][1]
