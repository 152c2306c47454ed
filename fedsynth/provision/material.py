"""What a release is made of: the kit's values and secrets together with the party's own, checked and merged once.

What is shown to people and what is handed to Helm is the same object.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fedsynth.documents import read_document
from fedsynth.provision.contents import OPERATOR_SECRETS, AggregatorValues, check_secrets, check_values
from fedsynth.provision.errors import KitRefused
from fedsynth.provision.kit import Kit, read_kit
from fedsynth.provision.kits import party_secret
from fedsynth.provision.party_keys import own_keys
from synth.errors import InputError

Values = dict[str, Any]


@dataclass(frozen=True)
class Material:
    values: Values
    secrets: str | None  # manifests to apply first


def party_material(kit_folder: Path, keys: Path | None, own: Sequence[Values], accept_keys: bool = False) -> Material:
    """From a kit that holds, and the party's own values over it. `accept_keys`: also keys that the operator made."""
    kit = read_kit(kit_folder)
    if kit.secrets is not None and not accept_keys:
        raise KitRefused(
            "the kit holds keys that the operator made for you, and whoever made them can act in your name. Make your "
            f"own (`fedsynth node keygen --name {kit.party}`) and send the join file, or say --accept-operator-keys."
        )
    secrets = _own_secret(kit, keys) if keys is not None else kit.secrets
    return Material(merged(kit.values, *own), secrets)


def _own_secret(kit: Kit, keys: Path) -> str:
    """Keys that the party made, if the federation knows them as this party's."""
    mine = own_keys(keys)
    if kit.secrets is not None or kit.keys[kit.party] != mine.public.identity:
        raise KitRefused(
            f"the kit names another identity for '{kit.party}' than the one in {keys}: the other parties would pin "
            "a stranger in your name. Call the operator."
        )
    return party_secret(mine)


def aggregator_material(folder: Path, own: Sequence[Values]) -> Material:
    """From the operator's own folder."""
    values = read_document(folder / "values.yaml")
    check_values(AggregatorValues, values, str(folder / "values.yaml"))
    try:
        secrets = (folder / "secrets.yaml").read_text()
    except OSError as error:
        raise InputError(f"{folder / 'secrets.yaml'} cannot be read: {error.strerror}.") from None
    check_secrets(secrets, OPERATOR_SECRETS, str(folder / "secrets.yaml"))
    return Material(merged(values, *own), secrets)


def merged(*layers: Values) -> Values:
    """As Helm merges values files: mappings key by key, everything else replaced by the later one."""
    result: Values = {}
    for layer in layers:
        if not isinstance(layer, dict):
            raise InputError("a file of values must be a mapping of keys, as in `helm show values`.")
        for key, value in layer.items():
            both = isinstance(value, dict) and isinstance(result.get(key), dict)
            result[key] = merged(result[key], value) if both else value
    return result
