"""Programs called `docker` and `kind` that keep a tiny image in a folder and write down what they were told."""

from __future__ import annotations

import hashlib
import io
import json
import sys
import tarfile
from pathlib import Path

REFERENCES = ["fedsynth/aggregator:0.2.0", "fedsynth/fed-node:0.2.0", "fedsynth/edge:0.2.0"]
SCRIPT = """#!{python}
import json, pathlib, shutil, sys
place, words = pathlib.Path({place!r}), sys.argv[1:]
with (place / "told.jsonl").open("a") as told:
    told.write(json.dumps([pathlib.Path(sys.argv[0]).name, *words]) + "\\n")
match words:
    case ["save", "-o", out, *_]:
        shutil.copy(place / "saved.tar", out)
    case ["image", "inspect", "--format", "{{{{.Id}}}}", name]:
        print(json.loads((place / "ids.json").read_text())[name])
    case ["image", "inspect", "--format", _, name]:
        print(json.dumps([name.rpartition(":")[0] + "@sha256:" + "e" * 64]))
"""


def image_of(reference: str) -> bytes:
    return json.dumps({"config": {"Labels": {"name": reference}}}).encode()


def saved_images() -> bytes:
    """What `docker save` writes: a manifest of the configurations, each called by its digest."""
    configs = {reference: image_of(reference) for reference in REFERENCES}
    names = {reference: f"blobs/sha256/{hashlib.sha256(content).hexdigest()}" for reference, content in configs.items()}
    index = [
        {
            "digest": "sha256:" + hashlib.sha256(reference.encode()).hexdigest(),
            "annotations": {"io.containerd.image.name": f"docker.io/{reference}"},
        }
        for reference in REFERENCES
    ]
    manifest = [{"Config": names[each], "RepoTags": [each], "Layers": []} for each in REFERENCES]
    files = {names[each]: content for each, content in configs.items()}
    files |= {"manifest.json": json.dumps(manifest).encode(), "index.json": json.dumps({"manifests": index}).encode()}
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return buffer.getvalue()


class StandIn:
    """Both programs, in a folder to be put on PATH."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()
        (folder / "saved.tar").write_bytes(saved_images())
        self.say({each: "sha256:" + hashlib.sha256(image_of(each)).hexdigest() for each in REFERENCES})
        for name in ("docker", "kind"):
            (folder / name).write_text(SCRIPT.format(python=sys.executable, place=str(folder)))
            (folder / name).chmod(0o755)

    def say(self, identities: dict[str, str]) -> None:
        """What `docker image inspect` says from now on."""
        (self.folder / "ids.json").write_text(json.dumps(identities))

    @property
    def told(self) -> list[list[str]]:
        path = self.folder / "told.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
