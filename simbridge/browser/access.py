"""The pages that are open, and which of them drives."""

from __future__ import annotations


class Access:
    """Lets one of the open pages drive. Whoever can open a page may take control.

    Attributes:
        driver: The page that drives; None while there is none.
        refused: How many events were refused: of pages that do not drive, or with values that are
            not offered.
    """

    def __init__(self) -> None:
        self._pages: set[int] = set()
        self.driver: int | None = None
        self.refused = 0

    def open_page(self, page: int) -> None:
        """Add a page; the first drives."""
        self._pages.add(page)
        if self.driver is None:
            self.driver = page

    def close_page(self, page: int) -> None:
        """Remove a page. If it drove, the next page drives only once it takes control."""
        self._pages.discard(page)
        if self.driver == page:
            self.driver = None

    def take_control(self, page: int) -> None:
        """Let a page drive, if it is open."""
        if page in self._pages:
            self.driver = page

    def admits(self, page: int) -> bool:
        """Return whether an event of a page counts; one that does not is counted as refused."""
        if page == self.driver:
            return True
        self.refused += 1
        return False
