"""The documentation as a site: what `make docs` needs to hold, checked without building it; and the
build itself.
"""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest

import simbridge

pytestmark = pytest.mark.quick

CHECKOUT = Path(__file__).parents[2]
INDEX = (CHECKOUT / "docs/index.md").read_text(encoding="utf-8")


def test_every_page_is_in_the_contents():
    listed = re.findall(r"\]\(([^):#]+\.md)\)", INDEX)
    pages = [path.name for path in (CHECKOUT / "docs").glob("*.md") if path.stem != "index"]

    assert sorted(name for name in listed if not name.startswith("../")) == sorted(pages)
    assert all((CHECKOUT / "docs" / name).exists() for name in listed)


def test_every_link_leads_to_a_heading():
    pages = [
        *CHECKOUT.glob("*.md"),
        *(CHECKOUT / "docs").glob("*.md"),
        *CHECKOUT.glob("*/README.md"),
    ]
    for page in pages:
        for target in re.findall(r"\]\(([^)\s:]+)\)", page.read_text(encoding="utf-8")):
            path, _, heading = target.partition("#")
            linked_page = (page.parent / path).resolve() if path else page

            assert linked_page.exists(), f"{page.name}: {target}"

            titles = (
                re.findall(r"^#+ (.+)$", linked_page.read_text(encoding="utf-8"), re.MULTILINE)
                if heading
                else []
            )
            anchors = [re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles]

            assert not heading or heading in anchors, f"{page.name}: {target}"


def test_the_reference_has_every_public_name():
    page = (CHECKOUT / "docs/api.md").read_text(encoding="utf-8")
    packages = {
        word for words in re.findall(r"\{public-names\} (.+)", page) for word in words.split()
    }
    modules = {getattr(simbridge, name).__module__ for name in simbridge.__all__}

    assert {module.split(".")[1] for module in modules} == packages


@pytest.mark.soak
@pytest.mark.skipif(importlib.util.find_spec("furo") is None, reason="needs simbridge[docs]")
def test_the_site_builds_without_warnings(tmp_path):
    command = [
        sys.executable,
        "-m",
        "sphinx",
        "-c",
        "docs",
        "-b",
        "html",
        "--fail-on-warning",
        "--quiet",
        ".",
    ]

    done = subprocess.run([*command, str(tmp_path)], cwd=CHECKOUT, capture_output=True, text=True)

    assert done.returncode == 0, done.stderr

    pages = {
        path.relative_to(tmp_path).as_posix(): path.read_text() for path in tmp_path.rglob("*.html")
    }

    assert {
        "index.html",
        "docs/index.html",
        "docs/tutorial.html",
        "docs/api.html",
        "robots/README.html",
    } <= set(pages)

    for name, text in pages.items():
        loaded = re.findall(
            r"<(?:script|img|link|iframe)\b[^>]*?(?:src|href)=\"(https?:)?//[^>]*>", text
        )

        assert not loaded, name

    assert all(
        "//" not in url
        for css in tmp_path.rglob("*.css")
        for url in re.findall(r"url\(([^)]*)\)", css.read_text())
        if "data:" not in url
    )
    for name in (
        "simbridge.LiveSession.twist",
        "simbridge.sweep",
        "simbridge.DampedLeastSquaresParameters.jacobian",
    ):
        assert f'id="{name}"' in pages["docs/api.html"]
    for text in (
        "simbridge experiment solvers",
        "--solver.jacobian {exact,difference}",
        "--servo-lookahead S",
    ):
        assert text in re.sub(r"<[^>]+>", "", pages["docs/command_line.html"])
