"""YAML of strangers, read within bounds.

An alias repeats a part of the document by name, and aliases of aliases repeat it exponentially: a page of text is a
plan of billions of columns as soon as somebody walks through it. So the document is counted, each alias as often as it
stands there, before anything is made of it.
"""

from __future__ import annotations

from typing import Any

import yaml

LARGEST_BYTES = 4 << 20
MOST_PARTS = 500_000  # scalars, lists and mappings, repeated ones counted again
DEEPEST = 64

Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # libyaml's is ten times faster


class TooMuch(yaml.YAMLError):
    """A document that is larger than it looks."""


def load(text: str) -> Any:
    """The content of the first document; `yaml.YAMLError` if there is none within the bounds."""
    if len(text) > LARGEST_BYTES:
        raise TooMuch(f"it is larger than {LARGEST_BYTES:,} characters")
    _require_shallow(text)
    loader = Loader(text)
    try:
        node = loader.get_single_node()
        if node is None:
            return None
        if _parts(node, {}, 0) > MOST_PARTS:
            raise TooMuch(f"written out it has more than {MOST_PARTS:,} parts; write less, or use fewer aliases")
        return loader.construct_document(node)
    except RecursionError:
        raise TooMuch("it is nested too deeply") from None
    except (ValueError, OverflowError, AttributeError, TypeError) as error:  # of dates, numbers and merged mappings
        raise yaml.YAMLError(f"a value in it cannot be read ({type(error).__name__})") from None
    finally:
        loader.dispose()


def _require_shallow(text: str) -> None:
    """By the parser's events, one at a time: libyaml's composer calls itself, and a deep document ends the process."""
    depth = 0
    for event in yaml.parse(text, Loader=Loader):
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > DEEPEST:
            raise TooMuch(f"it is nested deeper than {DEEPEST} levels")


def _parts(node: yaml.Node, known: dict[int, int], depth: int) -> int:
    """How many parts a node has when every alias is written out. A node inside itself has no end."""
    if depth > DEEPEST:
        raise TooMuch(f"it is nested deeper than {DEEPEST} levels, or repeats itself without end")
    if isinstance(node, yaml.ScalarNode):
        return 1
    if id(node) not in known:
        inside = [part for pair in node.value for part in (pair if isinstance(pair, tuple) else (pair,))]
        known[id(node)] = 1 + sum(_parts(part, known, depth + 1) for part in inside)
    return known[id(node)]
