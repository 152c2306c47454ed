"""`fedsynth airgap`: a whole release in one signed file, for sites without a network."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from crypto.errors import CryptoError
from crypto.keys import Identity, IdentityKey
from fedsynth.commands.options import Json, say
from synth import VERSION
from synth.errors import InputError

app = typer.Typer(no_args_is_help=True, help="A whole release in one signed file, for sites without a network.")
IMAGES = [f"fedsynth/{name}:{VERSION}" for name in ("aggregator", "fed-node", "edge")]

Parcel = Annotated[Path, typer.Argument(help="What `fedsynth airgap make` wrote.")]
Key = Annotated[
    str, typer.Option(help="Public key (ed25519:…) of who must have signed: the federation's, as in your kit, or ours.")
]


class Engine(StrEnum):
    docker = "docker"
    kind = "kind"


@app.command()
def keygen(
    out: Annotated[Path, typer.Option("--out", "-o", help="File for the private key; it stays with who releases.")],
    as_json: Json = False,
) -> None:
    """Make a key that signs parcels, for whoever releases the software.

    A federation signs with its own, authority/federation.key.

    Exit codes: 0 written, 2 the file exists.
    """
    from synth.messages.archive import write_durably

    if out.exists():
        raise InputError(f"{out} exists already; a key is never replaced")
    key = IdentityKey.generate()
    write_durably(out, key.to_pem())  # readable by its owner alone
    identity = key.identity
    facts = {"key": identity.to_text(), "fingerprint": identity.fingerprint()}
    say(facts, as_json, f"public key   {facts['key']}\nfingerprint  {facts['fingerprint']}\nSay it by telephone.")


@app.command()
def make(
    out: Annotated[Path, typer.Option("--out", "-o", help="File to write.")],
    key: Annotated[Path, typer.Option(help="Private key that signs: authority/federation.key, or from `keygen`.")],
    images: Annotated[
        list[str], typer.Option("--image", help="Image of this machine's docker. May be repeated.")
    ] = IMAGES,
    charts: Annotated[Path, typer.Option(help="Folder with the charts.")] = Path("charts"),
    wheels: Annotated[Path, typer.Option(help="Folder with wheels for the command line.")] = Path("build/wheels"),
    docs: Annotated[Path, typer.Option(help="Folder with the documentation.")] = Path("docs"),
    sbom: Annotated[Path, typer.Option(help="Folder that `make sbom` wrote.")] = Path("build/sbom"),
    as_json: Json = False,
) -> None:
    """Pack images, charts, manifests, wheels, documents and SBOM into one file, with digests and a signature.

    `make airgap KEY=…` makes all of it first. The file is as large as the images: about 1.7 GB.

    Exit codes: 0 written, 2 something is missing, 5 it cannot be written, 8 docker.
    """
    from fedsynth.airgap.packing import make as make_parcel

    try:
        signer = IdentityKey.from_pem(key.read_bytes())
    except (OSError, CryptoError) as error:
        raise InputError(f"the key {key} cannot be read: {error}") from None
    folders = {"charts": charts, "wheels": wheels, "docs": docs, "sbom": sbom}
    contents = make_parcel(out, signer, images, folders)
    facts = {"file": str(out), "bytes": out.stat().st_size, "files": len(contents.files)}
    words = f"{out}: {len(contents.files)} files, {out.stat().st_size / 1e6:.1f} MB, signed."
    say(
        facts | {"key": signer.identity.to_text()}, as_json, f"{words}\nCheck it with --key {signer.identity.to_text()}"
    )


@app.command()
def check(parcel: Parcel, key: Key, as_json: Json = False) -> None:
    """Check PARCEL: the signature by this very key, and every file's digest. Nothing is written or loaded.

    Exit codes: 0 it holds, 2 no such file, 7 it does not hold.
    """
    from fedsynth.airgap.opening import check as check_parcel

    contents = check_parcel(parcel, _pinned(key))
    images = [f"  {name}  {image.config}" for name, image in contents.images.items()]
    words = f"It holds: fedsynth {contents.release}, made {contents.made}, {len(contents.files)} files."
    say(contents.model_dump(mode="json"), as_json, "\n".join([words, *images]))


@app.command()
def load(
    parcel: Parcel,
    key: Key,
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder to unpack into; it must not exist.")],
    into: Annotated[
        Engine | None, typer.Option(help="Also load the images: into docker, or into a kind cluster.")
    ] = None,
    cluster: Annotated[str, typer.Option(help="Name of the kind cluster.")] = "kind",
    registry: Annotated[str | None, typer.Option(help="Push them from docker to this registry; pins digests.")] = None,
    as_json: Json = False,
) -> None:
    """Check PARCEL, unpack it, and load its images. Nothing is loaded before every digest held.

    Writes a values file for each chart beside it, with the images as they were loaded. Then install from it:
    fedsynth install aggregator --charts OUT/charts -f OUT/aggregator-images.yaml …

    Exit codes: 0 loaded, 2 no such file, 5 no room, 7 it does not hold, 8 docker or kind.
    """
    from fedsynth.airgap import images
    from fedsynth.airgap.contents import IMAGES as SAVED
    from fedsynth.airgap.opening import unpack
    from fedsynth.documents import write_yaml

    if registry is not None and into is not Engine.docker:
        raise InputError("--registry pushes from docker; say --into docker, too")
    contents = unpack(parcel, _pinned(key), out)
    if into is Engine.docker:
        images.load_into_docker(out / SAVED, contents.images)
    elif into is Engine.kind:
        images.load_into_kind(out / SAVED, cluster)
    pushed = images.push(contents.images, registry) if registry else {}
    for chart, values in images.values_of(contents.images, pushed).items():
        (out / f"{chart}-images.yaml").write_text(write_yaml(values))
    next_line = f"fedsynth install aggregator --charts {out / 'charts'} -f {out / 'aggregator-images.yaml'} --kit …"
    facts = {"folder": str(out), "images": pushed or {name: each.config for name, each in contents.images.items()}}
    say(facts, as_json, f"{out}: {len(contents.files)} files, all as signed. Next:\n  {next_line}")


def _pinned(key: str) -> Identity:
    try:
        return Identity.from_text(key)
    except CryptoError as error:
        raise InputError(f"--key: {error}") from None
