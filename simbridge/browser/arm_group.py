"""The arms that follow the goal: that of the first solver, and that of a second one beside it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import pinocchio as pin
import viser

from simbridge.browser.controlled_arm import ControlledArm
from simbridge.browser.curve import Curve
from simbridge.browser.drawn_arm import DrawnArm
from simbridge.browser.scene import draw_surroundings
from simbridge.browser.setup import StudioSetup
from simbridge.browser.simulated_arm import SimulatedStudioArm
from simbridge.browser.snapshot import Snapshot
from simbridge.errors import SimbridgeError
from simbridge.robot.kinematics import tool_frame
from simbridge.robot.pose import Array

# Makes a simulated arm, which begins at joint positions (n,), rad, or at home.
Simulate = Callable[[StudioSetup, Array | None], SimulatedStudioArm]


@dataclass
class FollowingArm:
    """An arm in the scene.

    Attributes:
        arm: The arm.
        drawing: The arm as drawn in the scene; set once there is one.
        snapshot: What was drawn last; None before the first period.
        curve: Errors of the arm in the last seconds.
    """

    arm: SimulatedStudioArm | ControlledArm
    drawing: DrawnArm = field(init=False)
    snapshot: Snapshot | None = None
    curve: Curve = field(default_factory=Curve)


class ArmGroup:
    """The arms that follow one goal, to be used by the studio's loop alone.

    Args:
        setup: Setup of the first arm.
        controlled: The arm, where a controller moves it.
        simulate: Makes a simulated arm.

    Attributes:
        controlled: The arm, where a controller moves it; None in simulation.
        goal: Pose that the arms are sent to, in base_link.
        speed: Fraction of full speed, at most.
    """

    def __init__(
        self, setup: StudioSetup, controlled: ControlledArm | None, simulate: Simulate
    ) -> None:
        self.controlled = controlled
        self._simulate = simulate
        # The arm of the first solver, then that of the second.
        self._members = [FollowingArm(controlled or simulate(setup, None))]
        self.goal = tool_frame(self.arm.robot, self.arm.q)
        self.speed = 1.0

    def show_in(self, server: viser.ViserServer) -> None:
        """Draw the first arm and its surroundings in a server's scene."""
        self._server = server
        draw_surroundings(server, self.arm.robot, self.arm.setup.options.collision_scene)
        self._members[0].drawing = DrawnArm(server, self.arm.robot, 0)

    def close(self) -> None:
        """End the sessions."""
        for member in self._members:
            with contextlib.suppress(SimbridgeError):
                member.arm.end()

    @property
    def arm(self) -> SimulatedStudioArm | ControlledArm:
        """The arm of the first solver."""
        return self._members[0].arm

    @property
    def drawing(self) -> DrawnArm:
        """The arm of the first solver in the scene."""
        return self._members[0].drawing

    @property
    def snapshot(self) -> Snapshot | None:
        """The snapshot of the first solver's arm that was drawn last; None before the first."""
        return self._members[0].snapshot

    @property
    def rival(self) -> str | None:
        """The second solver's name; None while there is none."""
        return self._members[1].arm.setup.solver if len(self._members) > 1 else None

    @property
    def resting(self) -> bool:
        """True if no arm moves."""
        return all(member.arm.resting for member in self._members)

    @property
    def curves(self) -> tuple[Curve, Curve | None]:
        """The errors of the first arm, and of the second."""
        first = self._members[0].curve
        second = self._members[1].curve if len(self._members) > 1 else None
        return first, second

    @property
    def snapshots(self) -> list[tuple[str, Snapshot]]:
        """The snapshot of each arm that was drawn last, after the name of its solver."""
        snapshots = []
        for member in self._members:
            if member.snapshot is not None:
                snapshots.append((member.arm.setup.solver, member.snapshot))
        return snapshots

    def go_to(self, goal: pin.SE3) -> None:
        """Send the arms to a goal in base_link."""
        self.goal = goal
        for member in self._members:
            member.arm.goal = goal

    def slow_down(self, speed: float) -> None:
        """Move at most at a fraction of full speed, 0 to 1."""
        for member in self._members:
            member.arm.slow_down(speed)
        self.speed = speed

    def replace(self, setup: StudioSetup, q: Array) -> None:
        """Begin anew with another setup; where it is refused, the arms go on as they were.

        Args:
            setup: Setup of the first arm; the second takes it with its own solver.
            q: Joint positions (n,), rad, at which they begin.

        Raises:
            SimbridgeError: The setup makes no sense for a session.
        """
        with contextlib.ExitStack() as stack:
            arms = [self._begin_arm(setup, q)]
            stack.callback(arms[0].end)
            for member in self._members[1:]:
                rival_setup = setup.with_solver(member.arm.setup.solver)
                arms.append(self._begin_arm(rival_setup, q))
            stack.pop_all()

        self.drawing.clear_postures()
        for number, (member, arm) in enumerate(zip(self._members, arms, strict=True)):
            member.arm.end()
            member.curve.clear()
            member.drawing.clear_path()
            if not np.array_equal(arm.robot.placements, member.arm.robot.placements):
                member.drawing.remove()
                member.drawing = DrawnArm(self._server, arm.robot, number)
            member.arm = arm

    def begin_another_session(self, setup: StudioSetup) -> SimulatedStudioArm | ControlledArm:
        """Go on in a new session, from the same posture; returns the arm whose session ended."""
        ended = self.arm
        self._members[0].arm = self._begin_arm(setup, ended.q)
        ended.end()
        return ended

    def add_rival(self, setup: StudioSetup) -> None:
        """Let a second arm follow the goal, from where the first is."""
        member = FollowingArm(self._begin_arm(setup, self.arm.q))
        member.drawing = DrawnArm(self._server, member.arm.robot, 1)
        self._members.append(member)

    def remove_rival(self) -> None:
        """Remove the second arms, which follow the goal."""
        for member in self._members[1:]:
            member.arm.end()
            member.drawing.remove()
        del self._members[1:]

    def _begin_arm(self, setup: StudioSetup, q: Array) -> SimulatedStudioArm:
        """Return a simulated arm at joint positions (n,), rad, that goes to the goal."""
        arm = self._simulate(setup, q)
        arm.goal = self.goal
        arm.slow_down(self.speed)
        return arm

    def advance(self, seconds: float) -> None:
        """Let time pass, s."""
        for member in self._members:
            member.arm.advance(seconds)
        if self.controlled is not None:
            self.goal = self.controlled.goal

    def hide_rival(self, hidden: bool) -> None:
        """Leave the second arm out of the picture, or show it again."""
        for member in self._members[1:]:
            member.drawing.set_visible(not hidden)

    def draw(self) -> None:
        """Show the present instant."""
        for member in self._members:
            snapshot = member.arm.snapshot()
            if snapshot is None:
                continue
            member.snapshot = snapshot
            member.drawing.show(snapshot)
            if not member.arm.resting:
                member.curve.add(member.arm.robot, snapshot)

    def draw_paths(self) -> None:
        """Draw the paths where they have grown."""
        for member in self._members:
            member.drawing.draw_path()
