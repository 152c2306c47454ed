"""JSON as the standard has it, within bounds, for documents that strangers wrote.

Python's reader also takes Infinity and NaN, numbers of any length, halves of characters that no encoding can write, and
keys that come twice, of which it keeps the last. Each of these passed the parser, and failed or meant two things later.
"""

from __future__ import annotations

import json
from typing import Any

from synth.errors import InputError

MOST_DIGITS = 40  # of a whole number; larger ones than 2^63 are refused where they are used
DEEPEST = 64


def parse(text: str | bytes, what: str, most_bytes: int) -> Any:
    """The content; `InputError` says in a sentence why `what` is none."""
    if len(text) > most_bytes:
        raise InputError(f"{what} is larger than {most_bytes:,} bytes; nothing of this kind is.")
    try:
        content = json.loads(
            text,
            parse_constant=_refuse,
            parse_int=_whole,
            parse_float=_real,
            object_pairs_hook=_once,
        )
        json.dumps(content, ensure_ascii=False).encode()  # halves of characters have no encoding
        if _depth(content) > DEEPEST:
            raise RecursionError
    except RecursionError:
        raise InputError(f"{what} is nested deeper than {DEEPEST} levels; nothing of this kind is.") from None
    except UnicodeError:
        raise InputError(f"{what} holds text that is no UTF-8, or half of a character.") from None
    except _Unusual as error:
        raise InputError(f"{what} {error}.") from None
    except ValueError:
        raise InputError(f"{what} is not JSON.") from None
    return content


class _Unusual(Exception):
    """Something that Python reads and JSON does not know."""


def _refuse(_: str) -> Any:
    raise _Unusual("holds Infinity or NaN, which are no numbers in JSON")


def _whole(digits: str) -> int:
    if len(digits) > MOST_DIGITS:
        raise _Unusual(f"holds a number of more than {MOST_DIGITS} digits")
    return int(digits)


def _real(digits: str) -> float:
    value = float(digits)
    if value in (float("inf"), float("-inf")):
        raise _Unusual("holds a number beyond all floating point")
    return value


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    content = dict(pairs)
    if len(content) != len(pairs):
        raise _Unusual("holds a key twice in one place")
    return content


def _depth(content: Any) -> int:
    """Levels of lists and mappings, counted without recursion."""
    deepest, level = 0, [content]
    while level := [each for each in level if isinstance(each, dict | list)]:
        deepest += 1
        level = [inner for each in level for inner in (each.values() if isinstance(each, dict) else each)]
    return deepest
