"""Backup and restore of a store by `larimar`, beside `cp -r` with sync of the same data directory in the same run; how a
backup with the default rate slows requests down; and how long a restore to a moment takes. Prints a table in Markdown for
docs/bench.md.

    cargo build --release
    python3 benches/backup/run.py --rows 1000000 --blobs 64

The servers are started here, with their default settings, in a temporary directory; `--work-dir` chooses the disk.
"""

import argparse
import base64
import hashlib
import hmac
import http.client
import os
import re
import shutil
import subprocess
import tempfile
import threading
import time
import urllib.parse
from datetime import datetime, timedelta, timezone
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent.parent


class Server:
    """The server, on free ports, in a folder of its own."""

    def __init__(self, binary, folder, *arguments, under=()):
        self.binary, self.folder = binary, folder
        ports = [text for name in ("table", "queue", "blob", "admin") for text in (f"--{name}-port", "0")]
        folder.mkdir(exist_ok=True)
        command = [*under, binary, "serve", "--data-dir", str(folder / "data"), *ports, *arguments]
        self.process = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        text = ""
        for line in self.process.stdout:
            text += line
            if found := re.search(r"DefaultEndpointsProtocol=\S+", line):
                self.connection_string = found.group(0)
            if "/metrics" in line or "admin" in line and "http" in line:
                self.admin = re.search(r"http://([\d.]+):(\d+)", line).groups()
            if hasattr(self, "connection_string") and hasattr(self, "admin"):
                break
        assert hasattr(self, "admin"), f"the server did not start:\n{text}"
        # A full pipe would stop the server.
        threading.Thread(target=self.process.stdout.read, daemon=True).start()
        self.fields = dict(part.split("=", 1) for part in self.connection_string.split(";") if part)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()

    def run(self, *arguments):
        """A command for data."""
        command = [self.binary, *arguments, "--connection-string", self.connection_string]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)

    def operate(self, *arguments):
        """A command for the operator."""
        command = [self.binary, *arguments, "--data-dir", str(self.folder / "data"), "--admin-port", self.admin[1]]
        return subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True).stdout

    def metric(self, name):
        connection = http.client.HTTPConnection(*self.admin)
        connection.request("GET", "/metrics")
        page = connection.getresponse().read().decode()
        found = re.search(rf"^{name} (\S+)$", page, re.MULTILINE)
        return float(found.group(1)) if found else None


    def sas(self):
        account, key = self.fields["AccountName"], base64.b64decode(self.fields["AccountKey"])
        end = (datetime.now(timezone.utc) + timedelta(hours=6)).strftime("%Y-%m-%dT%H:%M:%SZ")
        text = "\n".join([account, "raudc", "t", "sco", "", end, "", "", "2019-02-02", ""])
        signature = base64.b64encode(hmac.new(key, text.encode(), hashlib.sha256).digest()).decode()
        return urllib.parse.urlencode({"sv": "2019-02-02", "ss": "t", "srt": "sco", "sp": "raudc", "se": end, "sig": signature})


class Foreground(threading.Thread):
    """Clients that insert and read single entities, and what each request took."""

    def __init__(self, server, clients):
        super().__init__()
        self.server, self.clients, self.seconds, self.is_over = server, clients, [], False

    def client(self, number):
        endpoint = urllib.parse.urlsplit(self.server.fields["TableEndpoint"])
        connection, sas, path = http.client.HTTPConnection(endpoint.netloc), self.server.sas(), endpoint.path.rstrip("/")
        headers = {"Accept": "application/json;odata=nometadata", "Content-Type": "application/json", "Prefer": "return-no-content"}
        row = 0
        while not self.is_over:
            key = f"{time.time_ns()}-{number}-{row}"
            body = f'{{"PartitionKey":"p{number}","RowKey":"{key}","Text":"{"x" * 500}"}}'
            for method, target, content in [
                ("POST", f"{path}/Foreground?{sas}", body),
                ("GET", f"{path}/Foreground(PartitionKey='p{number}',RowKey='{key}')?{sas}", None),
            ]:
                started = time.monotonic()
                connection.request(method, target, content, headers)
                answer = connection.getresponse()
                answer.read()
                self.seconds.append(time.monotonic() - started)
                assert answer.status in (200, 204), (method, answer.status)
            row += 1

    def run(self):
        threads = [threading.Thread(target=self.client, args=(number,)) for number in range(self.clients)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def p99(self):
        self.is_over = True
        self.join()
        return sorted(self.seconds)[len(self.seconds) * 99 // 100] * 1000


def timed(work):
    started = time.monotonic()
    work()
    return time.monotonic() - started


def copied(source, target):
    """`cp -r`, and every byte of the copy on disk."""
    subprocess.run(["cp", "-r", str(source), str(target)], check=True)
    subprocess.run(["sync", "--file-system", str(target)], check=True)


def forget_caches():
    """Best effort: only root may do it."""
    try:
        Path("/proc/sys/vm/drop_caches").write_text("1")
    except OSError:
        pass


def write_csv(path, count):
    with open(path, "w") as file:
        file.write("PartitionKey,RowKey,Amount,Customer,Price\n")
        for row in range(count):
            digest = hashlib.sha256(str(row).encode()).hexdigest()
            file.write(f"part{row // 1000:07},{row:09},{row * 7 % 10_000},{digest * 4},{row % 1000}.25\n")


def fill(server, options, folder):
    table = folder / "rows.csv"
    write_csv(table, options.rows)
    server.run("import", "Large", str(table), "--mode", "replace")
    table.unlink()
    if options.blobs:
        blob = folder / "blob"
        for number in range(options.blobs):
            blob.write_bytes(os.urandom(4 << 20))
            server.run("blob", "put", f"photos/{number:05}", str(blob), "--create")
    server.run("table", "create", "Foreground")


def backup_and_restore(options, folder):
    """Rates of backup, restore and cp -r, and the p99 of requests beside a backup."""
    place = folder / "place"
    with Server(options.larimar, folder / "server") as server:
        fill(server, options, folder)
        forget_caches()
        seconds = {"backup --rate max": timed(lambda: server.operate("backup", str(place), "--rate", "max"))}
        again = timed(lambda: server.operate("backup", str(place), "--rate", "max"))
        held = server.operate("backup", "status")
        alone, beside = Foreground(server, 4), Foreground(server, 4)
        alone.start()
        time.sleep(options.seconds)
        p99 = alone.p99()
        other = folder / "other"
        beside.start()
        gentle = timed(lambda: server.operate("backup", str(other)))
        p99_beside = beside.p99()
        shutil.rmtree(other)
    sizes = [float(size) * (1 << 20) if unit == "MiB" else float(size) for size, unit in re.findall(r"\(([\d.]+) (MiB|bytes)\)", held)]
    forget_caches()
    seconds["cp -r and sync"] = timed(lambda: copied(folder / "server/data", folder / "copy"))
    shutil.rmtree(folder / "copy")
    forget_caches()
    restore = [options.larimar, "restore", str(place), "--data", str(folder / "restored")]
    seconds["restore"] = timed(lambda: subprocess.run(restore, check=True, stdout=subprocess.DEVNULL))
    shutil.rmtree(folder / "restored")
    disk = sum(file.stat().st_blocks * 512 for file in (folder / "server/data").rglob("*") if file.is_file())
    return seconds, sum(sizes), disk, again, (p99, p99_beside, gentle)


def restore_to_a_moment(options, folder):
    """The time to restore a store whose rows are all in the archive."""
    place = folder / "archive"
    with Server(options.larimar, folder / "archived", "--archive", str(place)) as server:
        while server.metric("larimar_archive_restorable") != 1:
            time.sleep(0.2)
        table = folder / "rows.csv"
        write_csv(table, options.rows)
        server.run("import", "Large", str(table), "--mode", "replace")
        moment = datetime.now(timezone.utc)
        server.run("table", "create", "Later")
        while server.metric("larimar_archive_lag_seconds") or server.metric("larimar_archive_spool_bytes"):
            time.sleep(0.2)
    at = moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    restore = [options.larimar, "restore", str(place), "--data", str(folder / "moment"), "--to-time", at]
    return timed(lambda: subprocess.run(restore, check=True, stdout=subprocess.DEVNULL))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--larimar", default=str(REPOSITORY / "target/release/larimar"))
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--blobs", type=int, default=16, help="blobs of 4 MiB")
    parser.add_argument("--seconds", type=float, default=20, help="how long requests are measured without a backup")
    parser.add_argument("--work-dir", help="where the servers and backups are")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.work_dir) as temporary:
        folder = Path(temporary)
        seconds, size, disk, again, (p99, p99_beside, gentle) = backup_and_restore(options, folder)
        moment = restore_to_a_moment(options, folder)
    mib = 1 << 20
    print(f"{options.rows:,} entities and {options.blobs} blobs of 4 MiB: {size / mib:,.0f} MiB of rows and payloads, "
          f"{disk / mib:,.0f} MiB on disk; {os.cpu_count()} cores.\n")
    print("| | seconds | logical MiB/s | ratio to cp -r |\n|---|---:|---:|---:|")
    for name, taken in seconds.items():
        ratio = f"{seconds['cp -r and sync'] / taken:.2f}"
        print(f"| {name} | {taken:.1f} | {size / mib / taken:,.0f} | {ratio} |")
    print(f"| a second backup of the same store | {again:.1f} | | |")
    print(f"\nRequests of 4 clients (inserts and point gets): p99 {p99:.1f} ms without a backup, {p99_beside:.1f} ms beside one with the "
          f"default rate ({gentle:.0f} s): ratio {p99_beside / p99:.2f}.")
    print(f"\nRestore of {options.rows:,} entities to a moment, all of them from the archive: {moment:.1f} s "
          f"({options.rows / moment:,.0f} entities/s).")


if __name__ == "__main__":
    main()
