"""Fingerprints, computed from what is installed, written to be read aloud, and compared with what was heard.

What people compare must be what is used: these are computed from the very values that a release is made of. On paper
they stand in groups of four, within 80 columns. Such a page is YAML, so the one that a person wrote down on the
telephone can be given to a program.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from crypto.errors import CryptoError
from crypto.keys import Identity
from fedsynth.provision.authority import fingerprints
from fedsynth.provision.errors import KitRefused
from synth.errors import InputError
from synth.printable import quoted

# With a space, as no party's name has one.
AUTHORITY, FORMER_AUTHORITY = "the authority", "the former authority"
FEDERATION, AGGREGATOR = "the federation", "the aggregator"
GROUP, GROUPS_IN_LINE = 4, 8
TYPED_CHARACTERS = 8

Marks = dict[str, str]  # whose → the fingerprint's letters and digits, without what separates them


def of_authorities(bundle: bytes) -> Marks:
    """Of the certificates that the endpoint is believed by; two while a new one is brought in."""
    try:
        found = fingerprints(bundle)
    except ValueError:
        raise KitRefused("the authority (aggregator.ca) holds no certificate that can be read.") from None
    if len(found) > 2:
        raise KitRefused(f"the authority (aggregator.ca) is {len(found)} certificates; at most two are ever needed.")
    return {name: bare(each) for name, each in zip((AUTHORITY, FORMER_AUTHORITY), found, strict=False)}


def of_identity(text: str) -> str:
    try:
        return bare(Identity.from_text(text).fingerprint())
    except CryptoError as error:
        raise KitRefused(f"a public key cannot be read: {error}.") from None


def of_values(values: Mapping[str, Any]) -> Marks:
    """Of everything that a party's release believes because of its values, whoever wrote which of them."""
    try:
        authority, peers = str(values["aggregator"]["ca"]), dict(values["party"]["peers"] or {})
        marks = of_authorities(authority.encode()) | {FEDERATION: of_identity(values["federation"]["key"])}
    except (KeyError, TypeError, ValueError, AttributeError):
        raise KitRefused(
            "the values to install name no authority, no federation or no peers in the right form."
        ) from None
    return marks | {str(peer): of_identity(str(key)) for peer, key in sorted(peers.items())}


def bare(text: str) -> str:
    return re.sub(r"[\s:-]", "", text).upper()


def page(about: str, marks: Marks) -> str:
    """Marks on paper."""
    comment = textwrap.fill(about, 80, initial_indent="# ", subsequent_indent="# ")
    return "\n".join(
        [comment, *(f"{name}:\n{textwrap.indent(in_groups(mark), '    ')}" for name, mark in marks.items())]
    )


def in_groups(mark: str) -> str:
    """Lines of groups of four; what is no such mark stays as it is."""
    if not mark.isalnum():
        return mark
    groups = textwrap.wrap(mark, GROUP)
    lines = [groups[start : start + GROUPS_IN_LINE] for start in range(0, len(groups), GROUPS_IN_LINE)]
    return "\n".join(" ".join(line) for line in lines)


def read_page(path: Path) -> Marks:
    """What somebody wrote down; the page that `provision` makes for the operator has the same form."""
    try:
        content = yaml.load(path.read_text(encoding="utf-8"), Loader=yaml.BaseLoader)
        return {str(name): bare(mark) for name, mark in content.items()}
    except (OSError, UnicodeDecodeError, yaml.YAMLError, AttributeError, TypeError):
        raise InputError(f"{path} is no page of fingerprints: NAME and a colon, then the groups, for each.") from None


def require_heard(marks: Marks, heard: Marks) -> None:
    """Refuse unless every one of these was heard, whole."""
    if missing := [name for name in marks if name not in heard]:
        raise KitRefused(
            f"nobody told you the fingerprint of {', '.join(map(quoted, missing))}. Ask for it by telephone."
        )
    if wrong := [name for name in marks if heard[name] != marks[name]]:
        raise KitRefused(
            f"the fingerprint of {', '.join(map(quoted, wrong))} is not the one you were told: somebody may stand "
            "between you. Nothing was installed; call the operator, and do not use this kit."
        )
