"""Where a party's table is: a file or a query, as the party writes it in its own settings.

A database's address holds a password, so it is never written here: only the name of the file or of the environment
variable that holds it. Nothing of it can reach a command line, a log or an error.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from synth.errors import InputError
from synth.schema import Strict


class CsvSource(Strict):
    """A text file with one header row, plain or compressed with gzip."""

    kind: Literal["csv"] = "csv"
    path: Path = Field(description="The file.")
    separator: str | None = Field(
        None, min_length=1, max_length=1, description="The character between cells; found from the header if left out."
    )
    encoding: str = Field("utf-8", description="How the file's characters are written, in Python's names.")


class ParquetSource(Strict):
    """A Parquet file."""

    kind: Literal["parquet"] = "parquet"
    path: Path = Field(description="The file.")
    engine: Literal["memory", "duckdb"] | None = Field(
        None,
        description="Who counts: our own code, on rows in memory, or DuckDB, in the file. Left out: DuckDB if the rows "
        "would take more than 1 GiB.",
    )


class _Query(Strict):
    query: str = Field(min_length=1, description="A SELECT that returns the schema's columns, one row a record.")
    url_file: Path | None = Field(None, description="File that holds the database's URL, password included.")
    url_env: str | None = Field(None, description="Environment variable that holds it instead.")

    @model_validator(mode="after")
    def _one_place(self) -> Self:
        if (self.url_file is None) == (self.url_env is None):
            raise ValueError("give the database's URL by url_file or by url_env, one of them")
        return self

    def url(self) -> str:
        """The database's address; a secret."""
        if self.url_env is not None:
            found = os.environ.get(self.url_env, "").strip()
        else:
            assert self.url_file is not None
            try:
                found = self.url_file.read_text(encoding="utf-8").strip()
            except (OSError, UnicodeDecodeError):
                raise InputError(
                    f"cannot read the database's URL from {self.url_file}; create or correct it."
                ) from None
        if not found:
            raise InputError(f"{self.url_env or self.url_file} holds no URL; set it to the database's.")
        return found


class SqlSource(_Query):
    """The rows of a query on a database that SQLAlchemy knows, read into memory."""

    kind: Literal["sql"] = "sql"


class EngineSource(_Query):
    """The rows of a query that are counted where they are, by an engine that Ibis knows; they never have to fit into
    memory. Its URL: postgresql://user:password@host/database, duckdb:///data/rows.duckdb, pyspark:// and so on."""

    kind: Literal["engine"] = "engine"


Source = Annotated[CsvSource | ParquetSource | SqlSource | EngineSource, Field(discriminator="kind")]


def source_of(path: Path, separator: str | None = None) -> CsvSource | ParquetSource:
    """The source a file's name stands for."""
    if path.suffix.lower() in (".parquet", ".pq"):
        return ParquetSource(path=path)
    return CsvSource(path=path, separator=separator)
