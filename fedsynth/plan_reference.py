"""docs/plan-reference.md, generated from the models themselves, so that no key is missing and no default is stale.

python -m fedsynth.plan_reference > docs/plan-reference.md      (a test compares the two)
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from synth.plan import Plan

INTRODUCTION = """# Plan reference

Every key of a plan, generated from the code (`python -m fedsynth.plan_reference`). A plan is YAML or JSON; unknown keys
are refused; what is left out takes the default. `fedsynth schema export plan` is the same as JSON Schema, for editors.

```yaml
name: census
parties: [{name: north, rows: 12000}, {name: south, rows: 9000}, {name: west, rows: 11000}]
schema: census.schema.yaml        # a path beside the plan, or the schema itself
privacy: {epsilon: 1.0, delta: 1.0e-6}
```
"""


def reference() -> str:
    """The whole page."""
    return INTRODUCTION + "".join(_section(model, 2) for model in _models(Plan))


def _models(model: type[BaseModel], seen: list[type[BaseModel]] | None = None) -> list[type[BaseModel]]:
    """The model and every model its fields are made of, in the order in which a reader meets them."""
    seen = [] if seen is None else seen
    if model in seen:
        return seen
    seen.append(model)
    for field in model.model_fields.values():
        for inner in _parts(field.annotation):
            if isinstance(inner, type) and issubclass(inner, BaseModel):
                _models(inner, seen)
    return seen


def _section(model: type[BaseModel], level: int) -> str:
    title = f"{'#' * level} {model.__name__.removesuffix('Settings')}"
    about = " ".join((model.__doc__ or "").split("\n\n")[0].split())
    rows = "".join(_row(name, field) for name, field in model.model_fields.items())
    return f"\n{title}\n\n{about}\n\n| key | value | default | |\n|---|---|---|---|\n{rows}"


def _row(name: str, field: FieldInfo) -> str:
    described = " ".join((field.description or "").replace("|", "\\|").split())
    return f"| `{field.alias or name}` | {_type(field)} | {_default(field)} | {described} |\n"


def _default(field: FieldInfo) -> str:
    if field.default_factory is not None:
        return "as below"
    if field.default is PydanticUndefined:
        return "**required**"
    if field.default is None:
        return "left out"
    return f"`{json.dumps(field.default, ensure_ascii=False)}`"


def _type(field: FieldInfo) -> str:
    words = list(dict.fromkeys(_words(field.annotation)))
    limits = [_limit(each) for each in field.metadata]
    return ", ".join([" or ".join(words), *filter(None, limits)])


def _limit(constraint: object) -> str:
    signs = {"gt": "> {}", "ge": "≥ {}", "lt": "< {}", "le": "≤ {}"}
    return ", ".join(s.format(getattr(constraint, k)) for k, s in signs.items() if hasattr(constraint, k))


def _words(annotation: Any) -> Iterator[str]:
    origin, inner = get_origin(annotation), get_args(annotation)
    if annotation is type(None):
        return
    if origin is Annotated:
        yield from _words(inner[0])
    elif origin in (Union, UnionType):
        for each in inner:
            yield from _words(each)
    elif origin is Literal:
        yield from (f"`{each}`" for each in inner)
    elif origin is list:
        yield f"list of {' or '.join(dict.fromkeys(_words(inner[0])))}"
    elif origin is dict:
        yield f"mapping of names to {' or '.join(dict.fromkeys(_words(inner[1])))}"
    elif isinstance(annotation, type) and issubclass(annotation, BaseModel):
        name = annotation.__name__.removesuffix("Settings")
        yield f"[{name}](#{name.lower()})"
    else:
        known = {int: "whole number", float: "number", str: "text", bool: "true or false"}
        yield known.get(annotation, getattr(annotation, "__name__", str(annotation)))


def _parts(annotation: Any) -> Iterator[Any]:
    yield annotation
    for inner in get_args(annotation):
        yield from _parts(inner)


def main() -> None:
    import sys

    sys.stdout.write(reference())


if __name__ == "__main__":
    main()
