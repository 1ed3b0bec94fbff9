#!/usr/bin/env python3
"""What insights cost: instructions of a point get and of an insert, with insights on and off, as callgrind counts them.

    cargo build --release -p larimar
    benches/insights/run.py [--requests 1000] [--partitions 1000] [--binary target/release/larimar]

Two runs of different length are compared for each figure, so that the start of the server does not count. Needs valgrind.
"""

import argparse
import base64
import datetime
import hashlib
import hmac
import http.client
import pathlib
import re
import signal
import subprocess
import tempfile

ACCOUNT = "devstoreaccount1"
KEY = base64.b64decode("Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==")
ROOT = pathlib.Path(__file__).resolve().parents[2]


def request(connection, method, path, body=None):
    """Sends a signed request and returns the status."""
    date = datetime.datetime.now(datetime.timezone.utc).strftime("%a, %d %b %Y %H:%M:%S GMT")
    text = f"{date}\n/{ACCOUNT}{path}"
    signature = base64.b64encode(hmac.new(KEY, text.encode(), hashlib.sha256).digest()).decode()
    headers = {
        "x-ms-date": date,
        "x-ms-version": "2019-02-02",
        "Authorization": f"SharedKeyLite {ACCOUNT}:{signature}",
        "Accept": "application/json;odata=nometadata",
        "Content-Type": "application/json",
        "Prefer": "return-no-content",
    }
    connection.request(method, path, body, headers)
    response = connection.getresponse()
    response.read()
    return response.status


def entity(number, partitions):
    """The body of an entity with five properties, and its path."""
    partition, row = f"partition-{number % partitions:06}", f"row-{number:08}"
    body = f'{{"PartitionKey":"{partition}","RowKey":"{row}","Name":"name {number}","City":"Oslo","Age":{number % 90},"A":1.5,"B":true}}'
    return body, f"/{ACCOUNT}/bench(PartitionKey='{partition}',RowKey='{row}')"


def instructions(binary, kind, insights, requests, partitions):
    """Instructions of a server that has so many gets, or inserts, besides a fixed number of others."""
    with tempfile.TemporaryDirectory() as directory:
        out = f"{directory}/callgrind"
        command = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={out}", str(binary)]
        command += ["serve", "--durability=memory", "--data-dir", f"{directory}/data", f"--insights={insights}"]
        command += ["--queue=false", "--blob=false", "--admin=false", "--table-port=0", "--log-level=warn"]
        server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        try:
            port = next(int(found[1]) for line in server.stdout if (found := re.search(r"http://127\.0\.0\.1:(\d+)", line)))
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
            assert request(connection, "POST", f"/{ACCOUNT}/Tables", '{"TableName":"bench"}') == 204
            # More partitions than insights track.
            known = 1000
            for number in range(known):
                assert request(connection, "POST", f"/{ACCOUNT}/bench", entity(number, partitions)[0]) == 204
            for number in range(requests):
                if kind == "get":
                    status = request(connection, "GET", entity(number * 7 % known, partitions)[1])
                else:
                    status = request(connection, "POST", f"/{ACCOUNT}/bench", entity(known + number, partitions)[0])
                assert status in (200, 204), status
            connection.close()
        finally:
            server.send_signal(signal.SIGTERM)
            output = server.stdout.read()
            server.wait()
        return int(re.search(r"Collected : (\d+)", output)[1])


def per_request(binary, kind, insights, requests, partitions):
    more, fewer = (instructions(binary, kind, insights, count, partitions) for count in (requests * 3, requests))
    return (more - fewer) / (requests * 2)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=1000)
    parser.add_argument("--partitions", type=int, default=1000)
    parser.add_argument("--binary", type=pathlib.Path, default=ROOT / "target/release/larimar")
    parser.add_argument("--kinds", nargs="+", choices=("get", "insert"), default=("get", "insert"))
    options = parser.parse_args()
    for kind in options.kinds:
        off, on = (
            per_request(options.binary, kind, insights, options.requests, options.partitions)
            for insights in ("false", "true")
        )
        print(f"{kind}: {off:,.0f} instructions without insights, {on:,.0f} with them: {(on / off - 1) * 100:+.2f} %", flush=True)


if __name__ == "__main__":
    main()
