"""Import, export, count and clear of one table by `larimar`, beside a straightforward script with the Python SDK that does
the same on the same server in the same run. Prints a table in Markdown for docs/bench.md.

    cargo build --release
    tests/sdk/python/.venv/bin/python benches/data/run.py --rows 1000000 --sdk-rows 50000

The environment is that of `cargo xtask sdk python` (any with azure-data-tables will do). The SDK does fewer rows, since it
would take an hour; rates are compared. The server is started here, with its default settings, in a temporary directory.
"""

import argparse
import csv
import itertools
import os
import re
import subprocess
import tempfile
import time
from pathlib import Path

from azure.data.tables import TableServiceClient

REPOSITORY = Path(__file__).resolve().parent.parent.parent


def rows(count, per_partition):
    """Rows of about 100 bytes: keys, a number, a text, a fraction, a time."""
    for row in range(count):
        yield {
            "PartitionKey": f"part{row // per_partition:07}",
            "RowKey": f"{row:09}",
            "Amount": row * 7 % 10_000,
            "Customer": f"customer {row % 977}",
            "Price": row % 1000 + 0.25,
            "Ordered": f"2024-{row % 12 + 1:02}-{row % 28 + 1:02}T10:20:30Z",
        }


def write_csv(path, count, per_partition):
    with open(path, "w", newline="") as file:
        writer = csv.DictWriter(file, fieldnames=list(next(rows(1, 1))))
        writer.writeheader()
        writer.writerows(rows(count, per_partition))


class Server:
    """The server, on free ports, in a folder of its own."""

    def __init__(self, binary, folder):
        arguments = ["serve", "--data-dir", str(folder / "data"), "--table-port", "0", "--queue-port", "0", "--blob-port", "0",
                     "--admin-port", "0"]
        self.process = subprocess.Popen([binary, *arguments], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                        text=True)
        self.connection_string = None
        for line in self.process.stdout:
            if found := re.search(r"DefaultEndpointsProtocol=\S+", line):
                self.connection_string = found.group(0)
                break
        assert self.connection_string, "the server did not start"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()


def timed(work):
    started = time.monotonic()
    work()
    return time.monotonic() - started


def sdk_import(client, name, path):
    """What one writes first: a row at a time, in transactions of 100 as long as the partition is the same."""
    table = client.create_table_if_not_exists(name)
    with open(path, newline="") as file:
        for _, group in itertools.groupby(csv.DictReader(file), key=lambda row: row["PartitionKey"]):
            while batch := list(itertools.islice(group, 100)):
                for row in batch:
                    row["Amount"], row["Price"] = int(row["Amount"]), float(row["Price"])
                table.submit_transaction([("upsert", row) for row in batch])


def sdk_export(client, name, path):
    with open(path, "w", newline="") as file:
        writer = None
        for entity in client.get_table_client(name).list_entities():
            if writer is None:
                writer = csv.DictWriter(file, fieldnames=list(entity))
                writer.writeheader()
            writer.writerow(entity)


def sdk_count(client, name):
    return sum(1 for _ in client.get_table_client(name).list_entities(select=["PartitionKey"]))


def sdk_clear(client, name):
    table = client.get_table_client(name)
    keys = table.list_entities(select=["PartitionKey", "RowKey"])
    for _, group in itertools.groupby(keys, key=lambda row: row["PartitionKey"]):
        while batch := list(itertools.islice(group, 100)):
            table.submit_transaction([("delete", row) for row in batch])


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--larimar", default=str(REPOSITORY / "target/release/larimar"))
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--sdk-rows", type=int, default=10_000)
    parser.add_argument("--per-partition", type=int, default=1000)
    options = parser.parse_args()

    def larimar(*arguments):
        command = [options.larimar, *arguments, "--connection-string", server.connection_string]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        large, small, single = folder / "large.csv", folder / "small.csv", folder / "single.csv"
        write_csv(large, options.rows, options.per_partition)
        write_csv(small, options.sdk_rows, options.per_partition)
        write_csv(single, min(options.rows, 100_000), 1)
        with Server(options.larimar, folder) as server:
            client = TableServiceClient.from_connection_string(server.connection_string)
            parquet, text = str(folder / "large.parquet"), str(folder / "large.out.csv")
            ours = {
                "import of CSV": timed(lambda: larimar("import", "Large", str(large), "--mode", "replace")),
                "export to Parquet": timed(lambda: larimar("export", "Large", "--to", parquet)),
                "export to CSV": timed(lambda: larimar("export", "Large", "--to", text)),
                "count": timed(lambda: larimar("table", "count", "Large")),
                "clear": timed(lambda: larimar("table", "clear", "Large", "--yes")),
            }
            alone = timed(lambda: larimar("import", "Single", str(single), "--mode", "replace"))
            theirs = {
                "import of CSV": timed(lambda: sdk_import(client, "Small", small)),
                "export to CSV": timed(lambda: sdk_export(client, "Small", folder / "small.out.csv")),
                "count": timed(lambda: sdk_count(client, "Small")),
                "clear": timed(lambda: sdk_clear(client, "Small")),
            }
        print(f"{options.rows:,} rows, {options.per_partition:,} for each partition; Python SDK: {options.sdk_rows:,} rows; "
              f"{os.cpu_count()} cores for client and server.\n")
        print("| | larimar, rows/s | Python SDK, rows/s | ratio |\n|---|---:|---:|---:|")
        for name, seconds in ours.items():
            rate = options.rows / seconds
            sdk = options.sdk_rows / theirs[name] if name in theirs else None
            print(f"| {name} | {rate:,.0f} | {f'{sdk:,.0f}' if sdk else ''} | {f'{rate / sdk:.1f}' if sdk else ''} |")
        print(f"| import of partitions of one row | {min(options.rows, 100_000) / alone:,.0f} | | |")


if __name__ == "__main__":
    main()
