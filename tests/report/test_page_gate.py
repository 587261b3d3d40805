"""Which requests open a page or its web socket."""

from __future__ import annotations

import pytest

from simbridge.report.page_gate import PageGate, new_token, split_path

TOKEN = "the-token_of-this-start"
HERE = "127.0.0.1:8080"
LOCAL = PageGate(token=TOKEN)
BEYOND = PageGate(any_host=True, token=TOKEN)


@pytest.mark.parametrize(
    "path", [f"/{TOKEN}", f"/{TOKEN}/", f"/{TOKEN}/?darkMode", f"/{TOKEN}/index.html"]
)
def test_a_path_that_begins_with_the_token_is_admitted(path):
    assert LOCAL.refusal(path, [HERE], []) == ""


@pytest.mark.parametrize(
    "path",
    ["", "/", "/?darkMode", "/index.html", f"/{TOKEN}x/", f"/{TOKEN[:-1]}/", f"//{TOKEN}/", f"/x/{TOKEN}/",
     f"/?{TOKEN}", f"/{TOKEN.upper()}/", "/\udcff\u00e9/", f"http://{HERE}/{TOKEN}/"],
)  # fmt: skip
def test_any_other_path_is_refused(path):
    refusal = LOCAL.refusal(path, [HERE], [])

    assert refusal
    assert TOKEN not in refusal


@pytest.mark.parametrize(
    "host",
    ["localhost", "LOCALHOST:9000", "localhost:8080", "127.0.0.1", "127.0.0.1:1", "127.255.3.4:80", "[::1]",
     "[::1]:22"],
)  # fmt: skip
def test_a_loopback_name_is_admitted_at_any_port(host):
    assert LOCAL.refusal(f"/{TOKEN}/", [host], [f"http://{host}"]) == ""


@pytest.mark.parametrize(
    "host",
    ["evil.example", "evil.example:8080", "localhost.evil.example", "127.0.0.1.evil.example", "128.0.0.1", "0.0.0.0",
     "192.168.1.4:8080", "[::2]", "::1", "127.0.0.1:8080:8080", "127.0.0.1:port", "user@127.0.0.1", "", " ",
     "127.0.0.1 evil.example", "localhost/evil"],
)  # fmt: skip
def test_any_other_name_is_refused_on_loopback(host):
    assert LOCAL.refusal(f"/{TOKEN}/", [host], [])


@pytest.mark.parametrize("hosts", [[], [HERE, HERE], [HERE, "evil.example"]])
def test_a_request_without_exactly_one_host_is_refused(hosts):
    assert LOCAL.refusal(f"/{TOKEN}/", hosts, [])
    assert BEYOND.refusal(f"/{TOKEN}/", hosts, [])


@pytest.mark.parametrize(
    "host", ["lab-computer:8080", "192.168.1.4:8080", "studio.example", "[fe80::1]:8080", HERE]
)
def test_beyond_this_computer_every_name_is_admitted(host):
    assert BEYOND.refusal(f"/{TOKEN}/", [host], [f"http://{host}"]) == ""


@pytest.mark.parametrize("scheme", ["http", "https"])
@pytest.mark.parametrize("gate", [LOCAL, BEYOND])
def test_the_origin_of_the_page_itself_is_admitted(gate, scheme):
    assert gate.refusal(f"/{TOKEN}/", [HERE], [f"{scheme}://{HERE}"]) == ""


@pytest.mark.parametrize(
    "origins",
    [["http://evil.example"], ["null"], [""], ["http://127.0.0.1"], ["http://127.0.0.1:8081"], ["http://localhost:8080"],
     ["http://127.0.0.1:8080.evil.example"], ["ws://127.0.0.1:8080"], ["http://127.0.0.1:8080", "http://evil.example"],
     ["file://"], ["http://127.0.0.1:8080/"]],
)  # fmt: skip
@pytest.mark.parametrize("gate", [LOCAL, BEYOND])
def test_another_origin_is_refused_even_with_the_token(gate, origins):
    assert gate.refusal(f"/{TOKEN}/", [HERE], origins)


def test_each_gate_has_its_token_which_is_not_shown():
    first, second = PageGate(), PageGate()

    assert first.token != second.token
    assert first.token not in repr(first)
    assert len(new_token()) >= 22


@pytest.mark.parametrize(
    ("path", "parts"),
    [("/a/b?c=d", ("a", "/b?c=d")), ("/a", ("a", "/")), ("/a/", ("a", "/")), ("/a?b/c", ("a", "/?b/c")),
     ("", ("", "/"))],
)  # fmt: skip
def test_the_rest_of_a_path_keeps_its_query(path, parts):
    assert split_path(path) == parts
