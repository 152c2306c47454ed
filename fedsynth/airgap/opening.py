"""A parcel as it is found: believed in nothing until the signature holds, and in no file until its digest does.

The signature is read first; then every member must be on the signed list, a plain file, of that size and digest, once;
and nothing may be missing. What is unpacked is written while it is hashed and stands in its place only when all of it
held, so that what is loaded afterwards is what was checked.
"""

from __future__ import annotations

import hashlib
import io
import itertools
import os
import shutil
import tarfile
import tempfile
from pathlib import Path
from typing import IO, BinaryIO

from crypto.keys import Identity
from fedsynth.airgap.contents import CONTENTS, SIGNATURE, Contents, File, ParcelRefused, verified
from synth.errors import InputError, OutputError
from synth.printable import quoted

CHUNK = 1 << 20
LARGEST_HEAD = 8 << 20  # of the list and its signature, and of any header that names a member


class _Measured(io.RawIOBase):
    """A file of which nobody reads much at once: an archive's headers may claim any size."""

    def __init__(self, file: BinaryIO) -> None:
        self.file = file

    def read(self, size: int = -1) -> bytes:
        if not 0 <= size <= LARGEST_HEAD:
            raise ParcelRefused("the parcel has a header of an absurd size; get it again")
        return self.file.read(size)

    def seek(self, position: int, whence: int = 0) -> int:
        return self.file.seek(position, whence)

    def tell(self) -> int:
        return self.file.tell()


def check(path: Path, key: Identity) -> Contents:
    """Everything, without writing anything."""
    return _walk(path, key, None)


def unpack(path: Path, key: Identity, out: Path) -> Contents:
    """Everything, into a folder that is there only if all of it held."""
    if out.exists():
        raise InputError(f"{out} exists already; choose another --out, or remove it first")
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        folder = Path(tempfile.mkdtemp(prefix=".parcel-", dir=out.parent))
        try:
            contents = _walk(path, key, folder)
            folder.rename(out)
        finally:
            shutil.rmtree(folder, ignore_errors=True)
    except OSError as error:
        raise OutputError(f"cannot unpack into {out}: {error.strerror}") from None
    return contents


def _walk(path: Path, key: Identity, into: Path | None) -> Contents:
    if not path.is_file():
        raise InputError(f"there is no parcel at {path}")
    try:
        with path.open("rb") as file, tarfile.open(fileobj=_Measured(file), mode="r:") as archive:
            contents = verified(_head(archive, CONTENTS), _head(archive, SIGNATURE), key)
            missing = dict(contents.files)
            for member in itertools.islice(archive, 2, None):
                expected = missing.pop(member.name, None)
                if expected is None or not _is_plain(member):
                    raise ParcelRefused(
                        f"the parcel holds {quoted(member.name)}, which its list does not: refused whole"
                    )
                _copy(archive, member, expected, into)
    except (tarfile.TarError, EOFError, ValueError):  # headers of sparse files that are no numbers
        raise ParcelRefused(f"{path} is no parcel that `fedsynth airgap make` made, or it was cut") from None
    if missing:
        raise ParcelRefused(f"the parcel lacks {', '.join(sorted(missing)[:3])}: refused whole")
    return contents


def _head(archive: tarfile.TarFile, name: str) -> bytes:
    """One of the first two members."""
    member = archive.next()
    if member is None or member.name != name or not _is_plain(member) or member.size > LARGEST_HEAD:
        raise ParcelRefused(f"the parcel does not begin with its {name}: it is not signed, or no parcel")
    return _opened(archive, member).read(member.size)


def _is_plain(member: tarfile.TarInfo) -> bool:
    return member.isreg() and not member.issparse()


def _opened(archive: tarfile.TarFile, member: tarfile.TarInfo) -> IO[bytes]:
    file = archive.extractfile(member)
    assert file is not None  # it is a plain file
    return file


def _copy(archive: tarfile.TarFile, member: tarfile.TarInfo, expected: File, into: Path | None) -> None:
    place = into / member.name if into else Path(os.devnull)
    if into:
        place.parent.mkdir(parents=True, exist_ok=True)
    digest, source = hashlib.sha256(), _opened(archive, member)
    with place.open("xb" if into else "wb") as target:
        while piece := source.read(CHUNK):
            digest.update(piece)
            target.write(piece)
    if (member.size, digest.hexdigest()) != (expected.bytes, expected.sha256):
        raise ParcelRefused(f"{member.name} is not the file that was signed: refused whole")
