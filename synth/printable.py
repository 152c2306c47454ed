"""Text that a person reads before deciding shows what it is: no character moves, hides or reorders what is printed.

Whoever writes a schema chooses the names on every party's approval screen. A name with a line break could print a line
of its own there ("What it costs: nothing"), one with an escape sequence could erase lines, one with a bidirectional
override could show words in another order. So names, labels and everything else of the kind consist of characters that
take up room and stay where they are.
"""

from __future__ import annotations

import re

# Python calls printable what Unicode does not call control, format, surrogate, private, unassigned or a strange space.
# These are letters and marks by category, and show nothing all the same.
_UNSEEN = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0") | frozenset(
    chr(code) for code in (*range(0x180B, 0x1810), *range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0))
)
_MORE_SPACES = re.compile(r"(?<= ) +")


def unprintable(text: str) -> str | None:
    """The first character that does not show, by its code point; None: all do."""
    return next((f"U+{ord(each):04X}" for each in text if not _shows(each)), None)


def escaped(text: str, keep: str = "") -> str:
    """The text with what does not show written out, so that it can be printed anywhere."""
    return "".join(each if _shows(each) or each in keep else _written_out(each) for each in text)


def quoted(name: str) -> str:
    """A name inside a sentence: where it begins and ends is seen, and spaces cannot push text to the next line."""
    inside = escaped(name).replace("'", r"\'")
    return "'" + _MORE_SPACES.sub(lambda found: r"\x20" * len(found.group()), inside) + "'"


def _shows(character: str) -> bool:
    return character.isprintable() and character not in _UNSEEN


def _written_out(character: str) -> str:
    code = ord(character)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
