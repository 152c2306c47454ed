"""What the consortium knows about every possible row, stated in the plan: no data are needed to know it.

    impossible   combinations of labels (or of labels and ranges) that cannot occur: {sex: [Male], pregnant: [yes]}
    order        columns that never fall along a row: admitted ≤ discharged
    relation     a column that another one determines: education-num from education
    total        what columns come to, added and subtracted: discharged − admitted (see `totals`)

Synthesizers may build these into their model; `enforce` and `violations` make sure of them in the output of any.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal

import numpy as np
import numpy.typing as npt
from pydantic import Field, field_validator, model_validator

from synth.encoding.records import Records, Values
from synth.encoding.scales import Floats, scale_of
from synth.schema import Boolean, Categorical, Datetime, Integer, Schema, Strict
from synth.totals import Total, breaks_total, instants, total_problem, with_total

__all__ = ["Between", "Constraint", "Impossible", "Order", "Relation", "Total", "instants"]
Mask = npt.NDArray[np.bool_]


class Between(Strict):
    """A range of numbers, bounds included."""

    min: float | None = Field(None, description="Smallest number of the range; without it, everything below max.")
    max: float | None = Field(None, description="Largest number of the range; without it, everything above min.")

    def holds(self, values: Floats) -> Mask:
        low = -np.inf if self.min is None else self.min
        high = np.inf if self.max is None else self.max
        found: Mask = (values >= low) & (values <= high)  # False for a missing cell
        return found


class Impossible(Strict):
    """No row has all of these at once."""

    kind: Literal["impossible"] = "impossible"
    combination: dict[str, list[str] | Between] = Field(
        min_length=1, description="Column to labels (discrete) or to a range (integer, continuous)."
    )

    @field_validator("combination", mode="before")
    @classmethod
    def _labels_as_text(cls, value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        return {k: [str(item) for item in part] if isinstance(part, list) else part for k, part in value.items()}


class Order(Strict):
    """Along a row, these columns never fall; empty cells are passed over."""

    kind: Literal["order"] = "order"
    columns: list[str] = Field(min_length=2, description="Numeric columns, or datetime columns, lowest first.")

    @model_validator(mode="after")
    def _distinct(self) -> Order:
        if len(set(self.columns)) != len(self.columns):
            raise ValueError("an order names a column twice; name each once")
        return self


class Relation(Strict):
    """One column is a function of another, so it is computed, never modelled or counted in tables."""

    kind: Literal["relation"] = "relation"
    column: str = Field(description="The column that is determined.")
    of: str = Field(description="The categorical or boolean column that determines it.")
    values: dict[str, str | int | float] = Field(
        description="Every label of `of`, with the label or number that follows."
    )

    @field_validator("values", mode="before")
    @classmethod
    def _labels_as_text(cls, value: Any) -> Any:
        # YAML reads `0` as a number; labels are text.
        return {str(label): image for label, image in value.items()} if isinstance(value, dict) else value


Constraint = Annotated[Impossible | Order | Relation | Total, Field(discriminator="kind")]


def determined(constraints: Sequence[Constraint]) -> dict[str, Relation]:
    """The columns that others determine."""
    return {one.column: one for one in constraints if isinstance(one, Relation)}


def computed(constraints: Sequence[Constraint]) -> set[str]:
    """The columns that no model needs: others determine them, or add up to them."""
    totals = {one.column for one in constraints if isinstance(one, Total) and one.column is not None}
    return totals | set(determined(constraints))


def enforce(records: Records, constraints: Sequence[Constraint], schema: Schema) -> Records:
    """The records with orders restored (values sorted within the row), totals made true and determined columns
    computed."""
    columns = dict(records.columns)
    for one in constraints:
        if isinstance(one, Order):
            columns |= _sorted_along(one, columns, schema)
    for name, relation in determined(constraints).items():
        columns[name] = _image(relation, schema)[columns[relation.of].astype(np.int64)]
    for one in constraints:
        if isinstance(one, Total):
            columns |= with_total(one, columns, schema)
    return Records({name: columns[name] for name in schema.released})


def violations(records: Records, constraints: Sequence[Constraint], schema: Schema) -> Mask:
    """Which rows break a constraint."""
    broken = np.zeros(len(records), dtype=bool)
    for one in constraints:
        if isinstance(one, Impossible):
            broken |= np.logical_and.reduce(
                [matches(part, name, records.columns[name], schema) for name, part in one.combination.items()]
            )
        elif isinstance(one, Order):
            moments = [_moments(name, records.columns[name], schema) for name in one.columns]
            broken |= _out_of_order(one, moments, schema)
        elif isinstance(one, Total):
            broken |= breaks_total(one, records.columns, schema)
        else:
            expected = _image(one, schema)[records.columns[one.of].astype(np.int64)]
            broken |= ~np.isclose(expected, records.columns[one.column], rtol=0, atol=1e-9, equal_nan=True)
    return broken


def matches(part: list[str] | Between, name: str, values: Values, schema: Schema) -> Mask:
    """Which values of a column are among the labels, or within the range."""
    if isinstance(part, Between):
        return part.holds(values.astype(np.float64))
    labels = schema.discrete[name].labels
    return np.isin(values, [labels.index(label) for label in part])


def problem(constraints: Sequence[Constraint], schema: Schema) -> str | None:
    """What is wrong with the constraints as statements about this schema; None if nothing is."""
    owned = computed(constraints)
    if len(owned) != sum(isinstance(one, Relation | Total) and one.column is not None for one in constraints):
        return "constraints: a column is determined by two relations or totals; keep one of them"
    for one in constraints:
        match one:
            case Impossible():
                found = _combination_problem(one, schema)
            case Order():
                found = _order_problem(one, schema, owned)
            case Total():
                found = total_problem(one, schema, owned)
            case Relation():
                found = _relation_problem(one, schema, owned)
        if found:
            return f"constraints, {one.kind}: {found}"
    return None


def _moments(name: str, values: Values, schema: Schema) -> Floats:
    return instants(name, schema, values.astype(np.float64))


def _sorted_along(one: Order, columns: dict[str, Values], schema: Schema) -> dict[str, Values]:
    """Each row's filled cells of the ordered columns, in rising order; a value stays within its new column's bounds.

    Times of several precisions change places by the coarsest: a time of day stays in its column, as a day's own is
    midnight, which would heap there."""
    moments = np.stack([_moments(name, columns[name], schema) for name in one.columns])
    unit = coarsest(one.columns, schema)
    whole = moments if unit is None else np.floor(moments / unit) * unit
    ordered = _rising(whole) + (moments - whole)
    if unit is not None:
        again = _out_of_order(one, ordered, schema)  # within one day, say
        ordered[:, again] = _rising(whole[:, again]) + _rising(moments[:, again] - whole[:, again])
    found: dict[str, Values] = {}
    for name, values in zip(one.columns, ordered, strict=True):
        own, scale = values - instants(name, schema, np.zeros(1))[0], scale_of(schema.numeric[name], name)
        found[name] = scale.snap(own if unit is None else np.floor(own / scale.unit) * scale.unit)
    return found


def _rising(values: Floats) -> Floats:
    """Every column's filled cells in rising order; a missing cell stays where it is."""
    filled = ~np.isnan(values)
    place = np.maximum(np.cumsum(filled, axis=0) - 1, 0)
    return np.where(filled, np.take_along_axis(np.sort(values, axis=0), place, axis=0), np.nan)


def _out_of_order(one: Order, moments: Sequence[Floats] | Floats, schema: Schema) -> Mask:
    """Which rows fall along the columns; two times are compared at the coarser of their precisions."""
    broken = np.zeros(len(moments[0]), dtype=bool)
    for later in range(1, len(moments)):
        for earlier in range(later):
            unit = coarsest([one.columns[earlier], one.columns[later]], schema)
            first, second = moments[earlier], moments[later]
            if unit is not None:
                first, second = np.floor(first / unit), np.floor(second / unit)
            broken |= first > second  # False where either is missing
    return broken


def coarsest(names: Sequence[str], schema: Schema) -> float | None:
    """Seconds of the coarsest precision, where times have several; None where there is nothing to mind."""
    units = {scale_of(schema.numeric[name]).unit for name in names if isinstance(schema.numeric[name], Datetime)}
    return max(units) if len(units) > 1 else None


def _image(relation: Relation, schema: Schema) -> Values:
    """The determined value for every code of the determining column; a missing cell determines a missing cell."""
    source, column = schema.discrete[relation.of], schema.released[relation.column]
    if isinstance(column, Categorical | Boolean):
        codes = [column.labels.index(str(relation.values[label])) for label in source.labels]
        return np.array([*codes, len(column.labels)], dtype=np.int64)
    return np.array([*(float(relation.values[label]) for label in source.labels), np.nan])


def _combination_problem(one: Impossible, schema: Schema) -> str | None:
    for name, part in one.combination.items():
        if isinstance(part, Between):
            if name not in schema.numeric or isinstance(schema.numeric[name], Datetime):
                return f"'{name}' is no integer or continuous column, so it has no range; give labels"
            if part.min is None and part.max is None:
                return f"the range of '{name}' has neither min nor max; give one"
        elif name not in schema.discrete:
            return f"'{name}' is no categorical or boolean column; give a range {{min, max}}, or another column"
        elif unknown := [label for label in part if label not in schema.discrete[name].labels]:
            return f"{unknown} are no labels of '{name}'; use those of the schema"
    return None


def _order_problem(one: Order, schema: Schema, owned: set[str]) -> str | None:
    for name in one.columns:
        if name not in schema.numeric:
            return f"'{name}' is no numeric or datetime column of the schema"
        if name in owned:
            return f"'{name}' is determined by a relation or a total; state the order of the other columns only"
    if len({isinstance(schema.numeric[name], Datetime) for name in one.columns}) > 1:
        return "times and numbers cannot be compared; give columns of one kind"
    lows = [instants(name, schema, np.array([scale_of(schema.numeric[name]).lowest]))[0] for name in one.columns]
    highs = [instants(name, schema, np.array([scale_of(schema.numeric[name]).highest]))[0] for name in one.columns]
    if lows != sorted(lows) or highs != sorted(highs):
        return f"the bounds of {', '.join(one.columns)} must themselves rise in that order; widen them in the schema"
    return None


def _relation_problem(one: Relation, schema: Schema, owned: set[str]) -> str | None:
    if one.of not in schema.discrete or one.column not in schema.released or one.of == one.column:
        return f"'{one.of}' must be a categorical or boolean column and '{one.column}' another released one"
    if one.of in owned:
        return f"'{one.of}' is determined itself; relate '{one.column}' to what determines it"
    if schema.target == one.column:
        return f"'{one.column}' is the target; turn the relation round"
    if set(one.values) != set(schema.discrete[one.of].labels):
        return f"values must name every label of '{one.of}', and no other"
    column = schema.released[one.column]
    if schema.discrete[one.of].missing and not column.missing:
        return f"'{one.of}' may be empty but '{one.column}' may not; declare it missing too"
    if isinstance(column, Categorical | Boolean):
        unknown = {str(value) for value in one.values.values()} - set(column.labels)
        return f"{sorted(unknown)} are no labels of '{one.column}'" if unknown else None
    if isinstance(column, Datetime) or any(isinstance(value, str) for value in one.values.values()):
        return f"'{one.column}' must get numbers"
    numbers = np.array(list(one.values.values()), dtype=np.float64)
    if not np.allclose(scale_of(column).snap(numbers), numbers, rtol=0, atol=1e-9):
        unit = "whole numbers" if isinstance(column, Integer) else "numbers of its declared decimals"
        return f"'{one.column}' must get {unit} within its bounds"
    return None
