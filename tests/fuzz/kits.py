"""A kit as a hostile operator would make it: changed anywhere, and signed again, for the federation's key is theirs."""

from __future__ import annotations

import random
import shutil
import tempfile
from functools import cache
from pathlib import Path

import yaml

from crypto.keys import IdentityKey
from fedsynth.provision.federation import Federation
from fedsynth.provision.kit import read_kit
from fedsynth.provision.provisioning import Provisioning
from fedsynth.provision.signature import SIGNATURE, signed
from tests.fuzz.mutations import as_text, changed_bytes, changed_values

Files = dict[str, bytes]
SIGNED_AGAIN = 0.8  # of the cases; else the first look at the signature would be the last


@cache
def _example() -> tuple[Files, IdentityKey]:
    parties = [{"name": name} for name in ("north", "south")]
    federation = Federation.model_validate({"name": "coast", "endpoint": "fed.example.org:443", "parties": parties})
    with tempfile.TemporaryDirectory() as folder:
        Provisioning(federation, Path(folder), make_keys=["north", "south"]).carry_out()
        files = {path.name: path.read_bytes() for path in (Path(folder) / "parties" / "north").iterdir()}
        return files, IdentityKey.from_pem((Path(folder) / "authority" / "federation.key").read_bytes())


def make_kit(chance: random.Random) -> Files:
    example, key = _example()
    files = dict(example)
    name = chance.choice(sorted(files))
    if name.endswith(".yaml") and chance.random() < 0.7:
        files[name] = as_text(changed_values(next(iter(yaml.safe_load_all(files[name]))), chance))
    else:
        files[name] = changed_bytes(files[name], chance)
    if chance.random() < 0.1:
        files[chance.choice(["more.yaml", "values.yaml~", "Secret"])] = b"kind: Secret\n"
    if chance.random() < SIGNED_AGAIN:
        files.pop(SIGNATURE, None)
        files[SIGNATURE] = signed(files, "coast", "north", key).encode()
    return files


def use_kit(files: Files) -> None:
    folder = Path(tempfile.mkdtemp(prefix="kit-"))
    try:
        for name, content in files.items():
            (folder / name).write_bytes(content)
        read_kit(folder)
    finally:
        shutil.rmtree(folder)
