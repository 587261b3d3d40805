"""A xacro or URDF file from anywhere cannot run for ever, fill memory, or read foreign files."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest

from simbridge.errors import InputFileError
from simbridge.files.reading import MIB
from simbridge.files.reading_process import Limits
from simbridge.robot import xacro_file
from simbridge.robot.packages import Packages
from simbridge.robot.xacro_file import expand_xacro
from simbridge.robot.xml_element import read_xml
from tests.properties import variants

pytestmark = pytest.mark.slow

SECRET = "the content of another file"
# Each line is ten times as long as the one before, once it is expanded.
LAUGHS = [
    f"{name}: &{name} [{','.join([inner] * 10)}]\n"
    for name, inner in [
        ("a", "x"),
        ("b", "*a"),
        ("c", "*b"),
        ("d", "*c"),
        ("e", "*d"),
        ("f", "*e"),
        ("g", "*f"),
    ]
]


def expand(path, body, named=None, arguments=None):
    """Expand a xacro file with this content in its <robot>."""
    text = f'<robot name="r" xmlns:xacro="http://ros.org/wiki/xacro">{body}</robot>'
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return expand_xacro(path, text, Packages(path, named or {}), arguments)


def evaluate(path, expression, **options):
    return expand(path, f'<link name="${{{expression}}}"/>', **options)


@pytest.fixture
def arm(tmp_path):
    return tmp_path / "project" / "urdf" / "arm.xacro"


@pytest.fixture
def secret(tmp_path):
    file = tmp_path / "home" / "secret.yaml"
    file.parent.mkdir()
    file.write_text(SECRET)
    return file


@pytest.fixture
def quick_limits(monkeypatch):
    """One second of computing time, and less memory and output than a user has."""
    monkeypatch.setattr(xacro_file, "LIMITS", Limits(cpu=1, memory=256 * MIB, output=MIB))


ENDLESS = {
    "a power": '<link name="${10**10**9}"/>',
    "a loop": '<link name="${python.sum(python.range(10**12))}"/>',
    "macros": '<xacro:macro name="m0"><material name="q"/></xacro:macro>'
    + "".join(
        f'<xacro:macro name="m{i + 1}"><xacro:m{i}/><xacro:m{i}/></xacro:macro>' for i in range(25)
    )
    + "<xacro:m25/>",
}
LARGE = {
    "a text": "<link name=\"${'a'*4*10**9}\"/>",
    "a list": '<link name="${len(list(range(10**9)))}"/>',
    "properties": '<xacro:property name="p0" value="xxxxxxxxxxxxxxxx"/>'
    + "".join(f'<xacro:property name="p{i + 1}" value="${{p{i}}}${{p{i}}}"/>' for i in range(30))
    + '<link name="${p30}"/>',
}


@pytest.mark.parametrize("name", variants(ENDLESS, "macros"))
def test_what_never_ends_is_refused(name, arm, quick_limits):
    with pytest.raises(InputFileError, match=r"more than 1 s of CPU time|MiB of memory"):
        expand(arm, ENDLESS[name])


@pytest.mark.parametrize("name", variants(LARGE, "a text", "a list"))
def test_what_fills_memory_is_refused(name, arm, quick_limits):
    # Where the computer is slow, time ends first.
    with pytest.raises(
        InputFileError, match=r"more than 256 MiB of memory|more than 1 s of CPU time"
    ):
        expand(arm, LARGE[name])


# Six of them exceed the output, seven the computing time.
@pytest.mark.parametrize("count", variants([6, 7], 6))
def test_yaml_of_nested_anchors_is_refused(arm, quick_limits, count):
    arm.parent.mkdir(parents=True)
    (arm.parent / "laughs.yaml").write_text("".join(LAUGHS[:count]))

    with pytest.raises(InputFileError, match=r"more than|content exceeds"):
        evaluate(arm, "str(xacro.load_yaml('laughs.yaml'))")


def test_a_large_expansion_is_refused(arm, quick_limits):
    with pytest.raises(InputFileError, match="exceeds 1 MiB"):
        evaluate(arm, "'a' * 2 * 10**6")


def test_the_limits_are_the_documented_ones():
    assert Limits(cpu=10, memory=1024 * MIB, output=4 * MIB) == xacro_file.LIMITS


def test_files_of_the_directory_above_are_read(arm):
    (arm.parents[1] / "config").mkdir(parents=True)
    (arm.parents[1] / "config" / "sizes.yaml").write_text("length: 0.5")

    urdf = evaluate(arm, "xacro.load_yaml('../config/sizes.yaml')['length']")

    assert '<link name="0.5"/>' in urdf


def test_files_of_the_package_are_read(tmp_path):
    package = tmp_path / "package"
    arm = package / "robots" / "urdf" / "arm.xacro"
    (package / "config").mkdir(parents=True)
    (package / "package.xml").write_text("<package><name>mine</name></package>")
    (package / "config" / "sizes.yaml").write_text("length: 0.5")

    assert '<link name="0.5"/>' in evaluate(
        arm, "xacro.load_yaml('../../config/sizes.yaml')['length']"
    )


def test_files_of_a_named_package_are_read(arm, secret):
    urdf = evaluate(
        arm, "xacro.load_yaml('$(find parts)/secret.yaml')", named={"parts": secret.parent}
    )

    assert SECRET in urdf


def test_package_links_are_followed(arm, secret, tmp_path, monkeypatch):
    share = tmp_path / "install" / "share" / "parts"
    share.mkdir(parents=True)
    (share / "part.yaml").symlink_to(secret)
    monkeypatch.setenv("AMENT_PREFIX_PATH", str(tmp_path / "install"))

    assert SECRET in evaluate(arm, "xacro.load_yaml('$(find parts)/part.yaml')")


def test_a_path_among_the_arguments_is_read(arm, secret):
    body = (
        '<xacro:arg name="file" default=""/><link name="${xacro.load_yaml(xacro.arg(\'file\'))}"/>'
    )

    assert SECRET in expand(arm, body, arguments={"file": str(secret)})


READS = {
    "yaml": "<link name=\"${{xacro.load_yaml('{}')}}\"/>",
    "an include": '<xacro:include filename="{}"/>',
    "an optional include": '<xacro:include filename="{}" optional="true"/>',
}


def refused_message(arm, body):
    with pytest.raises(InputFileError) as caught:
        expand(arm, body)
    return str(caught.value)


@pytest.mark.parametrize("way", ["yaml", "an include", "an optional include"])
def test_a_file_elsewhere_is_refused_by_name(way, arm, secret):
    message = refused_message(arm, READS[way].format(secret))

    assert f"it reads {secret}" in message
    assert SECRET not in message


@pytest.mark.parametrize("way", ["yaml", "an include"])
def test_a_link_to_a_file_elsewhere_is_refused(way, arm, secret):
    arm.parent.mkdir(parents=True)
    (arm.parent / "link.yaml").symlink_to(secret)

    message = refused_message(arm, READS[way].format("link.yaml"))

    assert "which is outside of its package" in message
    assert SECRET not in message


def test_a_hidden_file_is_refused(arm):
    (arm.parents[1] / ".ssh").mkdir(parents=True)
    (arm.parents[1] / ".ssh" / "key.yaml").write_text(SECRET)

    assert "or hidden" in refused_message(arm, READS["yaml"].format("../.ssh/key.yaml"))


def test_a_namesake_directory_is_not_read(arm, secret):
    message = refused_message(arm, READS["yaml"].format("$(find home)/secret.yaml"))

    assert f"it reads {secret}" in message
    assert SECRET not in message


def test_names_in_a_directory_elsewhere_are_not_listed(arm, secret):
    message = refused_message(arm, f'<xacro:include filename="{secret.parent}/*.yaml"/>')

    assert f"it reads {secret.parent}" in message
    assert secret.name not in message


def test_a_fifo_is_refused(arm):
    arm.parent.mkdir(parents=True)
    os.mkfifo(arm.parent / "pipe.xacro")

    assert "pipe.xacro" in refused_message(arm, READS["an include"].format("pipe.xacro"))


@pytest.mark.parametrize(
    "expression", ["float(xacro.load_yaml('own.yaml'))", "xacro.load_yaml('own.yaml').nothing"]
)
def test_an_error_does_not_quote_what_was_read(arm, expression):
    arm.parent.mkdir(parents=True)
    (arm.parent / "own.yaml").write_text(f"'{SECRET}'")

    with pytest.raises(InputFileError) as caught:
        evaluate(arm, expression)

    assert SECRET not in str(caught.value)


def test_messages_of_the_file_are_not_printed(arm, capfd):
    expand(arm, "${xacro.warning('attention')}<link name=\"a\"/>")

    assert capfd.readouterr() == ("", "")


def test_a_program_is_not_started(arm, tmp_path):
    # The frame of a generator leads to the modules of the program, and no name with two underscores
    # is written.
    system = "g.gi_frame.f_back.f_back.f_back.f_globals['os'].system"
    generator = f"({system}('touch {tmp_path / 'started'}') for g in generators)"
    expression = (
        f"[str(g) for generators in [[]] for _ in [generators.append({generator})] for g in "
        "generators[0]]"
    )

    with pytest.raises(InputFileError, match="an expression uses gi_frame"):
        evaluate(arm, expression)

    assert not (tmp_path / "started").exists()


def test_underscores_in_a_function_are_refused(arm):
    with pytest.raises(InputFileError, match="an expression uses __class__"):
        evaluate(arm, "(lambda value: value.__class__)(1)")


def test_the_child_ends_with_its_parent(arm, tmp_path):
    arm.parent.mkdir(parents=True)
    text = '<robot xmlns:xacro="http://ros.org/wiki/xacro"><link name="${10**10**9}"/></robot>'
    arm.write_text(text)
    program = (
        "import sys, threading, pathlib\n"
        "from simbridge.robot.packages import Packages\n"
        "from simbridge.files import reading_process\n"
        "from simbridge.robot.xacro_file import expand_xacro\n"
        "start = reading_process.ReadingProcess._start\n"
        "def report(self):\n"
        "    process = start(self)\n"
        "    print(process.pid, flush=True)\n"
        "    return process\n"
        "reading_process.ReadingProcess._start = report\n"
        "path = pathlib.Path(sys.argv[1])\n"
        "expand_xacro(path, path.read_text(), Packages(path))\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program, str(arm)], stdout=subprocess.PIPE, text=True
    ) as parent:
        child = int(parent.stdout.readline())
        parent.send_signal(signal.SIGKILL)

    # Its computing time would end it only after ten seconds.
    def runs():
        try:
            return "\nState:\tZ" not in open(f"/proc/{child}/status").read()
        except FileNotFoundError:
            return False

    deadline = time.monotonic() + 8.0
    while runs() and time.monotonic() < deadline:
        time.sleep(0.02)

    assert not runs()


ENTITIES = (
    '<!DOCTYPE r [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;">]>'
    '<robot name="&b;"/>'
)


def test_urdf_entities_are_refused_by_line(tmp_path):
    path = tmp_path / "arm.urdf"
    path.write_text(ENTITIES)

    with pytest.raises(InputFileError, match="entities are not read") as caught:
        read_xml(path, Packages(path))

    assert caught.value.line == 1


def test_narrower_limits_of_the_user_are_kept(arm):
    evaluation = "import sys, pathlib\nfrom simbridge.robot.packages import Packages\n"
    evaluation += (
        "from simbridge.robot.xacro_file import expand_xacro\npath = pathlib.Path(sys.argv[1])\n"
    )
    evaluation += "print(expand_xacro(path, path.read_text(), Packages(path)))\n"
    evaluate(arm, "1 + 1")
    limited = f"ulimit -v 900000; ulimit -t 100; exec {sys.executable} -c '{evaluation}' {arm}"

    printed = subprocess.run(
        ["bash", "-c", limited], capture_output=True, text=True, check=True
    ).stdout

    assert '<link name="2"/>' in printed


def test_a_workspace_of_links_is_read(tmp_path):
    # As colcon build --symlink-install makes it.
    source = tmp_path / "src" / "mine" / "urdf"
    source.mkdir(parents=True)
    (source.parent / "package.xml").write_text("<package><name>mine</name></package>")
    (source / "part.xacro").write_text('<robot><link name="part"/></robot>')
    text = (
        '<robot name="r" xmlns:xacro="http://ros.org/wiki/xacro">'
        '<xacro:include filename="$(find mine)/urdf/part.xacro"/></robot>'
    )
    (source / "arm.xacro").write_text(text)
    share = tmp_path / "install" / "share" / "mine"
    (share / "urdf").mkdir(parents=True)
    for name in ("package.xml", "urdf/part.xacro", "urdf/arm.xacro"):
        (share / name).symlink_to(source.parent / name)
    arm = share / "urdf" / "arm.xacro"

    assert '<link name="part"/>' in expand_xacro(arm, text, Packages(arm))


def test_a_message_cannot_control_the_terminal(arm):
    with pytest.raises(InputFileError) as caught:
        evaluate(arm, "xacro.fatal('\\x1b[2J')")

    assert "\x1b" not in str(caught.value)


@pytest.mark.parametrize("name", ["{}", "../../home", ".."])
def test_a_path_is_no_name_of_a_package(name, arm, secret, tmp_path, monkeypatch):
    (tmp_path / "ros" / "share").mkdir(parents=True)
    monkeypatch.setenv("ROS_PACKAGE_PATH", str(tmp_path / "ros" / "share"))

    message = refused_message(
        arm, READS["yaml"].format(f"$(find {name.format(secret.parent)})/secret.yaml")
    )

    assert " not found; give its directory" in message
    assert SECRET not in message
