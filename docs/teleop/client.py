"""Move the tool up and down by 2 cm for 4 s, through `simbridge teleop network`.

It needs Python's standard library only. In one terminal:

    simbridge teleop network --backend pybullet

In another, with an address, and a token's file if the arm has one:

    python docs/teleop/client.py [ADDRESS:PORT [TOKEN_FILE]]
"""

from __future__ import annotations

import json
import math
import socket
import sys
import time

# How long the tool moves.
MOTION_S = 4.0
# How often a twist is sent.
PERIOD_S = 0.02
# How long a reply is waited for.
REPLY_TIMEOUT_S = 5.0


class Client:
    """One client of the arm at an address."""

    def __init__(self, host: str, port: int, token: str = "", name: str = "example") -> None:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self.socket = socket.socket(family, socket.SOCK_DGRAM)
        self.socket.connect((host, port))
        self.name = name
        self.token = token
        # The number of the last message; it increases over restarts, too.
        self.seq = time.time_ns() // 1_000_000

    def send(self, kind: str, **fields: object) -> int:
        """Send a message and return its sequence number."""
        self.seq += 1
        message = {
            "type": kind,
            "client": self.name,
            "seq": self.seq,
            "token": self.token,
            **fields,
        }
        self.socket.send(json.dumps(message).encode())
        return self.seq

    def ask(self, kind: str, timeout: float = REPLY_TIMEOUT_S) -> dict:
        """Send a message, again if it was lost, and return the reply to it.

        Raises:
            TimeoutError: None came in time.
        """
        end = time.monotonic() + timeout
        while time.monotonic() < end:
            seq = self.send(kind)
            self.socket.settimeout(0.5)
            try:
                while time.monotonic() < end:
                    reply = json.loads(self.socket.recv(4096))
                    if reply["seq"] == seq or not reply["client"]:
                        return reply
            except (TimeoutError, ConnectionRefusedError):
                time.sleep(0.1)
        raise TimeoutError(f"No reply to {kind} within {timeout} s.")

    def newest(self) -> dict | None:
        """Return the newest reply that has come, or None."""
        self.socket.settimeout(0.0)
        reply = None
        try:
            while True:
                reply = json.loads(self.socket.recv(4096))
        except OSError:
            return reply


def main() -> int:
    """Move the tool, and return the status to exit with."""
    host = "127.0.0.1"
    port = 8321
    token = ""
    if len(sys.argv) > 1:
        host, _, number = sys.argv[1].rpartition(":")
        port = int(number)
    if len(sys.argv) > 2:
        with open(sys.argv[2], encoding="utf-8") as file:
            token = file.read().strip()

    client = Client(host, port, token)
    reply = client.ask("engage", timeout=60.0)
    if not reply["ok"]:
        print(reply["error"])
        return 1
    engagement = reply["engagement"]

    # The velocity of z = 0.01 (1 - cos(rate t)), two turns in all.
    rate = 4.0 * math.pi / MOTION_S
    begin = time.monotonic()
    try:
        while True:
            t = time.monotonic() - begin
            if t >= MOTION_S:
                break
            speed = 0.01 * rate * math.sin(rate * t)
            client.send("twist", values=[0.0, 0.0, speed, 0.0, 0.0, 0.0], engagement=engagement)

            reply = client.newest()
            if reply is not None and not reply["ok"]:
                print(reply["error"])
                return 1
            if reply is not None and reply["speed_factor"] < 0.995:
                causes = ", ".join(cause["text"] for cause in reply["causes"])
                print(f"slowed down to {reply['speed_factor']:.0%}: {causes}")
            time.sleep(PERIOD_S)
    finally:
        # Also after Ctrl-C; without it the arm holds all the same.
        client.send("disengage")
    return 0


if __name__ == "__main__":
    sys.exit(main())
