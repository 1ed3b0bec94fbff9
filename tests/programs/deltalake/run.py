"""deltalake against a running server: eight processes append to one table at the same time, each commit once and whole.

Every commit is a blob that may be created only once, so two writers that both succeed with one number lose data.
LARIMAR_BLOB_ENDPOINT, LARIMAR_ACCOUNT and LARIMAR_KEY name the server.
"""

import multiprocessing
import os
import uuid

import deltalake
import pyarrow as pa
from azure.storage.blob import BlobServiceClient
from deltalake import CommitProperties, DeltaTable, write_deltalake

WRITERS = 8
COMMITS = 5
ROWS = 100
# Every commit of one writer may lose against every commit of the others.
RETRIES = 10 * WRITERS * COMMITS


def options():
    return {
        "azure_storage_account_name": os.environ["LARIMAR_ACCOUNT"],
        "azure_storage_account_key": os.environ["LARIMAR_KEY"],
        "azure_storage_endpoint": os.environ["LARIMAR_BLOB_ENDPOINT"],
        "azure_storage_use_emulator": "false",
        "allow_http": "true",
    }


def rows(writer, commit):
    first = (writer * COMMITS + commit) * ROWS
    return pa.table({"writer": pa.array([writer] * ROWS), "n": pa.array(range(first, first + ROWS))})


def append(url, writer):
    for commit in range(COMMITS):
        properties = CommitProperties(max_commit_retries=RETRIES)
        write_deltalake(url, rows(writer, commit), mode="append", storage_options=options(), commit_properties=properties)


def main():
    connection = os.environ["LARIMAR_CONNECTION_STRING"]
    container = "delta" + uuid.uuid4().hex[:12]
    client = BlobServiceClient.from_connection_string(connection).create_container(container)
    url = f"az://{container}/table"
    write_deltalake(url, rows(0, 0).slice(0, 0), storage_options=options())

    context = multiprocessing.get_context("spawn")
    writers = [context.Process(target=append, args=(url, writer)) for writer in range(WRITERS)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert [writer.exitcode for writer in writers] == [0] * WRITERS

    table = DeltaTable(url, storage_options=options())
    commits = WRITERS * COMMITS
    assert table.version() == commits, table.version()
    assert sorted(entry["version"] for entry in table.history()) == list(range(commits + 1))
    found = table.to_pyarrow_table()
    assert sorted(found["n"].to_pylist()) == list(range(commits * ROWS)), found.num_rows
    logs = sorted(blob.name for blob in client.list_blobs("table/_delta_log/") if blob.name.endswith(".json"))
    assert logs == [f"table/_delta_log/{version:020}.json" for version in range(commits + 1)], logs

    table.delete("writer = 3")
    table.optimize.compact()
    table.vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False)
    found = DeltaTable(url, storage_options=options()).to_pyarrow_table()
    assert sorted(found["n"].to_pylist()) == [n for n in range(commits * ROWS) if n // (COMMITS * ROWS) != 3]
    client.delete_container()
    print(f"result: deltalake {deltalake.__version__}: {WRITERS} processes that append to one table, {commits} commits, none lost")


if __name__ == "__main__":
    main()
