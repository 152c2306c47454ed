"""The Python reference of the site, from the signatures and docstrings of what `from fedsynth import …` offers."""

from __future__ import annotations

import inspect
from typing import Any

from pydantic import BaseModel

import fedsynth

HEAD = """# Python reference

Everything that `from fedsynth import …` offers, from its own docstrings. How to use it: [Python](python.md).
"""


def reference() -> str:
    return "\n".join([HEAD, *(_described(name, getattr(fedsynth, name)) for name in sorted(fedsynth.__all__))])


def _described(name: str, thing: Any) -> str:
    parts = [f"## `{name}`\n", _signature(name, thing), inspect.getdoc(thing) or "", ""]
    if inspect.isclass(thing):
        for member, value in sorted(vars(thing).items()):
            function = value.__func__ if isinstance(value, classmethod | staticmethod) else value
            if not member.startswith("_") and inspect.isfunction(function) and function.__doc__:
                parts += [f"### `{name}.{member}`\n", _signature(member, function), inspect.getdoc(function) or "", ""]
            elif not member.startswith("_") and isinstance(value, property) and value.__doc__:
                parts += [f"### `{name}.{member}`\n", inspect.cleandoc(value.__doc__), ""]
    return "\n".join(parts)


def _signature(name: str, thing: Any) -> str:
    if not callable(thing) or (inspect.isclass(thing) and issubclass(thing, BaseModel)):
        return ""  # a document's keys are in the plan reference
    try:
        return f"```python\n{name}{inspect.signature(thing)}\n```\n"
    except ValueError:
        return ""
