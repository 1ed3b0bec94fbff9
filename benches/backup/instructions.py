"""What archiving costs for each insert, in instructions: `larimar serve` under callgrind with and without `--archive`.
Prints a table in Markdown for docs/bench.md.

    cargo build --release
    python3 benches/backup/instructions.py

One connection inserts entities of about 500 bytes, one after the other, with a SAS; counted is from the end of a warm-up until
the last insert is archived. callgrind counts all threads of the process outside of the kernel. It slows the server down, and what
the archive does every second is then done for fewer inserts: the figure is higher than that of a server at full speed.
"""

import argparse
import http.client
import re
import statistics
import subprocess
import tempfile
import time
import urllib.parse
from pathlib import Path

from run import REPOSITORY, Server


class Inserts:
    """A connection that inserts entities, one after the other."""

    def __init__(self, server):
        endpoint = urllib.parse.urlsplit(server.fields["TableEndpoint"])
        self.connection, self.path, self.sas = http.client.HTTPConnection(endpoint.netloc), endpoint.path.rstrip("/"), server.sas()
        self.rows = 0
        self.post("Tables", '{"TableName":"Rows"}')

    def post(self, target, body):
        headers = {"Accept": "application/json;odata=nometadata", "Content-Type": "application/json", "Prefer": "return-no-content"}
        self.connection.request("POST", f"{self.path}/{target}?{self.sas}", body, headers)
        answer = self.connection.getresponse()
        answer.read()
        assert answer.status == 204, answer.status

    def insert(self, count):
        for _ in range(count):
            row = self.rows
            text = f"{row * 2654435761 % (1 << 32):08x}" * 50
            self.post("Rows", f'{{"PartitionKey":"p","RowKey":"{row:09}","Number":{row},"Price":{row}.5,"Active":true,"Text":"{text}"}}')
            self.rows += 1


def per_insert(options, is_archived):
    """Instructions for each insert, and inserts in a second."""
    with tempfile.TemporaryDirectory(dir=options.work_dir) as temporary:
        folder = Path(temporary)
        under = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={folder}/counts", f"--log-file={folder}/log"]
        arguments = ["--archive", str(folder / "place")] if is_archived else []
        with Server(options.larimar, folder / "server", *arguments, under=under) as server:
            while is_archived and server.metric("larimar_archive_restorable") != 1:
                time.sleep(1)
            inserts = Inserts(server)
            inserts.insert(options.warm_up)
            # The last segment is due after a second.
            time.sleep(3)
            control(server, "zero")
            started = time.monotonic()
            inserts.insert(options.inserts)
            rate = options.inserts / (time.monotonic() - started)
            time.sleep(3)
            control(server, "dump")
            if is_archived:
                assert server.metric("larimar_archive_spool_bytes") == 0 and server.metric("larimar_archive_gaps_total") == 0
        total = int(re.search(r"^totals: (\d+)", (folder / "counts.1").read_text(), re.MULTILINE).group(1))
    return total / options.inserts, rate


def control(server, command):
    subprocess.run(["vgdb", f"--pid={server.process.pid}", command], check=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--larimar", default=str(REPOSITORY / "target/release/larimar"))
    parser.add_argument("--warm-up", type=int, default=2_000, help="inserts that are not counted")
    parser.add_argument("--inserts", type=int, default=4_000, help="inserts that are counted")
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--work-dir", help="where the servers and archives are")
    options = parser.parse_args()
    print("| | instructions for an insert, without | with `--archive` | ratio |\n|---|---:|---:|---:|")
    found = []
    for repetition in range(1, options.repetitions + 1):
        (without, rate), (archived, rate_archived) = per_insert(options, False), per_insert(options, True)
        found.append((archived / without, without, archived))
        print(f"| run {repetition} ({rate:.0f} and {rate_archived:.0f} inserts/s under callgrind) | {without:,.0f} | {archived:,.0f} "
              f"| {archived / without:.3f} |", flush=True)
    ratio, without, archived = statistics.median_low(found)
    print(f"| median | {without:,.0f} | {archived:,.0f} | {ratio:.3f} |")


if __name__ == "__main__":
    main()
