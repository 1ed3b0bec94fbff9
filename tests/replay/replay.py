#!/usr/bin/env python3
"""Replay recordings of the real service against a Larimar server and compare every answer.

Each recording has the requests that a test made and the answers that the real service gave. A recording is replayed in
order. What the original server made up (ETags, ids, receipts, snapshot times, continuation tokens) is replaced in later
requests by what this server made up instead; signatures are made anew; times are shifted to now.

    tests/replay/replay.py --larimar target/debug/larimar --recordings FOLDER_OR_ARCHIVE \\
        [--postgres] [--service queue] [--filter Lease] [--report target/replay.json] [--verbose]

`cargo xtask replay FOLDER_OR_ARCHIVE` builds the server and runs this on both engines. The differences in accepted.txt
do not count. The recordings are not part of the repository. Only the standard library is used.
"""
import argparse
import collections
import datetime
import fnmatch
import json
import pathlib
import re
import sys
import time
import urllib.parse

from compare import Comparison, readable
from left_out import is_polled, is_transient, reason_to_leave_out
from recording import find_recordings, load_recording, open_recordings
from rewrite import Request, Session
from server import Database, Server

ACCEPTED = pathlib.Path(__file__).with_name("accepted.txt")


def operation(exchange):
    """A name for what the request does, such as 'blob PUT blob comp=block'."""
    path = urllib.parse.unquote(exchange.path).strip("/")
    comp = exchange.query.get("comp")
    method = exchange.method
    if exchange.service == "table":
        if path == "$batch":
            target = "$batch"
        elif path == "Tables" or path.startswith("Tables("):
            target = "Tables" if path == "Tables" else "Tables('name')"
        elif not path:
            target = "service"
        else:
            target = "entities" if path.endswith("()") or "(" not in path else "entity"
    elif exchange.service == "queue":
        target = "service" if not path else "queue" if "/" not in path else \
            "messages" if path.endswith("/messages") else "message"
    else:
        target = "service" if not path else "container" if exchange.query.get("restype") == "container" else "blob"
    name = f"{exchange.service} {method} {target}"
    if comp:
        name += f" comp={comp}"
    if exchange.query.get("restype") == "account":
        name += " restype=account"
    if exchange.query.get("peekonly"):
        name += " peekonly"
    if method == "PUT" and target == "blob" and not comp:
        name += " " + exchange.request.header("x-ms-blob-type", "")
    if "x-ms-copy-source" in exchange.request.headers:
        name += " from URL" if exchange.request.header("x-ms-requires-sync") is None else " synchronous copy"
    if exchange.query.get("comp") == "lease":
        name += " " + exchange.request.header("x-ms-lease-action", "")
    return name


def needs_time(exchanges):
    """Whether a recording depends on the passing of time."""
    return any("visibilitytimeout" in exchange.query and exchange.query["visibilitytimeout"] not in ("0", "") or
               exchange.query.get("messagettl") not in (None, "-1", "") or
               exchange.request.header("x-ms-lease-action") == "break" for exchange in exchanges)


class Result:
    """What came of one recording."""

    def __init__(self, suite, path):
        self.suite = suite
        self.path = path
        self.replayed = 0
        self.identical = 0
        self.differing = 0
        self.left_out = collections.Counter()
        self.transient = 0
        self.after_difference = 0
        self.differences = []

    @property
    def complete(self):
        return self.replayed and not self.left_out and not self.after_difference


def replay_recording(suite, path, exchanges, server, options, accepted):
    result = Result(suite, path)
    session = Session()
    paced = needs_time(exchanges)
    previous_time = None
    for index, exchange in enumerate(exchanges):
        reason = reason_to_leave_out(exchange)
        if not reason and session.is_older(exchange):
            reason = "containers from before the recording"
        if reason:
            if exchange.method in ("GET", "HEAD") or exchange.service is None:
                result.left_out[reason] += 1
                continue
            # What follows may depend on what this request would have done.
            result.left_out[reason] += len(exchanges) - index
            break
        if is_transient(exchanges, index) or session.lacks_page(exchange):
            result.transient += 1
            continue
        moment = exchange.time
        if moment:
            session.shift = datetime.datetime.now(datetime.timezone.utc) - moment
            if paced and previous_time:
                gap = (moment - previous_time).total_seconds()
                if gap >= 2:
                    time.sleep(min(gap + 0.5, options.longest_wait))
            previous_time = moment
        session.note_names(exchange)
        request = Request(exchange, session)
        status, answer = server.send(exchange.service, request)
        comparison = Comparison(exchange, session)
        differences = comparison.compare(status, answer)
        if differences and is_polled(exchanges, index):
            result.transient += 1
            continue
        if exchange.method == "PUT" and exchange.query.get("comp") == "properties":
            session.settings |= set(re.findall(r"<(\w+)>", exchange.request.body.decode("utf-8", "replace")))
        result.replayed += 1
        open_differences = []
        for kind, expected, got in differences:
            key = f"{operation(exchange)} | {kind}"
            if not accepted.covers(key):
                open_differences.append((key, expected, got))
        if open_differences:
            result.differing += 1
            for key, expected, got in open_differences:
                result.differences.append(example(key, path, exchange, request, expected, got))
        else:
            result.identical += 1
        if (status < 300) != (exchange.status < 300) and exchange.method not in ("GET", "HEAD"):
            # From here on the two servers do not hold the same things.
            result.after_difference += len(exchanges) - index - 1
            break
    return result


def example(key, path, exchange, request, expected, got):
    shown = {name: value for name, value in request.headers.items()
             if name not in ("user-agent", "authorization", "x-ms-date", "x-ms-client-request-id",
                             "x-ms-return-client-request-id", "host", "accept", "dataserviceversion")}
    return {"class": key, "file": str(path), "exchange": exchange.number,
            "request": f"{exchange.method} {exchange.url}", "headers": shown,
            "body": readable(exchange.request, 600),
            "expected": expected, "got": got}


class Accepted:
    """Differences that are known and intended: lines 'pattern  # reason', '*' and '?' as in file names."""

    def __init__(self, path):
        self.patterns = []
        self.counts = collections.Counter()
        if path:
            for line in pathlib.Path(path).read_text().splitlines():
                pattern, _, reason = line.partition("#")
                if pattern.strip():
                    self.patterns.append((re.compile(fnmatch.translate(pattern.strip().replace("[", "[[]"))),
                                          pattern.strip(), reason.strip()))

    def covers(self, key):
        for expression, pattern, reason in self.patterns:
            if expression.match(key):
                self.counts[f"{pattern}  # {reason}"] += 1
                return True
        return False


def suite_figures(results):
    """For each suite: recordings, exchanges by what came of them, recordings without a difference ('clean'), those of
    which nothing was left out ('whole'), and both.
    """
    suites = collections.defaultdict(list)
    for result in results:
        suites[result.suite].append(result)
    return [{"suite": suite,
             "recordings": sum(1 for r in mine if r.replayed),
             "unplayed": sum(1 for r in mine if not r.replayed),
             "replayed": sum(r.replayed for r in mine),
             "identical": sum(r.identical for r in mine),
             "differing": sum(r.differing for r in mine),
             "transient": sum(r.transient for r in mine),
             "left out": sum(sum(r.left_out.values()) for r in mine),
             "after": sum(r.after_difference for r in mine),
             "clean": sum(1 for r in mine if r.replayed and not r.differing),
             "whole": sum(1 for r in mine if r.complete),
             "both": sum(1 for r in mine if r.complete and not r.differing)}
            for suite, mine in suites.items()]


def print_report(results, accepted, options, seconds):
    suites = suite_figures(results)
    columns = [name for name in suites[0] if name not in ("suite", "unplayed")] if suites else []
    width = max((len(figures["suite"]) for figures in suites), default=0) + 1
    print(f"\n{'suite':{width}}" + "".join(f"{name:>11}" for name in columns))
    for figures in suites:
        print(f"{figures['suite']:{width}}" + "".join(f"{figures[name]:>11}" for name in columns))
    print("\nExchanges left out, by reason")
    reasons = collections.Counter()
    for result in results:
        for reason, count in result.left_out.items():
            reasons[(result.suite, reason)] += count
    for (suite, reason), count in sorted(reasons.items()):
        print(f"  {suite:{width}}{count:6}  {reason}")
    classes = collections.defaultdict(list)
    for result in results:
        for difference in result.differences:
            classes[difference["class"]].append(difference)
    print(f"\nClasses of differences: {len(classes)}")
    for key, found in sorted(classes.items(), key=lambda item: (item[0].split(" ")[0], -len(item[1]))):
        print(f"  {len(found):6}  {key}")
        if options.verbose:
            first = found[0]
            print(f"          {first['file']} #{first['exchange']}\n          {first['request']}\n          "
                  f"{first['headers']}\n          body: {first['body']}\n          expected: {first['expected']}\n"
                  f"          got:      {first['got']}")
    if accepted.counts:
        print("\nAccepted differences")
        for key, count in accepted.counts.most_common():
            print(f"  {count:6}  {key}")
    print(f"\n{seconds:.0f} s")
    if options.report:
        report = {
            "suites": suites,
            "differing": [f"{result.suite} {result.path.name}" for result in results if result.differing],
            "left_out": [{"suite": suite, "reason": reason, "exchanges": count}
                         for (suite, reason), count in sorted(reasons.items())],
            "accepted": dict(accepted.counts),
            "classes": [{"class": key, "count": len(found), "examples": found[:options.examples]}
                        for key, found in sorted(classes.items(), key=lambda item: -len(item[1]))],
        }
        pathlib.Path(options.report).write_text(json.dumps(report, indent=1, ensure_ascii=False, default=str))


def add_common_options(parser):
    """The options that replay.py and turns.py share."""
    parser.add_argument("--larimar", help="the server's program")
    parser.add_argument("--recordings", required=True, help="folder or archive of recordings")
    parser.add_argument("--service", help="only suites whose name has this in it: table, queue, blob, batch")
    parser.add_argument("--filter", help="only recordings whose path has this in it")
    parser.add_argument("--longest-wait", type=float, default=35, help="seconds to wait at most where time matters")
    parser.add_argument("--accepted", default=ACCEPTED, help="file of accepted differences: lines 'pattern  # reason'")
    parser.add_argument("--report", help="file for the report as JSON")
    parser.add_argument("--verbose", action="store_true", help="show an example of each class of differences")


def load_all(options):
    """All recordings as (suite, path, exchanges), and the accounts that they use."""
    folder = open_recordings(options.recordings)
    recordings = [(suite, path, load_recording(path))
                  for suite, path in find_recordings(folder, options.service, options.filter)]
    accounts = {exchange.account for _, _, exchanges in recordings for exchange in exchanges if exchange.account}
    return recordings, accounts


def replay_all(recordings, server, options, accepted):
    results = []
    for number, (suite, path, exchanges) in enumerate(recordings):
        if sys.stderr.isatty():
            print(f"\r{number}/{len(recordings)} {path.name[:60]:60}", end="", file=sys.stderr)
        results.append(replay_recording(suite, path, exchanges, server, options, accepted))
    return results


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_common_options(parser)
    parser.add_argument("--ports", help="ports of the blob, queue and table services of a running server")
    parser.add_argument("--flags", default="", help="further flags for the server, as in --flags=--strict")
    parser.add_argument("--postgres", action="store_true", help="run the server on a new PostgreSQL cluster")
    parser.add_argument("--database", help="run the server on the empty PostgreSQL database with this URL")
    parser.add_argument("--examples", type=int, default=3, help="examples of each class in the JSON report")
    options = parser.parse_args()
    if bool(options.larimar) == bool(options.ports):
        parser.error("either --larimar or --ports is needed")

    started = time.monotonic()
    recordings, accounts = load_all(options)
    accepted = Accepted(options.accepted)
    server = Server([int(port) for port in options.ports.split(",")] if options.ports else None)
    database = Database() if options.postgres else None
    try:
        if options.larimar:
            url = database.fresh_url() if database else options.database
            server.start(options.larimar, accounts, url, flags=options.flags.split())
        results = replay_all(recordings, server, options, accepted)
    finally:
        server.stop()
        if database:
            database.stop()
    print_report(results, accepted, options, time.monotonic() - started)
    return 1 if any(result.differences for result in results) else 0


if __name__ == "__main__":
    sys.exit(main())
