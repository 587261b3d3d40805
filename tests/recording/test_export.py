"""The formats of `simbridge export`: those whose packages are an extra."""

from __future__ import annotations

import sys

import pytest


@pytest.mark.parametrize(
    ("kind", "module", "package"),
    [
        ("parquet", "pyarrow", "pyarrow"),
        ("mat", "scipy.io", "scipy"),
        ("rerun", "rerun", "rerun-sdk"),
    ],
)
def test_a_missing_extra_is_named(cli, exported_run, monkeypatch, kind, module, package):
    monkeypatch.setitem(sys.modules, module, None)
    before = sorted(exported_run.iterdir())

    answer = cli("export", exported_run, "--to", kind)

    assert answer.status == 2
    assert answer.message == (
        f'--to {kind} needs the package {package}. Install it with: pip install "simbridge[{kind}]"'
    )
    assert sorted(exported_run.iterdir()) == before
