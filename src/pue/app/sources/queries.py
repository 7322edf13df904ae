"""SQL by a query through DuckDB: `duckdb:///file.db?query=SELECT …`, its rows written as Parquet."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
from pyarrow import parquet

from pue.app.sources.copies import own_folder
from pue.app.sources.problems import first_line, near
from pue.app.sources.stored_table import BATCH
from pue.errors import InvalidInput, MissingData, require

DUCKDB = "duckdb://"
IN_MEMORY = ":memory:"
_PARTS = re.compile(r"duckdb://(?:/(?P<base>[^?]*))?\?query=(?P<query>.*\S.*)", re.DOTALL)


def rows_of_query(address: str) -> Path:
    """A Parquet file of the rows that a query finds, in their order; the data base is opened to be read only."""
    base, query = parts(address)
    require("sql")
    import duckdb

    if base != IN_MEMORY and not Path(base).is_file():
        raise MissingData(f"there is no {base}. {near(Path(base))}")
    target = own_folder() / f"{'query' if base == IN_MEMORY else Path(base).stem}.parquet"
    try:
        with duckdb.connect(base, read_only=base != IN_MEMORY) as connection:
            _write(connection.sql(query), target)
    except (duckdb.Error, pa.ArrowException) as error:
        raise InvalidInput(
            f"DuckDB could not do {query!r} ({first_line(error)}). Try the query in DuckDB's own shell; it must give "
            "the rows of a table."
        ) from error
    return target


def parts(address: str) -> tuple[str, str]:
    """The data base, as SQLAlchemy writes it (three slashes before a relative path, four before an absolute one, none
    after the scheme for no file at all), and the query, as it is or percent-encoded.

    >>> parts("duckdb:///claims.db?query=SELECT * FROM claims WHERE kind LIKE '%20'")
    ('claims.db', "SELECT * FROM claims WHERE kind LIKE '%20'")
    >>> parts("duckdb://?query=FROM%20'rows.csv'")
    (':memory:', "FROM 'rows.csv'")
    """
    found = _PARTS.fullmatch(address)
    if found is None:
        raise InvalidInput(
            f'{address} is no address of a query. Write "duckdb:///file.db?query=SELECT * FROM rows", in quotes; an '
            'absolute path has four slashes, and "duckdb://?query=…" needs no data base.'
        )
    query = found["query"]
    encoded = not any(character.isspace() for character in query.strip())
    return unquote(found["base"] or "") or IN_MEMORY, unquote(query) if encoded else query


def _write(found: Any, target: Path) -> None:
    """Rows pass by in batches; a statement that is no query finds nothing, not even no rows."""
    if found is None:
        raise pa.ArrowInvalid("it gives no rows")
    reader = found.to_arrow_reader(BATCH)
    with parquet.ParquetWriter(target, reader.schema) as writer:
        for batch in reader:
            writer.write_batch(batch)
