"""Both readers of CSV rows find the same cells and leave out the same rows, whatever the file holds."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from fed_node.source import csv_cells
from fed_node.source.csv_rows import whole_rows

PIECES = st.sampled_from(
    ['"', '""', ",", ";", "\n", "\r\n", "\r", "a", "b ", " ", "\x00", "é", "\u2028", "\n\n", "1.5"]
)


@given(st.lists(PIECES, max_size=60).map("".join), st.sampled_from([",", ";"]), st.integers(1, 3))
@example('a,b\n\n1,2,3\n\r\nc,"d\ne"\n,,\n', ",", 2)
@example('""\n\nb\n', ",", 1)
@example("a,b", ",", 2)
def test_both_readers_agree(text: str, separator: str, width: int) -> None:
    wanted = list(reversed(range(width)))
    for rows in whole_rows([text.encode()], separator, width):
        if not rows:
            continue
        by_arrow, left_out_by_arrow = csv_cells.cells_by_arrow(rows, separator, width, wanted)
        by_python, left_out = csv_cells.cells_by_python(rows, separator, width, wanted)
        assert by_python.to_dict("list") == by_arrow.to_dict("list")
        assert list(by_python.columns) == list(by_arrow.columns)
        assert left_out == left_out_by_arrow


def test_a_cell_may_be_as_long_as_it_likes() -> None:
    long = "x" * 200_000
    frame, left_out = csv_cells.cells_by_python(f"{long},1\n".encode(), ",", 2, [0])
    assert frame["0"].tolist() == [long]
    assert left_out == []


@pytest.mark.parametrize("reading", [csv_cells.cells_by_arrow, csv_cells.cells_by_python])
def test_no_rows_are_columns_of_text(reading: csv_cells.Reading) -> None:
    frame, left_out = reading(b",,\n", ",", 2, [1])
    assert frame.dtypes.tolist() == ["str"]
    assert (len(frame), left_out) == (0, [1])
