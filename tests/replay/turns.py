#!/usr/bin/env python3
"""Replay recordings over several Larimar servers that share one PostgreSQL, request by request in turns.

Clients behind a load balancer must not be able to tell several servers from one: a recording whose requests go to the
servers in turns must be answered as by one server alone. This runs both and compares them. Reads go to all servers, so
that each of them has something to remember when another one changes it; the last answer is compared.

    tests/replay/turns.py --larimar target/debug/larimar --recordings FOLDER_OR_ARCHIVE \\
        [--servers 2] [--service queue] [--filter Lease] [--report target/turns.json]

The recordings are not part of the repository. Without them there is nothing to run, and the script says so and ends
well. PostgreSQL's programs must be installed (initdb and postgres, on PATH or in /usr/lib/postgresql).
"""
import argparse
import collections
import json
import os
import pathlib
import shutil
import sys
import tempfile
import time

import replay
from server import Database, Server


def is_read(request):
    """Whether a request changes nothing: to get messages hides them."""
    path, _, query = request.target.partition("?")
    return request.method in ("GET", "HEAD") and (not path.endswith("/messages") or "peekonly" in query)


class InTurns:
    """Servers over one database and one directory of bytes; each request goes to the next of them."""

    def __init__(self, database_url, accounts, program, count):
        self.servers, self.turn = [], 0
        self.folder = tempfile.mkdtemp(prefix="replay-turns-")
        for _ in range(count):
            server = Server()
            server.start(program, accounts, database_url, f"file://{self.folder}")
            self.servers.append(server)

    def send(self, service, request):
        self.turn += 1
        count = len(self.servers)
        if is_read(request):
            # All servers remember what they are asked for, before another of them changes it.
            for other in range(1, count):
                self.servers[(self.turn + other) % count].send(service, request)
        return self.servers[self.turn % count].send(service, request)

    def stop(self, verbose):
        for number, server in enumerate(self.servers):
            text = server.log()
            if verbose and text:
                print(f"server {number} of {len(self.servers)} logged:\n{text[:2000]}")
            server.stop()
        shutil.rmtree(self.folder, ignore_errors=True)


def run(recordings, accounts, database, options, count):
    servers = InTurns(database.fresh_url(), accounts, options.larimar, count)
    try:
        return replay.replay_all(recordings, servers, options, replay.Accepted(options.accepted))
    finally:
        servers.stop(options.verbose)


def differences(results):
    """Each difference to the recordings, by place: recording, exchange and class."""
    return {(item["file"], item["exchange"], item["class"]): item for result in results for item in result.differences}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    replay.add_common_options(parser)
    parser.add_argument("--servers", type=int, default=2, help="servers that take turns")
    options = parser.parse_args()
    if not os.path.exists(options.recordings):
        print("skipped: no recordings on this machine")
        return 0
    recordings, accounts = replay.load_all(options)
    database = Database()
    try:
        outcomes = {}
        for count in (1, options.servers):
            started = time.monotonic()
            outcomes[count] = run(recordings, accounts, database, options, count)
            print(f"{count} server(s): {time.monotonic() - started:.0f} s", flush=True)
    finally:
        database.stop()
    return report(outcomes, options)


def report(outcomes, options):
    counts = {}
    for count, results in outcomes.items():
        for result in results:
            sums = counts.setdefault(result.suite, {}).setdefault(count, collections.Counter())
            sums["replayed"] += result.replayed
            sums["identical"] += result.identical
    print(f"\n{'suite':48}" + "".join(f"{f'replayed, {count}':>14}{f'identical, {count}':>15}" for count in outcomes))
    for suite, sums in counts.items():
        print(f"{suite:48}" + "".join(f"{sums[n]['replayed']:>14}{sums[n]['identical']:>15}" for n in outcomes))
    one, several = (differences(outcomes[count]) for count in (1, options.servers))
    only = {"only one server": sorted(one.keys() - several.keys()),
            f"only {options.servers} servers": sorted(several.keys() - one.keys())}
    for name, found in only.items():
        print(f"\nDifferences of {name}: {len(found)}")
        for file, exchange, kind in found[:40]:
            item = (one if name == "only one server" else several)[(file, exchange, kind)]
            print(f"  {pathlib.Path(file).name} #{exchange}: {kind}\n      {item['request'][:120]}\n"
                  f"      expected {str(item['expected'])[:160]}\n      got      {str(item['got'])[:160]}")
    if options.report:
        places = {name: [list(place) for place in found] for name, found in only.items()}
        pathlib.Path(options.report).write_text(json.dumps({"counts": counts, "differences": places}, indent=1))
    return 1 if any(only.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
