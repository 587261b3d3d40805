"""Requests of HTTP are cut from a stream of bytes, and answers made bytes."""

from __future__ import annotations

from http import HTTPStatus

import pytest

from simbridge.emulator.errors import ProtocolViolation
from simbridge.emulator.http_requests import HttpAnswer, RequestBuffer

PUT = b'PUT /a/b?c=1 HTTP/1.1\r\nHost: arm\r\nContent-Length: 7\r\n\r\n{"a":1}'
GET = b"GET / HTTP/1.1\r\nConnection: close\r\n\r\n"


def test_a_request_is_taken_apart():
    (request,) = RequestBuffer().receive(PUT)

    assert request.method == "PUT"
    assert request.path == "/a/b"
    assert request.headers["host"] == "arm"
    assert request.body == b'{"a":1}'
    assert not request.is_last


def test_requests_in_any_pieces_are_the_same():
    buffer = RequestBuffer()

    requests = [request for byte in PUT + GET for request in buffer.receive(bytes([byte]))]

    assert requests == RequestBuffer().receive(PUT + GET)
    assert [request.is_last for request in requests] == [False, True]


@pytest.mark.parametrize(
    ("head", "is_last"),
    [
        (b"GET / HTTP/1.0\r\n\r\n", True),
        (b"GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", False),
        (b"GET / HTTP/1.1\r\n\r\n", False),
    ],
)
def test_an_older_connection_ends_unless_kept_alive(head, is_last):
    (request,) = RequestBuffer().receive(head)

    assert request.is_last is is_last


@pytest.mark.parametrize(
    "data",
    [
        b"load a.urp\r\n\r\n",
        b"get / HTTP/1.1\r\n\r\n",
        b"GET a HTTP/1.1\r\n\r\n",
        b"GET / HTTP/2\r\n\r\n",
        b"PUT / HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
        b"PUT / HTTP/1.1\r\nContent-Length: 99999999\r\n\r\n",
        b"PUT / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"GET / HTTP/1.1\r\nX: " + b"x" * 20_000,
    ],
)
def test_what_is_no_request_is_a_violation(data):
    with pytest.raises(ProtocolViolation):
        RequestBuffer().receive(data)


def test_an_answer_has_the_length_of_its_content():
    answer = HttpAnswer(HTTPStatus.CONFLICT, {"message": "no"}).encode()

    head, _, body = answer.partition(b"\r\n\r\n")
    assert head.splitlines()[0] == b"HTTP/1.1 409 Conflict"
    assert b"Content-Length: 17" in head
    assert body == b'{"message": "no"}'
