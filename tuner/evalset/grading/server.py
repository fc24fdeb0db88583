"""What the page of a sheet is told when it asks."""

from __future__ import annotations

from tuner.core.local_server import Answer, Asked, LocalServer
from tuner.evalset.grading.answers import CHANGE, READ
from tuner.evalset.grading.given import Grading
from tuner.evalset.grading.page import Page


class Server(LocalServer):
    """The page of one sheet, and the answers to what it asks."""

    def __init__(self, grading: Grading, page: Page, port: int) -> None:
        self.grading, self.page = grading, page
        super().__init__(self._of_the_sheet, port)

    def _of_the_sheet(self, asked: Asked) -> Answer | None:
        if asked.body is not None:
            change = CHANGE.get(asked.name)
            return None if change is None else Answer.of(change(self.grading, asked.body))
        if asked.name == "":
            return Answer(self.page.html, "text/html", self.page.policy)
        read = READ.get(asked.name)
        return None if read is None else Answer.of(read(self.grading, asked.query))
