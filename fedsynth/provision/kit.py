"""A party's kit as it is found: read whole, checked against the lists, its signature and itself, before it is used.

    values.yaml         where to meet, who takes part; contents.py has the list
    ca.crt              the authority alone, for preflights
    keys.yaml           everybody's public identities, for `fedsynth verify --keys`
    fingerprints.txt    all of it, to be read aloud
    secrets.yaml        this party's keys, only if the operator made them; and then the values say so
    signature.json      the federation's word for the files above

The signature proves that one hand wrote all files. Whose hand it was is compared by telephone, like everything else.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from fedsynth import bounded_yaml
from fedsynth.keyring import present_keys
from fedsynth.provision.contents import PARTY_SECRETS, KitValues, check_secrets, check_values
from fedsynth.provision.errors import KitRefused
from fedsynth.provision.kits import fingerprints_of_kit
from fedsynth.provision.signature import SIGNATURE, verify
from synth.printable import quoted

VALUES, AUTHORITY, KEYS, PAGE, SECRETS = "values.yaml", "ca.crt", "keys.yaml", "fingerprints.txt", "secrets.yaml"
FILES = (VALUES, AUTHORITY, KEYS, PAGE)  # and perhaps secrets
MOST_BYTES = 1_000_000  # of one file


@dataclass(frozen=True)
class Kit:
    """A kit that may be installed, once people compared its fingerprints."""

    values: dict[str, Any]
    secrets: str | None
    keys: dict[str, str]  # everybody's identities, the aggregator's among them

    @property
    def party(self) -> str:
        return str(self.values["party"]["name"])


def read_kit(folder: Path) -> Kit:
    files = _files(folder)
    values = _yaml(files[VALUES], VALUES)
    check_values(KitValues, values, f"the kit's {VALUES}")
    federation, party = values["federation"], values["party"]["name"]
    signature = files.pop(SIGNATURE)
    verify(signature, files, federation["name"], party, federation["key"])
    secrets = _text(files[SECRETS], SECRETS) if SECRETS in files else None
    if (secrets is not None) != ("keys" in values):
        raise KitRefused("the kit holds keys and does not say who made them, or the other way round.")
    if secrets is not None:
        check_secrets(secrets, PARTY_SECRETS, f"the kit's {SECRETS}")
    keys = _consistent(values, files)
    return Kit(values, secrets, keys)


def _files(folder: Path) -> dict[str, bytes]:
    """Every file by name; what a kit does not consist of is refused."""
    if not folder.is_dir():
        raise KitRefused(f"there is no kit at {folder}; give the folder that the operator sent.")
    allowed = {*FILES, SECRETS, SIGNATURE}
    found = {path.name: path for path in folder.iterdir()}
    if strange := sorted(name for name, path in found.items() if name not in allowed or not _is_plain(path)):
        raise KitRefused(
            f"the kit holds {', '.join(map(quoted, strange))}, which is no part of a kit. Take it away if you put it "
            "there yourself; else ask the operator."
        )
    if missing := sorted({*FILES, SIGNATURE} - set(found)):
        raise KitRefused(
            f"the kit lacks {', '.join(missing)}. A kit of an older version is not signed: ask the operator to "
            "provision again."
        )
    return {name: path.read_bytes() for name, path in found.items()}


def _is_plain(path: Path) -> bool:
    return path.is_file() and not path.is_symlink() and path.stat().st_size <= MOST_BYTES


def _consistent(values: dict[str, Any], files: dict[str, bytes]) -> dict[str, str]:
    """Refuse a kit whose files say different things; the keys. People read one file, and another is installed."""
    party, keys = values["party"], _present(_yaml(files[KEYS], KEYS))
    if not {party["name"], "aggregator"} <= set(keys):
        raise KitRefused(f"the kit's {KEYS} does not name the aggregator and this party.")
    others = {name: key for name, key in keys.items() if name not in (party["name"], "aggregator")}
    if others != party["peers"]:
        raise _contradiction(KEYS)
    if files[AUTHORITY] != values["aggregator"]["ca"].encode():
        raise _contradiction(AUTHORITY)
    if files[PAGE] != fingerprints_of_kit(values, keys).encode():
        raise _contradiction(PAGE)
    return keys


def _present(content: Any) -> dict[str, str]:
    """Retired keys are in a kit for those who verify old certificates; nobody is pinned to them."""
    try:
        return present_keys(content) if isinstance(content, dict) else {}
    except ValueError as error:
        raise KitRefused(f"the kit's {KEYS} cannot be read: {error}.") from None


def _contradiction(name: str) -> KitRefused:
    return KitRefused(
        f"the kit's {name} does not say what its {VALUES} says, which is what would be installed. Call the operator."
    )


def _text(content: bytes, name: str) -> str:
    try:
        return content.decode()
    except UnicodeDecodeError:
        raise KitRefused(f"the kit's {name} is not UTF-8 text.") from None


def _yaml(content: bytes, name: str) -> Any:
    try:
        return bounded_yaml.load(_text(content, name))
    except yaml.YAMLError:
        raise KitRefused(f"the kit's {name} is not YAML that anybody would write.") from None
