"""Ports that answer as a test needs."""

from __future__ import annotations

import contextlib
import json
import socket
import struct
import threading
from collections.abc import Callable, Iterator, Mapping

Talk = Callable[[socket.socket], None]

# In place of the answer to a path of the Robot API: there is none, and the connection stays open.
NO_ANSWER = ""


@contextlib.contextmanager
def listening(host: str, port: int, talk: Talk) -> Iterator[None]:
    """A port whose every connection is served by `talk` in a thread, and closed when `talk`
    returns.
    """
    server = socket.create_server((host, port))
    connections: list[socket.socket] = []
    threads: list[threading.Thread] = []

    def serve(connection: socket.socket) -> None:
        with connection, contextlib.suppress(OSError):
            talk(connection)

    def accept() -> None:
        while True:
            try:
                connection, _ = server.accept()
            except OSError:
                return
            connections.append(connection)
            threads.append(threading.Thread(target=serve, args=(connection,)))
            threads[-1].start()

    acceptor = threading.Thread(target=accept)
    acceptor.start()
    try:
        yield
    finally:
        # A connection is closed by its thread, which may only now begin to talk.
        for ended in (server, *connections):
            with contextlib.suppress(OSError):
                ended.shutdown(socket.SHUT_RDWR)
        server.close()
        for thread in (acceptor, *threads):
            thread.join()


def dashboard(
    answers: Mapping[str, str], greeting: str = "Connected: Universal Robots Dashboard Server"
) -> Talk:
    """A dashboard that knows only these commands."""

    def talk(connection: socket.socket) -> None:
        connection.sendall(greeting.encode() + b"\n")
        with connection.makefile("rb") as lines:
            for line in lines:
                command = line.decode().strip()
                connection.sendall(
                    answers.get(command, f"could not understand: '{command}'").encode() + b"\n"
                )

    return talk


def saying(text: bytes) -> Talk:
    """Sends something at once, and then nothing until the client leaves."""

    def talk(connection: socket.socket) -> None:
        connection.sendall(text)
        while connection.recv(4096):
            pass

    return talk


def robot_api(
    answers: Mapping[str, dict[str, object] | str], requests: list[str] | None = None
) -> Talk:
    """A Robot API that knows only these paths: each with its object of JSON, with the path to which
    it redirects, or with `NO_ANSWER`. The request lines are appended to `requests`.
    """

    def talk(connection: socket.socket) -> None:
        with connection.makefile("rb") as lines:
            while request := lines.readline().decode().strip():
                while lines.readline().strip():
                    pass
                if requests is not None:
                    requests.append(request)
                answer = answers.get(request.split()[1])
                if answer == NO_ANSWER:
                    continue
                body = json.dumps(answer).encode() if isinstance(answer, dict) else b""
                status = "404 Not Found" if answer is None else "200 OK"
                location = ""
                if isinstance(answer, str):
                    status = "308 Permanent Redirect"
                    location = f"Location: {answer}\r\n"
                head = f"HTTP/1.1 {status}\r\n{location}Content-Length: {len(body)}\r\n\r\n"
                connection.sendall(head.encode() + body)

    return talk


def rtde(version: tuple[int, int, int, int], variables: Mapping[str, tuple[str, bytes]]) -> Talk:
    """An RTDE server of some version: each variable with its type and its one value, packed."""

    def framed(kind: int, payload: bytes) -> bytes:
        return struct.pack(">HB", 3 + len(payload), kind) + payload

    def talk(connection: socket.socket) -> None:
        names: list[str] = []
        with connection.makefile("rb") as stream:
            while head := stream.read(3):
                size, kind = struct.unpack(">HB", head)
                payload = stream.read(size - 3)
                if kind == ord("V"):
                    answer = framed(kind, b"\x01")
                elif kind == ord("v"):
                    answer = framed(kind, struct.pack(">4I", *version))
                elif kind == ord("O"):
                    names = payload[8:].decode().rstrip(",").split(",")
                    types = [
                        variables[name][0] if name in variables else "NOT_FOUND" for name in names
                    ]
                    answer = framed(kind, b"\x01" + ",".join(types).encode())
                else:
                    state = b"".join(variables[name][1] for name in names)
                    answer = framed(kind, b"\x01") + framed(ord("U"), b"\x01" + state)
                connection.sendall(answer)

    return talk
