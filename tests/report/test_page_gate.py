"""Requests that open a page or its web socket."""

from __future__ import annotations

import pytest

from simbridge.report.page_gate import PageGate, new_token, split_path

TOKEN = "the-token_of-this-start"
PATH = f"/{TOKEN}/"
HOST = "127.0.0.1:8080"
LOOPBACK = PageGate(token=TOKEN)
ANY_HOST = PageGate(any_host=True, token=TOKEN)


@pytest.mark.parametrize(
    "path", [f"/{TOKEN}", f"/{TOKEN}/", f"/{TOKEN}/?darkMode", f"/{TOKEN}/index.html"]
)
def test_token_at_the_begin_is_admitted(path):
    assert LOOPBACK.refusal(path, [HOST], []) == ""


@pytest.mark.parametrize(
    "path",
    [
        "",
        "/",
        "/?darkMode",
        "/index.html",
        f"/{TOKEN}x/",
        f"/{TOKEN[:-1]}/",
        f"//{TOKEN}/",
        f"/x/{TOKEN}/",
        f"/?{TOKEN}",
        f"/{TOKEN.upper()}/",
        "/\udcff\u00e9/",
        f"http://{HOST}/{TOKEN}/",
    ],
)
def test_paths_without_the_token_are_refused(path):
    refusal = LOOPBACK.refusal(path, [HOST], [])

    assert refusal
    assert TOKEN not in refusal


@pytest.mark.parametrize(
    "host",
    [
        "localhost",
        "LOCALHOST:9000",
        "localhost:8080",
        "127.0.0.1",
        "127.0.0.1:1",
        "127.255.3.4:80",
        "[::1]",
        "[::1]:22",
    ],
)
def test_loopback_names_are_admitted(host):
    assert LOOPBACK.refusal(PATH, [host], [f"http://{host}"]) == ""


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "evil.example:8080",
        "localhost.evil.example",
        "127.0.0.1.evil.example",
        "128.0.0.1",
        "0.0.0.0",
        "192.168.1.4:8080",
        "[::2]",
        "::1",
        "127.0.0.1:8080:8080",
        "127.0.0.1:port",
        "user@127.0.0.1",
        "",
        " ",
        "127.0.0.1 evil.example",
        "localhost/evil",
    ],
)
def test_foreign_names_are_refused_on_loopback(host):
    assert LOOPBACK.refusal(PATH, [host], [])


@pytest.mark.parametrize("hosts", [[], [HOST, HOST], [HOST, "evil.example"]])
def test_exactly_one_host_is_needed(hosts):
    assert LOOPBACK.refusal(PATH, hosts, [])
    assert ANY_HOST.refusal(PATH, hosts, [])


@pytest.mark.parametrize(
    "host", ["lab-computer:8080", "192.168.1.4:8080", "studio.example", "[fe80::1]:8080", HOST]
)
def test_every_name_is_admitted_beyond_loopback(host):
    assert ANY_HOST.refusal(PATH, [host], [f"http://{host}"]) == ""


@pytest.mark.parametrize("scheme", ["http", "https"])
@pytest.mark.parametrize("gate", [LOOPBACK, ANY_HOST])
def test_origin_of_the_page_is_admitted(gate, scheme):
    assert gate.refusal(PATH, [HOST], [f"{scheme}://{HOST}"]) == ""


@pytest.mark.parametrize(
    "origins",
    [
        ["http://evil.example"],
        ["null"],
        [""],
        ["http://127.0.0.1"],
        ["http://127.0.0.1:8081"],
        ["http://localhost:8080"],
        ["http://127.0.0.1:8080.evil.example"],
        ["ws://127.0.0.1:8080"],
        ["http://127.0.0.1:8080", "http://evil.example"],
        ["file://"],
        ["http://127.0.0.1:8080/"],
    ],
)
@pytest.mark.parametrize("gate", [LOOPBACK, ANY_HOST])
def test_foreign_origins_are_refused_with_the_token(gate, origins):
    assert gate.refusal(PATH, [HOST], origins)


def test_tokens_are_unique_and_hidden():
    first = PageGate()
    second = PageGate()

    assert first.token != second.token
    assert first.token not in repr(first)
    assert len(new_token()) >= 22


@pytest.mark.parametrize(
    ("path", "parts"),
    [
        ("/a/b?c=d", ("a", "/b?c=d")),
        ("/a", ("a", "/")),
        ("/a/", ("a", "/")),
        ("/a?b/c", ("a", "/?b/c")),
        ("", ("", "/")),
    ],
)
def test_rest_of_a_path_keeps_its_query(path, parts):
    assert split_path(path) == parts
