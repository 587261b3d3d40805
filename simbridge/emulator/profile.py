"""Which controller is emulated: its software version decides its period, its variables and its answers."""

from __future__ import annotations

from dataclasses import dataclass

from simbridge.errors import UnknownName


@dataclass(frozen=True)
class Profile:
    """A PolyScope version.

    Attributes:
        polyscope: As given to --polyscope ("5.12").
        version: Major, minor, bugfix, build.
        date: Of the build, as the dashboard tells it.
    """

    polyscope: str
    version: tuple[int, int, int, int]
    date: str

    @property
    def series(self) -> str:
        """ "CB3" or "e-Series"."""
        return "CB3" if self.version[0] == 3 else "e-Series"

    @property
    def period(self) -> float:
        """Control period, s."""
        return 0.008 if self.version[0] == 3 else 0.002

    def at_least(self, five: tuple[int, int], three: tuple[int, int]) -> bool:
        """Whether this version is `five` or later (e-Series), or `three` or later (CB3)."""
        return self.version[:2] >= (three if self.version[0] == 3 else five)


PROFILES = {
    "3.15": Profile("3.15", (3, 15, 8, 106339), "May 14 2021"),
    "5.12": Profile("5.12", (5, 12, 6, 1102099), "Sep 21 2023"),
    "5.25": Profile("5.25", (5, 25, 1, 1103299), "Nov 14 2025"),
}


def profile(polyscope: str) -> Profile:
    """The profile of that name.

    Raises:
        UnknownName: There is none.
    """
    if polyscope not in PROFILES:
        raise UnknownName("PolyScope version", polyscope, PROFILES)
    return PROFILES[polyscope]
