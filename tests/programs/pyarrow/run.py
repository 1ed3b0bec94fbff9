"""pyarrow's AzureFileSystem against a running server: files of every size, folders, listings, copies, ranges, and a
partitioned Parquet dataset, each read back and compared; a Parquet file of `larimar export`, type by type; and files for
`larimar import` in every compression.

LARIMAR_BLOB_ENDPOINT, LARIMAR_ACCOUNT and LARIMAR_KEY name the server.
"""

import os
import random
import subprocess
import sys
import tempfile
import uuid
from pathlib import Path
from urllib.parse import urlsplit

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from pyarrow import fs

sys.path.append(str(Path(__file__).parent.parent))
import exported

MIB = 1024 * 1024
SIZES = {"empty": 0, "one byte": 1, "a/b/c/deep.bin": 1000, "names/Grüße & 世界 %20+.bin": 10, "large.bin": 20 * MIB + 17}


def connect():
    authority = urlsplit(os.environ["LARIMAR_BLOB_ENDPOINT"]).netloc
    return fs.AzureFileSystem(
        account_name=os.environ["LARIMAR_ACCOUNT"],
        account_key=os.environ["LARIMAR_KEY"],
        blob_storage_authority=authority,
        blob_storage_scheme="http",
        dfs_storage_authority=authority,
        dfs_storage_scheme="http",
    )


def files(azure, container):
    contents = {name: random.Random(name).randbytes(size) for name, size in SIZES.items()}
    for name, data in contents.items():
        with azure.open_output_stream(f"{container}/{name}", metadata={"Content-Type": "application/x-test"}) as out:
            for start in range(0, len(data), 3 * MIB):
                out.write(data[start : start + 3 * MIB])
    for name, data in contents.items():
        with azure.open_input_stream(f"{container}/{name}") as source:
            assert source.read() == data, name
            assert source.metadata()["Content-Type"] == b"application/x-test", source.metadata()
    with azure.open_input_file(f"{container}/large.bin") as source:
        assert source.size() == SIZES["large.bin"]
        for offset, length in [(0, 10), (5 * MIB - 3, 2 * MIB), (20 * MIB, 100)]:
            assert source.read_at(length, offset) == contents["large.bin"][offset : offset + length], offset

    listed = azure.get_file_info(fs.FileSelector(container, recursive=True))
    found = {info.path.removeprefix(f"{container}/"): info.size for info in listed if info.type == fs.FileType.File}
    assert found == SIZES, found
    [top] = [info for info in azure.get_file_info(fs.FileSelector(container)) if info.base_name == "a"]
    assert top.type == fs.FileType.Directory
    azure.copy_file(f"{container}/large.bin", f"{container}/copy.bin")
    with azure.open_input_stream(f"{container}/copy.bin") as source:
        assert source.read() == contents["large.bin"]
    azure.delete_file(f"{container}/copy.bin")
    azure.delete_dir(f"{container}/a")
    for gone in ("copy.bin", "a/b/c/deep.bin"):
        assert azure.get_file_info(f"{container}/{gone}").type == fs.FileType.NotFound, gone
    try:
        azure.open_input_stream(f"{container}/nothing")
    except FileNotFoundError:
        pass
    else:
        raise AssertionError("a file that is not there was opened")


def dataset(azure, container):
    numbers = list(range(100_000))
    table = pa.table({"part": [n % 7 for n in numbers], "n": numbers, "text": [f"row {n}" for n in numbers]})
    ds.write_dataset(
        table, f"{container}/dataset", filesystem=azure, format="parquet", partitioning=["part"], max_rows_per_group=5000
    )
    found = ds.dataset(f"{container}/dataset", filesystem=azure, partitioning=["part"])
    assert len(found.files) == 7, found.files
    read = found.to_table(columns=["part", "n", "text"]).sort_by("n")
    assert read.to_pydict() == table.to_pydict(), f"{read.num_rows} rows"
    some = found.to_table(filter=(ds.field("part") == 3) & (ds.field("n") < 1000))
    assert sorted(some["n"].to_pylist()) == [n for n in range(1000) if n % 7 == 3]
    pq.write_table(table, f"{container}/one.parquet", filesystem=azure)
    assert pq.read_table(f"{container}/one.parquet", filesystem=azure).equals(table)


def exported_table():
    table = pq.read_table(exported.export("Pyarrow"))
    micros = pa.timestamp("us", tz="UTC")
    types = {
        "PartitionKey": pa.string(), "RowKey": pa.string(), "Timestamp": pa.timestamp("ns", tz="UTC"), "Binary": pa.binary(),
        "Day": micros, "Double": pa.float64(), "Far": micros, "Far@ticks": pa.int32(), "Flag": pa.bool_(),
        "Long": pa.int64(), "Mixed@String": pa.string(), "Mixed@Int32": pa.int32(), "Number": pa.int32(),
        "Text": pa.string(),
    }
    found = {field.name: field.type for field in table.schema}
    guid = found.pop("Guid")
    assert guid in (pa.uuid(), pa.binary(16)), guid
    assert found == types, found
    assert table.num_rows == exported.ROWS
    rows = table.drop_columns(["Timestamp", "Guid"]).to_pylist()
    assert [row["Number"] for row in rows] == list(range(exported.ROWS))
    first, second, third = rows[:3]
    assert (first["Day"], first["Far"], first["Far@ticks"]) == (exported.DAY, exported.LAST, 9), first
    assert (second["Far"], second["Far@ticks"], second["Text"]) == (exported.FIRST, 0, ""), second
    assert (first["Long"], first["Binary"], first["Double"], first["Flag"]) == (2**62, exported.BINARY, 0.5, True), first
    assert (first["Mixed@Int32"], second["Mixed@String"], second["Mixed@Int32"]) == (0, "text", None)
    assert [name for name, value in third.items() if value is not None] == ["PartitionKey", "RowKey", "Number"], third
    guids = table["Guid"].to_pylist()
    assert guids[0] in (exported.GUID, exported.GUID.bytes) and guids[2] is None, guids[0]


def imported_files():
    schema = pa.schema([("PartitionKey", pa.string()), ("RowKey", pa.string()), ("s", pa.string()), ("n", pa.int32())])
    table = pa.Table.from_pylist(exported.SMALL_ROWS, schema)
    folder = Path(tempfile.mkdtemp())
    for number, codec in enumerate(["none", "snappy", "zstd", "gzip", "lz4"]):
        path = folder / f"{codec}.parquet"
        # Dictionaries and the pages of the second version in some files.
        pq.write_table(table, path, compression=codec, use_dictionary=number % 2 == 0, data_page_version="12"[number % 2] + ".0")
        exported.check_import(f"Pyarrow{codec}", path)
    path = folder / "brotli.parquet"
    pq.write_table(table, path, compression="brotli")
    try:
        exported.larimar("import", "Pyarrowbrotli", str(path), stderr=subprocess.PIPE)
    except subprocess.CalledProcessError as refused:
        assert "expected Snappy, zstd, gzip" in refused.stderr, refused.stderr
    else:
        raise AssertionError("a file that cannot be read was imported")


def main():
    exported_table()
    imported_files()
    azure = connect()
    container = "pyarrow" + uuid.uuid4().hex[:12]
    azure.create_dir(container)
    files(azure, container)
    dataset(azure, container)
    azure.delete_dir(container)
    assert azure.get_file_info(container).type == fs.FileType.NotFound
    print(f"result: pyarrow {pa.__version__}: files, folders and a partitioned Parquet dataset with AzureFileSystem, Parquet of `larimar export` and for `larimar import`")


if __name__ == "__main__":
    main()
