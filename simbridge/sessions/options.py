"""Options of a live session that a replay does not have."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from simbridge.errors import InvalidChoice, InvalidParameter
from simbridge.planning.option_choices import SharedChoices
from simbridge.planning.option_field import describe_fields, teleop_option

LiveHold = Literal["continue", "zero-order"]
Filter = Literal["none", "one-euro", "butterworth"]

# Kind of input -> how long, s, without a further one until the arm brakes and holds.
TIMEOUTS = {
    "twist": 0.2,
    "jog": 0.2,
    "pose": 0.5,
    "joints": 0.5,
    "follow": 0.5,
    "follow_joints": 0.5,
}

# The devices of teleoperation that send poses or joint positions; the others send velocities only.
POSE_DEVICES = ("keyboard", "network")

# The fields of `Options` that `simbridge.live` alone takes: feedforward is for chunks.
MORE = ("feedforward", "on_scaling", "on_pause")
# The fields of `Options` that every live session has, too. The others concern a scenario, or an
# input's kind.
LIVE = tuple(name for name in SharedChoices.__annotations__ if name not in MORE)
# The fields of `LIVE` that a simulation on the caller's clock does not have, and those that it has.
NOT_SIMULATED = ("host", "rest_port", "gui", "realtime_priority", "link", "registers", "yes")
SIMULATED = tuple(name for name in LIVE if name not in NOT_SIMULATED)
# The fields of `LIVE` that a studio has: it draws the arm itself, and a person confirms in its
# page.
STUDIO = tuple(name for name in LIVE if name not in ("gui", "label", "yes"))


class LiveChoices(SharedChoices, total=False):
    """The options that `simbridge.live` takes as keyword arguments, for type checkers."""

    hold: LiveHold
    timeout: float | None
    max_jump: tuple[float, float]
    catch_up: float
    filter: Filter
    filter_cutoff: float
    lead: bool


@describe_fields
@dataclass(frozen=True)
class LiveOptions:
    """Options for the inputs of a live session, in SI units and radians.

    Raises:
        InvalidChoice, InvalidParameter: A value is invalid.
    """

    hold: LiveHold = teleop_option(
        "continue",
        "Between two poses: continue extrapolates with the velocity between the last two, for at "
        "most one input period; zero-order holds the last pose.",
        devices=POSE_DEVICES,
    )
    timeout: float | None = teleop_option(
        None,
        "If no input arrives for this long, the arm brakes and holds.",
        "S",
        "0.2 for velocities, 0.5 for poses and joint positions",
    )
    max_jump: tuple[float, float] = teleop_option(
        (0.1, 0.5),
        "A pose farther than this from the last one is rejected: distance, and angle (also used "
        "as the limit for each joint).",
        "M RAD",
        devices=POSE_DEVICES,
    )
    catch_up: float = teleop_option(
        0.25,
        "Fraction of the limits of velocity and tool speed at which inputs are followed after a "
        "stall, until the arm has caught up.",
        "SHARE",
    )
    filter: Filter = teleop_option(
        "none",
        "Filter of poses and joint positions: one-euro or butterworth (second order).",
        devices=POSE_DEVICES,
    )
    filter_cutoff: float = teleop_option(
        5.0,
        "Cutoff frequency of the filter (for one-euro, at rest).",
        "HZ",
        devices=POSE_DEVICES,
    )
    lead: bool = teleop_option(
        False,
        "Compensate for servo lag by sending the inverse of the servo law, without preview.",
    )

    def __post_init__(self) -> None:
        if self.hold not in get_args(LiveHold):
            raise InvalidChoice("hold", str(self.hold), get_args(LiveHold))
        if self.filter not in get_args(Filter):
            raise InvalidChoice("filter", str(self.filter), get_args(Filter))

        if self.timeout is not None and not 0.0 < self.timeout <= 10.0:
            raise InvalidParameter("timeout", f"{self.timeout} s", "more than 0 and at most 10 s")
        if not 0.0 < self.catch_up <= 1.0:
            raise InvalidParameter("catch-up speed", self.catch_up, "more than 0 and at most 1")
        if not 0.1 <= self.filter_cutoff <= 100.0:
            raise InvalidParameter(
                "filter cutoff", f"{self.filter_cutoff} Hz", "from 0.1 to 100 Hz"
            )

        jump = np.ravel(self.max_jump)
        if jump.size != 2 or not ((jump > 0.0) & np.isfinite(jump)).all():
            raise InvalidParameter(
                "largest jump", self.max_jump, "a distance in m and an angle in rad, both positive"
            )

    def timeout_of(self, kind: str) -> float:
        """Return after how long without an input of this kind the arm brakes, s."""
        return TIMEOUTS[kind] if self.timeout is None else self.timeout
