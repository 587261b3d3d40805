"""PyBullet as a backend: it moves the simulated arm, and shows it in a window (`--gui`)."""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from simbridge.backends.backend import Ask, Facts
from simbridge.backends.pybullet_model import (
    make_loadable,
    remove_meshes,
    remove_stops,
    write_meshes,
)
from simbridge.backends.simulation import SimulationBackend
from simbridge.errors import NoDisplay, optional_package
from simbridge.robot.pose import Array
from simbridge.robot.robot import Robot

# It loads the solvers.
if TYPE_CHECKING:
    from simbridge.planning.options import Options


def import_pybullet() -> Any:
    """Import pybullet without the banner that it prints from C.

    Raises:
        MissingPackage: It is installed, but cannot be imported.
    """
    sys.stderr.flush()
    saved = os.dup(2)
    try:
        with open(os.devnull, "wb") as null:
            os.dup2(null.fileno(), 2)
        return optional_package("pybullet", "pybullet", purpose="The simulation")
    finally:
        os.dup2(saved, 2)
        os.close(saved)


class PyBulletBackend(SimulationBackend):
    """A simulated arm in PyBullet.

    Raises:
        NoDisplay: There is no display for the window.
    """

    engine = "pybullet"

    def __init__(
        self, robot: Robot, options: Options, *, plan_facts: Facts = (), ask: Ask | None = None
    ) -> None:
        super().__init__(robot, options, plan_facts=plan_facts, ask=ask)

        # Without a display PyBullet itself would terminate the process.
        if self._settings.gui and sys.platform == "linux" and not os.environ.get("DISPLAY"):
            raise NoDisplay("PyBullet's window (--gui)")

        # The module pybullet; None before the backend is entered.
        self._bullet: Any = None
        # PyBullet's number of its simulation.
        self._client: int
        # PyBullet's number of the arm in it.
        self._body: int
        # PyBullet's numbers of the arm's joints.
        self._joints = list(range(robot.n))

    def _open_engine(self) -> None:
        self._bullet = import_pybullet()
        mode = self._bullet.GUI if self._settings.gui else self._bullet.DIRECT
        self._client = self._bullet.connect(mode)
        self._body = self._load()

    def _close_engine(self) -> None:
        with contextlib.suppress(self._bullet.error):
            self._bullet.disconnect(physicsClientId=self._client)

    def _load(self) -> int:
        """Load the arm into PyBullet and return its number there."""
        b = self._bullet
        client = self._client
        b.setGravity(*self._real.gravity, physicsClientId=client)
        # Pairs in a fixed order: the same run gives the same numbers.
        b.setPhysicsEngineParameter(
            fixedTimeStep=self.physics_step,
            numSubSteps=0,
            deterministicOverlappingPairs=1,
            physicsClientId=client,
        )

        with tempfile.TemporaryDirectory() as directory:
            path = Path(directory, "robot.urdf")
            # Meshes are only drawn, and take a while to load.
            if self._settings.gui:
                arm = write_meshes(self._real, path.parent)
            else:
                arm = remove_meshes(self._real)
            path.write_text(make_loadable(remove_stops(arm)).urdf, encoding="utf-8")
            # Without this flag PyBullet derives inertias from the shapes.
            flags = b.URDF_USE_INERTIA_FROM_FILE
            body: int = b.loadURDF(
                str(path), useFixedBase=True, flags=flags, physicsClientId=client
            )

        # By default, PyBullet damps every link, of which it counts the base as number -1.
        undamped = dict.fromkeys(("linearDamping", "angularDamping", "jointDamping"), 0.0)
        for link in range(-1, b.getNumJoints(body, physicsClientId=client)):
            b.changeDynamics(body, link, **undamped, physicsClientId=client)

        # Also a tensor that no body has is simulated as it is.
        for joint, inertia in zip(self._joints, self._real.link_inertias, strict=True):
            # Along the principal axes, as in the URDF.
            moments = np.linalg.eigh(inertia.inertia)[0].tolist()
            b.changeDynamics(body, joint, localInertiaDiagonal=moments, physicsClientId=client)

        # By default, PyBullet brakes every joint with a velocity motor: switch it off.
        no_force = [0.0] * self.robot.n
        b.setJointMotorControlArray(
            body, self._joints, b.VELOCITY_CONTROL, forces=no_force, physicsClientId=client
        )
        return body

    def _place_joints(self, q: Array) -> None:
        for joint, position in enumerate(q):
            self._bullet.resetJointState(self._body, joint, position, physicsClientId=self._client)

    def _measure(self) -> tuple[Array, Array]:
        states = self._bullet.getJointStates(self._body, self._joints, physicsClientId=self._client)
        return np.array([s[0] for s in states]), np.array([s[1] for s in states])

    def _step_engine(self, effort: Array) -> None:
        b = self._bullet
        client = self._client
        b.setJointMotorControlArray(
            self._body, self._joints, b.TORQUE_CONTROL, forces=effort, physicsClientId=client
        )
        b.stepSimulation(physicsClientId=client)
