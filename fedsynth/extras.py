"""Which part of the installation a missing library belongs to: the light one has no networks, ciphers, clusters,
Parquet or PDF."""

from __future__ import annotations

EXTRAS = {
    "flwr": "node", "tenseal": "node", "sqlalchemy": "node", "httpx": "node", "torch": "neural", "opacus": "neural",
    "starlette": "node", "jinja2": "node", "uvicorn": "node", "pyarrow": "formats", "reportlab": "formats",
    "kubernetes": "cluster", "pyhelm3": "cluster", "ibis": "sources", "duckdb": "sources",
}  # fmt: skip


def what_to_install(error: ModuleNotFoundError) -> str | None:
    """A sentence, if the library belongs to an extra; None if it is somebody's mistake."""
    library = (error.name or "").partition(".")[0]
    return in_an_extra(library) if library in EXTRAS else None


def in_an_extra(library: str) -> str:
    return (
        f"this needs {library}, which the light installation leaves out: pip install 'fedsynth[{EXTRAS[library]}]' "
        "(or 'fedsynth[all]')"
    )
