"""Who may act on the studio: pages that have shown the token, and of them the one that drives."""

from __future__ import annotations

import hmac
import secrets


class Access:
    """The pages that are open.

    Args:
        token: Whether a page must show the token before it acts.

    Attributes:
        token: The token, to be printed in the terminal; "" where none is needed.
        driver: The page that drives; None while there is none.
        refused: How many events of pages that may not act were ignored.
    """

    def __init__(self, *, token: bool) -> None:
        self.token = secrets.token_urlsafe(9) if token else ""
        self._admitted: set[int] = set()
        self.driver: int | None = None
        self.refused = 0

    def opened(self, page: int) -> None:
        """A page was opened; where no token is needed, the first drives."""
        if not self.token:
            self._admit(page)

    def shows(self, page: int, token: str) -> bool:
        """A page shows a token; returns whether it is the right one."""
        right = hmac.compare_digest(token.strip().encode(), self.token.encode())
        if right:
            self._admit(page)
        else:
            self.refused += 1
        return right

    def _admit(self, page: int) -> None:
        self._admitted.add(page)
        self.driver = page if self.driver is None else self.driver

    def closed(self, page: int) -> bool:
        """A page was closed; returns whether it drove. The next page drives only once it takes control."""
        self._admitted.discard(page)
        drove = self.driver == page
        self.driver = None if drove else self.driver
        return drove

    def admitted(self, page: int) -> bool:
        """Whether a page has shown the token, or needs none."""
        return page in self._admitted

    def takes_control(self, page: int) -> bool:
        """A page takes control; returns whether it may."""
        if page in self._admitted:
            self.driver = page
            return True
        self.refused += 1
        return False

    def drives(self, page: int) -> bool:
        """Whether an event of a page counts; one that does not is counted as refused."""
        if page == self.driver:
            return True
        self.refused += 1
        return False
