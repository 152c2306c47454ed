"""Record batches as frames of plain cells, whoever made them.

A column has the type that the source gives it, whatever its cells are: pandas would make real numbers of whole ones,
and objects of truth values, as soon as a piece holds one empty cell.
"""

from __future__ import annotations

from typing import Any, cast

import pandas as pd
import pyarrow
import pyarrow.compute

WITH_EMPTY_CELLS = {
    pyarrow.bool_(): pd.BooleanDtype(),
    pyarrow.int8(): pd.Int8Dtype(),
    pyarrow.int16(): pd.Int16Dtype(),
    pyarrow.int32(): pd.Int32Dtype(),
    pyarrow.int64(): pd.Int64Dtype(),
    pyarrow.uint8(): pd.UInt8Dtype(),
    pyarrow.uint16(): pd.UInt16Dtype(),
    pyarrow.uint32(): pd.UInt32Dtype(),
    pyarrow.uint64(): pd.UInt64Dtype(),
}


def frame_of(batch: Any) -> pd.DataFrame:
    return cast(
        pd.DataFrame,
        _plain(batch).to_pandas(date_as_object=False, types_mapper=WITH_EMPTY_CELLS.get, ignore_metadata=True),
    )


def _plain(batch: Any) -> Any:
    """Dictionary and decimal columns as what they stand for (pandas would make Python objects of them), text as text.

    Some writers put bytes into text columns that are no UTF-8; those become U+FFFD, as in a CSV file.
    """
    for place, field in enumerate(batch.schema):
        column = batch.column(place)
        if pyarrow.types.is_dictionary(column.type):
            column = column.cast(column.type.value_type)
        if pyarrow.types.is_decimal(column.type):
            column = column.cast(pyarrow.float64())
        elif pyarrow.types.is_string(column.type) or pyarrow.types.is_large_string(column.type):
            column = _decoded(column)
        elif pyarrow.types.is_time(column.type):
            column = _within_a_day(column)
        batch = batch.set_column(place, field.name, column)
    return batch


def _within_a_day(column: Any) -> Any:
    """Times of day as they are; what lies outside a day, of which nobody can make an object, as empty."""
    units = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
    ticks = column.view(pyarrow.int32() if column.type.bit_width == 32 else pyarrow.int64())
    day = 24 * 60 * 60 * units[column.type.unit]
    inside = pyarrow.compute.and_(
        pyarrow.compute.greater_equal(ticks, 0), pyarrow.compute.less(ticks, pyarrow.scalar(day, pyarrow.int64()))
    )
    return pyarrow.compute.if_else(inside, column, pyarrow.scalar(None, column.type))


def _decoded(column: Any) -> Any:
    try:
        column.validate(full=True)
    except pyarrow.ArrowInvalid:
        cells = column.cast(pyarrow.large_binary()).to_pylist()
        texts = [None if cell is None else cell.decode("utf-8", errors="replace") for cell in cells]
        return pyarrow.array(texts, column.type)
    return column
