"""What the site adds to the pages in docs/: the Python reference, made from the code as it is."""

from __future__ import annotations

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

from fedsynth.api_reference import reference


def on_files(files: Files, config: MkDocsConfig) -> Files:
    files.append(File.generated(config, "api-reference.md", content=reference()))
    return files
