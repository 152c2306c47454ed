"""Which part of the installation a missing library belongs to: the light one has no networks, ciphers or clusters."""

from __future__ import annotations

EXTRAS = {
    "flwr": "node", "tenseal": "node", "sqlalchemy": "node", "httpx": "node", "torch": "neural", "opacus": "neural",
    "kubernetes": "cluster", "pyhelm3": "cluster", "ibis": "sources", "duckdb": "sources",
}  # fmt: skip


def what_to_install(error: ModuleNotFoundError) -> str | None:
    """A sentence, if the library belongs to an extra; None if it is somebody's mistake."""
    library = (error.name or "").partition(".")[0]
    if library not in EXTRAS:
        return None
    return (
        f"this needs {library}, which the light installation leaves out: pip install 'fedsynth[{EXTRAS[library]}]' "
        "(or 'fedsynth[all]')"
    )
