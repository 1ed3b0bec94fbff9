#!/usr/bin/env python3
"""What insights cost: instructions of a point get and of an insert, with insights on and off, as callgrind counts them.

    cargo build --release -p larimar
    benches/insights/run.py [--requests 1000] [--rounds 3] [--partitions 1000] [--binary target/release/larimar]

Two runs of different length are compared for each figure, so that the start of the server does not count; the median of some
rounds is printed. How often the thread that commits is woken up differs from run to run, by some percent of an insert, so the
share of all instructions that were executed in the code of insights itself is printed as well. Needs valgrind.
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
import statistics
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
    """Instructions of a server with so many gets, or inserts, besides a fixed number of others: all; and of them those that count
    for insights, and those that store."""
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
        return int(re.search(r"Collected : (\d+)", output)[1]), *own_instructions(out)


def own_instructions(profile):
    """Instructions in what a request reports to the insights, and in storing them, with everything that these call."""
    annotate = ["callgrind_annotate", "--inclusive=yes", "--threshold=100", profile]
    lines = subprocess.run(annotate, stdout=subprocess.PIPE, text=True, check=True).stdout.splitlines()

    def sum_of(function):
        entry = re.compile(rf"^\s*([\d,]+) .*{function} ")
        return sum(int(found[1].replace(",", "")) for line in lines if (found := entry.match(line)))

    return sum_of(r">::observe_(?:get|write)"), sum_of(r"InsightsWriter<\w+>::run::\{\{closure\}\}")


def per_request(binary, kind, insights, requests, partitions):
    """The same for one request."""
    more, fewer = (instructions(binary, kind, insights, count, partitions) for count in (requests * 3, requests))
    return [(one - other) / (requests * 2) for one, other in zip(more, fewer)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--partitions", type=int, default=1000)
    parser.add_argument("--binary", type=pathlib.Path, default=ROOT / "target/release/larimar")
    parser.add_argument("--kinds", nargs="+", choices=("get", "insert"), default=("get", "insert"))
    options = parser.parse_args()
    for kind in options.kinds:
        measured = {"false": [], "true": []}
        for _ in range(options.rounds):
            for insights, figures in measured.items():
                figures.append(per_request(options.binary, kind, insights, options.requests, options.partitions))
        off, on = (statistics.median(figure[0] for figure in figures) for figures in measured.values())
        counting, storing = (statistics.median(figure[part] for figure in measured["true"]) for part in (1, 2))
        print(f"{kind}: {off:,.0f} instructions without insights, {on:,.0f} with them: {(on / off - 1) * 100:+.2f} %")
        shares = f"{counting / off * 100:.2f} % and {storing / off * 100:.2f} %"
        print(f"{kind}: {counting:,.0f} of them to count, {storing:,.0f} to store the minutes of the run: {shares}", flush=True)


if __name__ == "__main__":
    main()
