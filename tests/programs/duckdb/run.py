"""DuckDB's azure extension against a running server: tables written to blobs as Parquet and CSV, read back by name and by
pattern, and compared row by row; a Parquet file of `larimar export`, type by type; and one for `larimar import`.

LARIMAR_CONNECTION_STRING names the server. The extension comes with its package; DuckDB downloads nothing.
"""

import os
import sys
import tempfile
import uuid
from pathlib import Path

import duckdb
import duckdb_extension_azure
from azure.storage.blob import BlobServiceClient

sys.path.append(str(Path(__file__).parent.parent))
import exported

ROWS = 200_000


def connect():
    [extension] = Path(next(iter(duckdb_extension_azure.__path__))).rglob("azure.duckdb_extension")
    settings = {"autoinstall_known_extensions": False, "autoload_known_extensions": False}
    connection = duckdb.connect(config=settings)
    connection.execute(f"LOAD '{extension}'")
    secret = os.environ["LARIMAR_CONNECTION_STRING"]
    connection.execute(f"CREATE SECRET (TYPE azure, CONNECTION_STRING '{secret}')")
    return connection


def exported_table():
    path = exported.export("Duckdb")
    duck = duckdb.connect()
    duck.execute("SET TimeZone = 'UTC'")
    found = {name: kind for name, kind, *_ in duck.sql(f"DESCRIBE SELECT * FROM '{path}'").fetchall()}
    assert found.pop("Timestamp").startswith("TIMESTAMP"), found
    zoned = "TIMESTAMP WITH TIME ZONE"
    assert found == {
        "PartitionKey": "VARCHAR", "RowKey": "VARCHAR", "Binary": "BLOB", "Day": zoned, "Double": "DOUBLE", "Far": zoned,
        "Far@ticks": "INTEGER", "Flag": "BOOLEAN", "Guid": "UUID", "Long": "BIGINT", "Mixed@String": "VARCHAR",
        "Mixed@Int32": "INTEGER", "Number": "INTEGER", "Text": "VARCHAR",
    }, found
    assert duck.sql(f"SELECT count(*), sum(Number) FROM '{path}'").fetchone() == (
        exported.ROWS, exported.ROWS * (exported.ROWS - 1) // 2)
    # As text, since the values come without a package for time zones.
    first, second = duck.sql(
        f"""SELECT epoch_us(Day), epoch_us(Far), "Far@ticks", Guid, "Binary", Long, Text FROM '{path}' ORDER BY Number LIMIT 2"""
    ).fetchall()
    assert first[0] == 1709209815123456 and first[2:] == (9, exported.GUID, exported.BINARY, 2**62, "Grüße, 世界"), first
    assert first[1] == 253402300799999999 and second[1] == -11644473600000000 and second[6] == "", (first, second)


def imported_file():
    path = Path(tempfile.mkdtemp()) / "zstd.parquet"
    duck = duckdb.connect()
    duck.execute("CREATE TABLE small (PartitionKey VARCHAR, RowKey VARCHAR, s VARCHAR, n INTEGER)")
    for row in exported.SMALL_ROWS:
        duck.execute("INSERT INTO small VALUES (?, ?, ?, ?)", list(row.values()))
    duck.execute(f"COPY small TO '{path}' (FORMAT parquet, COMPRESSION zstd)")
    exported.check_import("Duckdbzstd", path)


def main():
    exported_table()
    imported_file()
    container = "duckdb" + uuid.uuid4().hex[:12]
    client = BlobServiceClient.from_connection_string(os.environ["LARIMAR_CONNECTION_STRING"]).create_container(container)
    duck = connect()

    def rows(query):
        return duck.sql(query).fetchall()

    duck.execute(
        f"CREATE TABLE source AS SELECT range AS n, range % 5 AS part, 'Grüße ' || range AS text FROM range({ROWS})"
    )
    wanted = rows("SELECT * FROM source ORDER BY n")
    for name in ("one.parquet", "folder/two words.csv"):
        duck.execute(f"COPY source TO 'az://{container}/{name}'")
        found = rows(f"SELECT n, part, text FROM 'az://{container}/{name}' ORDER BY n")
        assert found == wanted, f"{name}: {len(found)} rows"
    # Only some row groups are read: ranges of the blob.
    assert rows(f"SELECT sum(n) FROM 'az://{container}/one.parquet' WHERE n BETWEEN 1000 AND 1009") == [(10045,)]

    for part in range(5):
        duck.execute(f"COPY (FROM source WHERE part = {part}) TO 'az://{container}/parts/{part}.parquet'")
    found = rows(f"SELECT filename, count(*) FROM read_parquet('az://{container}/parts/*.parquet', filename = true) "
                 "GROUP BY ALL ORDER BY ALL")
    assert [count for _, count in found] == [ROWS // 5] * 5, found
    assert rows(f"SELECT n, part, text FROM 'az://{container}/parts/*.parquet' ORDER BY n") == wanted
    names = sorted(blob.name for blob in client.list_blobs())
    assert names == sorted(["one.parquet", "folder/two words.csv", *(f"parts/{part}.parquet" for part in range(5))])
    try:
        rows(f"FROM 'az://{container}/missing.parquet'")
    except duckdb.Error as error:
        assert "missing.parquet" in str(error), error
    else:
        raise AssertionError("a blob that is not there was read")
    client.delete_container()
    print(f"result: DuckDB {duckdb.__version__}: Parquet and CSV written and read with the azure extension, Parquet of `larimar export` and for `larimar import`")


if __name__ == "__main__":
    main()
