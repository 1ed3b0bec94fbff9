"""Prometheus against a server with everything on that has metrics: it scrapes them, loads the alert rules of deploy/, and
runs every query of the rules and of the Grafana dashboard.

LARIMAR_BINARY names the server. Only the standard library is used.
"""

import base64
import datetime
import hashlib
import hmac
import json
import os
import re
import socket
import subprocess
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path

PATIENCE = 120
ROOT = Path(__file__).resolve().parents[3]
RULES = ROOT / "deploy/prometheus/alerts.yml"
RULES_TEST = ROOT / "tests/programs/prometheus/alerts_test.yml"
DASHBOARD = ROOT / "deploy/grafana/larimar.json"
ACCOUNT = "devstoreaccount1"
KEY = base64.b64decode("Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==")
# The queries have no value while nothing failed, or nothing of their kind was stored.
MAY_BE_EMPTY = {"larimar_account_requests_total", "larimar_requests_total", "larimar_query_rows_returned_total"}


def run(*command, **options):
    print(f"$ {' '.join(map(str, command))}", flush=True)
    done = subprocess.run(
        command, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=PATIENCE, check=False, **options
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


def wait_for(what, condition):
    """The first value of a condition that is true."""
    until = time.monotonic() + PATIENCE
    while not (value := condition()):
        assert time.monotonic() < until, f"no {what} within {PATIENCE} s"
        time.sleep(0.1)
    return value


def get(url):
    """The body of an answer; nothing if there is no answer."""
    try:
        with urllib.request.urlopen(url, timeout=PATIENCE) as response:
            return response.read().decode()
    except urllib.error.HTTPError as error:
        raise AssertionError(f"{url}: {error.read().decode()}") from error
    except OSError:
        return ""


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def send(port, method, path, body=None, service="table", query=""):
    """Sends a signed request."""
    date = datetime.datetime.now(datetime.timezone.utc).strftime("%a, %d %b %Y %H:%M:%S GMT")
    canonical = f"{date}\n/{ACCOUNT}/{ACCOUNT}{path}"
    if service != "table":
        head = f"x-ms-date:{date}\nx-ms-version:2019-02-02"
        canonical = f"{method}\n\napplication/json\n\n{head}\n/{ACCOUNT}/{ACCOUNT}{path}"
    signature = base64.b64encode(hmac.new(KEY, canonical.encode(), hashlib.sha256).digest()).decode()
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}/{ACCOUNT}{path}{query}",
        method=method,
        data=body.encode() if body is not None else None,
        headers={
            "x-ms-date": date,
            "x-ms-version": "2019-02-02",
            "Authorization": f"SharedKeyLite {ACCOUNT}:{signature}",
            "Content-Type": "application/json",
            "Accept": "application/json;odata=nometadata",
        },
    )
    with urllib.request.urlopen(request, timeout=PATIENCE) as response:
        return response.read()


def traffic(ports, number):
    """Some requests of each service, and queries of several kinds."""
    table = f"people{number}"
    send(ports["table"], "POST", "/Tables", json.dumps({"TableName": table}))
    for row in range(5):
        send(ports["table"], "POST", f"/{table}", json.dumps({"PartitionKey": "p", "RowKey": str(row), "Age": row}))
    send(ports["table"], "GET", f"/{table}(PartitionKey='p',RowKey='1')")
    send(ports["table"], "GET", f"/{table}()", query="?$filter=Age%20gt%202")
    send(ports["queue"], "PUT", f"/jobs{number}", "", service="queue")
    send(ports["blob"], "PUT", f"/box{number}", "", service="blob", query="?restype=container")


def queries_of_dashboard():
    """The query of each panel, as Grafana sends it for all jobs and servers."""
    dashboard = json.loads(DASHBOARD.read_text(encoding="utf-8"))
    for panel in dashboard["panels"]:
        for target in panel.get("targets", []):
            query = target["expr"].replace("$job", ".*").replace("$instance", ".*").replace("$__rate_interval", "1m")
            assert "$" not in query, query
            yield panel["title"], query


def check(address):
    """Runs every query, and looks at the rules."""
    def ask(path, **parameters):
        body = json.loads(get(f"http://{address}/api/v1/{path}?{urllib.parse.urlencode(parameters)}"))
        assert body["status"] == "success", body
        return body["data"]

    count = 0
    for title, query in queries_of_dashboard():
        values = ask("query", query=query)["result"]
        names = set(re.findall(r"larimar_\w+_total", query))
        assert values or names & MAY_BE_EMPTY, f"{title}: {query} has no value"
        count += 1
    rules = [rule for group in ask("rules")["groups"] for rule in group["rules"]]
    for rule in rules:
        assert rule["health"] == "ok", rule
        # Other processes may fill the disk at a rate that makes an alert pending.
        assert rule["state"] != "firing", f"{rule['name']} fires on a healthy server: {rule['query']}"
    return count, len(rules)


def main():
    version = re.search(r"version (\d+\.\d+\.\d+)", run("prometheus", "--version"))[1]
    print(run("promtool", "check", "rules", RULES))
    alerts, tested = (
        set(re.findall(pattern, path.read_text(encoding="utf-8")))
        for pattern, path in ((r"- alert: (\w+)", RULES), (r"name: (\w+) fires", RULES_TEST))
    )
    assert alerts == tested, f"rules without a test, or tests without a rule: {alerts ^ tested}"
    print(run("promtool", "test", "rules", RULES_TEST))
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        ports = {name: free_port() for name in ("table", "queue", "blob", "admin", "prometheus")}
        arguments = [f"--{name}-port={port}" for name, port in ports.items() if name != "prometheus"]
        arguments += ["--archive", folder / "archive", "--access-log", folder / "access", "--data-dir", folder / "data"]
        config = folder / "prometheus.yml"
        config.write_text(
            "global: {scrape_interval: 1s, scrape_timeout: 1s, evaluation_interval: 1s}\n"
            f"rule_files: [{json.dumps(str(RULES))}]\n"
            "scrape_configs:\n"
            f"  - {{job_name: larimar, static_configs: [{{targets: ['127.0.0.1:{ports['admin']}']}}]}}\n",
            encoding="utf-8",
        )
        print(run("promtool", "check", "config", config))
        address = f"127.0.0.1:{ports['prometheus']}"
        environment = {**os.environ, "XDG_RUNTIME_DIR": str(folder)}
        with open(folder / "log", "wb") as log:
            command = [os.environ["LARIMAR_BINARY"], "serve", *arguments]
            server = subprocess.Popen(command, stdout=log, stderr=log, env=environment)
            prometheus = None
            try:
                metrics = f"http://127.0.0.1:{ports['admin']}/metrics"
                wait_for("server", lambda: server.poll() is None and get(metrics))
                traffic(ports, 0)
                wait_for("backup and count of files", lambda: all(
                    name in get(metrics) for name in ("larimar_backup_last_success_seconds ", "larimar_blob_bytes ")))
                print(run("promtool", "check", "metrics", input=get(metrics)))
                command = ["prometheus", f"--config.file={config}", f"--storage.tsdb.path={folder}/tsdb"]
                command.append(f"--web.listen-address={address}")
                prometheus = subprocess.Popen(command, stdout=log, stderr=log)
                wait_for("Prometheus", lambda: "Ready" in get(f"http://{address}/-/ready"))
                scrapes = f"http://{address}/api/v1/query?query=count_over_time(larimar_ready[5m])>=3"
                wait_for("scrape", lambda: '"value"' in get(scrapes))
                traffic(ports, 1)
                more = f"http://{address}/api/v1/query?query=increase(larimar_queries_total[1m])>0"
                wait_for("scrape of the traffic", lambda: '"value"' in get(more))
                rules = f"http://{address}/api/v1/rules"
                wait_for("evaluation of the rules", lambda: '"health":"unknown"' not in get(rules))
                queries, alerts = check(address)
            except BaseException:
                log.flush()
                print((folder / "log").read_text(encoding="utf-8", errors="replace")[-4000:])
                raise
            finally:
                for process in filter(None, (prometheus, server)):
                    process.terminate()
                    process.wait(PATIENCE)
    print(f"result: Prometheus {version}: metrics, {alerts} alert rules, {queries} queries of the Grafana dashboard")


if __name__ == "__main__":
    main()
