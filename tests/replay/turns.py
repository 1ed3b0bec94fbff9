#!/usr/bin/env python3
"""Replay the recorded sessions over several Larimar servers that share one PostgreSQL, request by request in turns.

Clients behind a load balancer must not be able to tell several servers from one: a recording whose requests go to the
servers in turns must be answered as by one server alone. This runs both and compares them. Reads go to all servers, so
that each of them has something to remember when another one changes it; the last answer is compared.

    tests/replay/turns.py --larimar target/debug/larimar --recordings target/recordings \\
        [--replay ../shared/replay] [--servers 2] [--service queue] [--filter Lease] [--report target/turns.json]

The recordings and replay.py are not part of the repository. Without them there is nothing to run, and the script says
so and ends well. PostgreSQL's programs must be installed (initdb and postgres, on PATH or in /usr/lib/postgresql).
Only the standard library is used.
"""
import argparse
import collections
import glob
import importlib.util
import json
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile
import time


class Database:
    """A PostgreSQL cluster in a temporary directory, without durability: nothing here is to last."""

    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix="replay-postgres-")
        self.port = free_ports(1)[0]
        self.count = 0
        # PostgreSQL refuses to run as root.
        self.prefix = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"] if os.getuid() == 0 else []
        if self.prefix:
            shutil.chown(self.folder, "postgres", "postgres")
        data = os.path.join(self.folder, "data")
        self.run("initdb", "--no-sync", "--auth=trust", "--username=larimar", "--encoding=UTF8", "--locale=C", data)
        flags = ["-D", data, "-p", str(self.port), "-k", self.folder, "-c", "listen_addresses=127.0.0.1",
                 "-c", "fsync=off", "-c", "synchronous_commit=on", "-c", "max_connections=200"]
        self.log = open(os.path.join(tempfile.gettempdir(), f"replay-postgres-{self.port}.log"), "wb")
        self.process = subprocess.Popen([*self.prefix, program("postgres"), *flags], cwd="/", stdout=self.log,
                                        stderr=self.log)
        wait_for(self.port)

    def run(self, name, *arguments):
        subprocess.run([*self.prefix, program(name), *arguments], cwd="/", check=True, stdout=subprocess.DEVNULL)

    def fresh_url(self):
        """The address of an empty database."""
        self.count += 1
        name = f"replay{self.count}"
        for _ in range(100):
            created = subprocess.run([program("createdb"), "-h", "127.0.0.1", "-p", str(self.port), "-U", "larimar", name],
                                     cwd="/", stderr=subprocess.DEVNULL)
            if created.returncode == 0:
                return f"postgres://larimar@127.0.0.1:{self.port}/{name}"
            time.sleep(0.2)
        raise SystemExit("the database does not start")

    def stop(self):
        self.process.terminate()
        self.process.wait()
        self.log.close()
        os.remove(self.log.name)
        shutil.rmtree(self.folder, ignore_errors=True)


def program(name):
    found = shutil.which(name)
    if found:
        return found
    installed = sorted(glob.glob(f"/usr/lib/postgresql/*/bin/{name}"))
    if not installed:
        raise SystemExit(f"'{name}' of PostgreSQL is not installed")
    return installed[-1]


def free_ports(count):
    sockets = [socket.socket() for _ in range(count)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


def wait_for(port):
    for _ in range(600):
        try:
            socket.create_connection(("127.0.0.1", port), timeout=5).close()
            return
        except OSError:
            time.sleep(0.1)
    raise SystemExit(f"nothing listens on port {port}")


def is_read(request):
    """Whether a request changes nothing: to get messages hides them."""
    path, _, query = request.target.partition("?")
    return request.method in ("GET", "HEAD") and (not path.endswith("/messages") or "peekonly" in query)


def load_replay(folder):
    path = pathlib.Path(folder) / "replay.py"
    if not path.exists():
        return None
    spec = importlib.util.spec_from_file_location("replay", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def in_turns(replay, database_url, accounts, options, count):
    """Servers over one database and one directory of bytes, each request to the next of them."""
    folder = tempfile.mkdtemp(prefix="replay-turns-")
    suffixes = ",".join(service + "." + domain for domain in replay.DOMAINS for service in replay.SERVICES)
    environment = dict(os.environ, LARIMAR_ACCOUNTS=";".join(f"{name}:{replay.ACCOUNT_KEY}" for name in sorted(accounts)))

    class InTurns:
        def __init__(self):
            self.servers, self.processes, self.turn = [], [], 0
            for number in range(count):
                ports = free_ports(len(replay.SERVICES))
                command = [options.larimar, "serve", "--data-dir", os.path.join(folder, f"data{number}"),
                           "--engine", database_url, "--blob-store", f"file://{folder}/bytes", "--admin=false",
                           "--host-suffixes", suffixes, "--log-level", "warn"]
                for service, port in zip(replay.SERVICES, ports):
                    command += [f"--{service}-port", str(port)]
                log = open(os.path.join(folder, f"log{number}"), "wb")
                self.processes.append(subprocess.Popen(command, env=environment, stdout=log, stderr=log))
                wait_for(ports[-1])
                self.servers.append(replay.Server(ports))

        def send(self, service, request):
            self.turn += 1
            if is_read(request):
                # All servers remember what they are asked for, before another of them changes it.
                for other in range(1, count):
                    self.servers[(self.turn + other) % count].send(service, request)
            return self.servers[self.turn % count].send(service, request)

        def stop(self):
            for process in self.processes:
                process.terminate()
            for process in self.processes:
                process.wait()
            for number in range(count):
                text = pathlib.Path(folder, f"log{number}").read_text(errors="replace")
                if options.verbose and text:
                    print(f"server {number} of {count} logged:\n{text[:2000]}")
            shutil.rmtree(folder, ignore_errors=True)

    os.makedirs(os.path.join(folder, "bytes"), exist_ok=True)
    return InTurns()


def run(replay, recordings, accounts, database, options, count):
    server = in_turns(replay, database.fresh_url(), accounts, options, count)
    accepted = replay.Accepted(options.accepted)
    results = []
    try:
        for suite, path in recordings:
            exchanges = replay.load_recording(path)
            results.append(replay.replay_recording(suite, path, exchanges, server, options, accepted))
    finally:
        server.stop()
    return results


def differences(results):
    """Each difference to the recordings, by place: recording, exchange and class."""
    return {(item["file"], item["exchange"], item["class"]): item for result in results for item in result.differences}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--larimar", required=True, help="the server's program")
    parser.add_argument("--recordings", required=True, help="folder that holds tables/ and storage/")
    parser.add_argument("--replay", default="../shared/replay", help="folder of replay.py and accepted.txt")
    parser.add_argument("--servers", type=int, default=2, help="servers that take turns")
    parser.add_argument("--service", help="only suites whose name has this in it: table, queue, blobs, blob-batch")
    parser.add_argument("--filter", help="only recordings whose path has this in it")
    parser.add_argument("--longest-wait", type=float, default=35, help="seconds to wait at most where time matters")
    parser.add_argument("--report", help="file for what differs, as JSON")
    parser.add_argument("--verbose", action="store_true", help="show what the servers logged")
    options = parser.parse_args()
    options.sign_bearer = True
    replay = load_replay(options.replay)
    if replay is None or not os.path.isdir(options.recordings):
        print("skipped: no replay.py or no recordings on this machine")
        return 0
    options.accepted = os.path.join(options.replay, "accepted.txt")
    recordings = list(replay.find_recordings(options))
    accounts = set()
    for _, path in recordings:
        accounts |= {exchange.account for exchange in replay.load_recording(path) if exchange.account}
    database = Database()
    try:
        outcomes = {}
        for count in (1, options.servers):
            started = time.monotonic()
            outcomes[count] = run(replay, recordings, accounts, database, options, count)
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
    print(f"\n{'suite':16}" + "".join(f"{f'replayed, {count}':>14}{f'identical, {count}':>15}" for count in outcomes))
    for suite, sums in counts.items():
        print(f"{suite:16}" + "".join(f"{sums[n]['replayed']:>14}{sums[n]['identical']:>15}" for n in outcomes))
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
