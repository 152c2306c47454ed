"""How a table fits a schema, in words: for the party's eyes only, and decided by its administrator."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import dataclass, replace

import pandas as pd

from fed_node.source.reading import UNDECODABLE, Reader
from synth.encoding.records import FIRST_ROW, SHOWN_ROWS, Problem
from synth.errors import DataError

log = logging.getLogger("fed_node")

FEWEST_ROWS = 2  # of one row every statistic is that row


@dataclass(frozen=True)
class DataReport:
    """What does not fit, and what the schema's rules make of it."""

    place: str
    rows: int
    left_out: int  # of these
    problems: tuple[Problem, ...]

    @property
    def fits(self) -> bool:
        return not self.problems

    @property
    def usable(self) -> bool:
        """Whether rules take care of everything that does not fit."""
        return all(problem.outcome for problem in self.problems)

    def __str__(self) -> str:
        if self.fits:
            return f"{self.place} fits the schema: {self.rows} rows."
        if not self.usable:
            return f"{self.place} cannot be used with the schema (the header is row 1): {self._listed()}."
        changes = "; ".join(map(rule_in_words, self.problems))
        return (
            f"{self.place} does not fit the schema (the header is row 1): {self._listed()}. {self.rules()} {changes}."
        )

    def rules(self) -> str:
        """What the rules come to."""
        if not self.usable:
            return "It cannot be used: correct what has no rule."
        return f"By the schema's rules {self.rows - self.left_out} of {self.rows} rows are used."

    def _listed(self) -> str:
        return "; ".join(map(str, self.problems))


def rule_in_words(problem: Problem) -> str:
    return f"column '{problem.column}', {problem.cells} cell(s): {problem.what} {problem.outcome}"


def log_changes(findings: Findings) -> None:
    """What the rules changed, for the party's own log."""
    for problem in findings.problems():
        log.warning("%s", rule_in_words(problem))


def require_fit(report: DataReport) -> None:
    if not report.fits:
        raise DataError(str(report))


def malformed_rows(reader: Reader) -> list[Problem]:
    rows = reader.malformed
    if not rows:
        return []
    what, remedy = "rows without as many cells as the header", "check separators and quotes inside cells"
    return [Problem("(whole rows)", what, remedy, len(rows), tuple(rows[:SHOWN_ROWS]), "are left out")]


def too_few_rows(rows: int) -> list[Problem]:
    if rows >= FEWEST_ROWS:
        return []
    what = f"has {rows or 'no'} row(s) that can be used"
    return [Problem("(whole table)", what, f"at least {FEWEST_ROWS} are needed")]


def undecodable_cells(frame: pd.DataFrame) -> list[Problem]:
    """Cells whose bytes are no text. The rules treat them as the strange texts they are."""
    found = []
    for name in frame.columns:
        if frame[name].dtype == "str":
            bad = frame[name].str.contains(UNDECODABLE, regex=False, na=False).to_numpy(dtype=bool).nonzero()[0]
            if len(bad):
                rows = tuple(int(place) + FIRST_ROW for place in bad[:SHOWN_ROWS])
                what, remedy = "bytes that are no text in the file's encoding", "set 'encoding' of the source (for "
                remedy += "example 'latin-1'), or save the file as UTF-8"
                found.append(Problem(str(name), what, remedy, len(bad), rows, "are read as texts that nobody declared"))
    return found


class Findings:
    """The problems of all pieces of a table, put together, with the row numbers of the whole."""

    def __init__(self, reader: Reader) -> None:
        self.rows = 0
        self._reader = reader
        self._found: dict[tuple[str, str], Problem] = {}

    def add(self, problems: Iterable[Problem], rows: int) -> None:
        """What is wrong with the next piece, which has so many rows."""
        for problem in problems:
            numbers = tuple(_in_file(row + self.rows, self._reader.malformed) for row in problem.rows)
            before = self._found.get((problem.column, problem.what), replace(problem, cells=0, rows=()))
            rows_shown = (before.rows + numbers)[:SHOWN_ROWS]
            joined = replace(before, cells=before.cells + problem.cells, rows=rows_shown)
            self._found[problem.column, problem.what] = joined
        self.rows += rows

    def problems(self) -> list[Problem]:
        return [*malformed_rows(self._reader), *self._found.values()]


def _in_file(row: int, malformed: list[int]) -> int:
    """The row's number in the file, where rows that are no records count too."""
    for left_out in malformed:
        row += left_out <= row
    return row
