"""Files of a party that versions before made readable by others are closed when the party begins."""

from __future__ import annotations

import logging
import os
from pathlib import Path

from fed_node.settings import KEY, LEDGER, LOG, POLICY, SETTINGS

log = logging.getLogger("fed_node")

OTHERS = 0o077
KEPT = (LEDGER, f"{LEDGER}.lock", LOG, KEY, SETTINGS, POLICY, "answers", "sessions", "approved", "begun")


def close_to_others(home: Path) -> None:
    """Where they belong to somebody else (a mounted Secret), they are that one's affair."""
    for path in (home / name for name in KEPT):
        try:
            mode = path.stat().st_mode & 0o777
            if mode & OTHERS and not path.is_symlink():
                os.chmod(path, mode & ~OTHERS)
        except OSError:
            if path.exists():
                log.debug("the permissions of %s stay as they are", path.name)
