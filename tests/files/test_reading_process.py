"""A child process that reads a file never holds its parent up."""

from __future__ import annotations

import pytest

from simbridge.files import reading_process
from simbridge.files.reading import MIB
from simbridge.files.reading_process import Limits, ReadingFailed, ReadingProcess

pytestmark = pytest.mark.slow

# Children that give no answer, and go on for longer than they may.
CHILDREN = {
    "closes its pipe": "import os, time; os.close(1); time.sleep(20)",
    "sends too long a frame": (
        "import os, struct, time; os.write(1, struct.pack('<Q', 2**40)); time.sleep(20)"
    ),
}


@pytest.mark.parametrize("child", CHILDREN.values(), ids=list(CHILDREN))
def test_child_without_answer_is_ended(child, tmp_path, monkeypatch):
    (tmp_path / "reader.py").write_text(child)
    monkeypatch.setattr(reading_process, "PACKAGE_ROOT", tmp_path)
    monkeypatch.setattr(reading_process, "WALL_FACTOR", 2)
    limits = Limits(cpu=1, memory=MIB, output=MIB)

    with (
        ReadingProcess("reader", limits) as process,
        pytest.raises(ReadingFailed, match="took more than 2 s"),
    ):
        process.ask(b"")
