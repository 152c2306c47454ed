"""A tar archive unpacked into a folder: files and folders below it, owned by whoever unpacks, and nothing else.

Python has this rule as `filter="data"` since 3.11.4; Debian 12 has 3.11.2.
"""

from __future__ import annotations

import os
import tarfile
from pathlib import Path, PurePosixPath


def unpack(tar: tarfile.TarFile, folder: Path) -> list[Path]:
    """What was unpacked. A member that is a link, a device or elsewhere is a `tarfile.TarError`, before anything is
    written."""
    members = tar.getmembers()
    for member in members:
        path = PurePosixPath(member.name)
        if path.is_absolute() or ".." in path.parts or not (member.isfile() or member.isdir()):
            raise tarfile.TarError("it holds something that is no file or folder of its own")
        member.uid, member.gid, member.uname, member.gname = os.getuid(), os.getgid(), "", ""
        member.mode = 0o755 if member.isdir() else member.mode & 0o644 | 0o600
    tar.extraction_filter = lambda member, _: member  # later versions of Python ask; the rule is the one above
    tar.extractall(folder, members)
    return [folder / member.name for member in members]
