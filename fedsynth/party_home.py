"""A party's home folder: made once, kept for good. Its files explain themselves, in the words of their own schemas."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from crypto.errors import CryptoError
from crypto.keys import Identity, IdentityKey
from fed_node.consent.policy import Policy
from fed_node.settings import KEY, POLICY, SETTINGS, PartySettings
from fed_node.source import source_of
from fedsynth.documents import write_yaml
from synth.errors import InputError
from synth.messages.archive import write_durably

NAME = re.compile(r"[a-z][a-z0-9-]{0,30}")  # as in plans
# A cautious start; the institution raises them when it has thought about it.
CAUTIOUS = {"maximum_epsilon_per_run": 1.0, "maximum_epsilon_in_total": 3.0, "maximum_delta": 1e-5}

ABOUT_SETTINGS = "This party's own settings. Nobody else reads them. Rows may also come from a database: see the guide."
ABOUT_POLICY = "What this party allows, whatever a consortium plans. Every plan is held against all of it."


def make_home(home: Path, name: str, data: Path) -> Identity:
    """Settings, policy and identity key of a new party; refuses to replace any of them."""
    party_name(name)
    for file in (SETTINGS, POLICY, KEY):
        if (home / file).exists():
            raise InputError(f"{home / file} exists; this is somebody's home already. Choose another --home.")
    source = source_of(data.resolve()).model_dump(mode="json", exclude_none=True)
    settings = {"name": name, "dataset": "default", "data": source, "peers": {}, "debug_values": False}
    PartySettings.model_validate(settings)
    policy = Policy.model_validate(CAUTIOUS).model_dump(mode="json")
    write_durably(home / SETTINGS, commented(ABOUT_SETTINGS, PartySettings, settings).encode())
    write_durably(home / POLICY, commented(ABOUT_POLICY, Policy, policy).encode())
    return make_key(home)


def party_name(name: str) -> str:
    if not NAME.fullmatch(name):
        raise InputError(f"'{name}' is no name of a party: use lower-case letters, digits and '-', at most 31 of them.")
    return name


def make_key(home: Path) -> Identity:
    """A new identity, readable by its owner alone. An identity is never replaced: the others pinned it."""
    path = home / KEY
    if path.exists():
        raise InputError(
            f"{path} exists, and other parties may have pinned its public half. Move it away first if it is lost to "
            "you or to a thief; then give everybody the new one."
        )
    key = IdentityKey.generate()
    write_durably(path, key.to_pem())
    return key.identity


def identity_of(home: Path) -> Identity:
    try:
        return IdentityKey.from_pem((home / KEY).read_bytes()).identity
    except (OSError, CryptoError) as error:
        raise InputError(f"the identity key {home / KEY} cannot be used: {error}. `fedsynth node keygen`?") from None


def commented(about: str, model: type[BaseModel], values: dict[str, Any]) -> str:
    """YAML with each field's own description above it."""
    parts = [_comment(about)]
    for name, value in values.items():
        parts.append(_comment(model.model_fields[name].description or "") + write_yaml({name: value}))
    return "\n".join(parts)


def _comment(text: str) -> str:
    return "".join(f"# {line}\n" for line in textwrap.wrap(text, 100))
