"""pgBackRest against a running server over TLS with the account in the host name: a PostgreSQL cluster is backed up in
full and by differences, its log archived, all of it verified, and the cluster restored from it with every row.

LARIMAR_BLOB_ENDPOINT, LARIMAR_ACCOUNT, LARIMAR_KEY and LARIMAR_CA_FILE name the server. PostgreSQL refuses to run as
root, so that then everything runs as the user `postgres`. pgBackRest asks the resolver for the account's host; where
that does not know names below `localhost`, the script runs with a hosts file of its own, if it may mount one.
"""

import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import uuid
from pathlib import Path
from urllib.parse import urlsplit

from azure.storage.blob import BlobServiceClient

PATIENCE = 600
USER = "postgres" if os.geteuid() == 0 else None
DEBIAN = Path("/usr/lib/postgresql")
DOMAIN = "blob.localhost"
MOUNTED = "LARIMAR_HOSTS_MOUNTED"
# Exit code of a program that cannot run on this machine; the last line says why.
SKIPPED = 77


def binaries():
    named = os.environ.get("LARIMAR_POSTGRES_BIN")
    if named:
        return Path(named)
    versions = sorted((path for path in DEBIAN.iterdir() if path.name.isdigit()), key=lambda path: int(path.name))
    return versions[-1] / "bin"


def run(*command):
    command = list(map(str, command))
    print(f"$ {' '.join(command)}", flush=True)
    identity = {"user": USER, "group": USER, "extra_groups": []} if USER else {}
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PG")}
    ended = subprocess.run(command, check=False, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, cwd="/",
                           timeout=PATIENCE, env=environment, stdin=subprocess.DEVNULL, **identity)
    assert ended.returncode == 0, f"ended with {ended.returncode}:\n{ended.stdout}"
    return ended.stdout


class Cluster:
    """A cluster of one's own that archives its log with pgBackRest."""

    def __init__(self, folder, config):
        self.data, self.folder, self.programs = folder / "data", folder, binaries()
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        run(self.programs / "initdb", "--no-sync", "--auth", "trust", "--username", "postgres", "--pgdata", self.data)
        with open(self.data / "postgresql.conf", "a") as settings:
            settings.write(f"port = {self.port}\nlisten_addresses = ''\nunix_socket_directories = '{folder}'\n"
                           "archive_mode = on\nwal_level = replica\n"
                           f"archive_command = 'pgbackrest --config={config} --stanza=main archive-push %p'\n")

    def start(self):
        # Recovery fetches the log piece by piece.
        run(self.programs / "pg_ctl", "start", "--wait", "--timeout", PATIENCE, "--pgdata", self.data, "--log",
            self.folder / "postgres.log")

    def stop(self):
        run(self.programs / "pg_ctl", "stop", "--wait", "--mode", "fast", "--timeout", PATIENCE, "--pgdata", self.data)

    def sql(self, statement):
        return run(self.programs / "psql", "-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-h", self.folder, "-p",
                   self.port, "-U", "postgres", "-d", "postgres", "-c", statement).strip()


def configure(folder, container):
    endpoint = urlsplit(os.environ["LARIMAR_BLOB_ENDPOINT"])
    assert endpoint.scheme == "https", endpoint
    authority = folder / "authority.pem"
    shutil.copy(os.environ["LARIMAR_CA_FILE"], authority)
    config = folder / "pgbackrest.conf"
    config.write_text(f"""
[global]
repo1-type=azure
repo1-path=/repo
repo1-azure-account={os.environ["LARIMAR_ACCOUNT"]}
repo1-azure-key={os.environ["LARIMAR_KEY"]}
repo1-azure-container={container}
repo1-azure-endpoint={DOMAIN}
repo1-azure-uri-style=host
repo1-storage-port={endpoint.port}
repo1-storage-ca-file={authority}
repo1-retention-full=2
repo1-bundle=y
start-fast=y
process-max=2
compress-type=lz4
log-level-console=warn
log-level-file=off
lock-path={folder}/lock
spool-path={folder}/spool

[main]
pg1-path={folder}/data
pg1-socket-path={folder}
pg1-user=postgres
""")
    return config


def add_rows(cluster, count):
    cluster.sql("INSERT INTO rows (text) SELECT repeat(md5(n::text), 20) FROM generate_series(1, %d) n" % count)


def resolve():
    """Makes sure that the account's host is known, if need be by starting this script again below a hosts file."""
    host = f"{os.environ['LARIMAR_ACCOUNT']}.{DOMAIN}"
    try:
        socket.getaddrinfo(host, 443)
        return
    except OSError:
        pass
    if os.environ.get(MOUNTED):
        print(f"{host} is not resolved, not even with a hosts file")
        sys.exit(SKIPPED)
    with tempfile.NamedTemporaryFile("w", suffix=".hosts") as hosts:
        hosts.write(Path("/etc/hosts").read_text() + f"\n127.0.0.1 {host}\n")
        hosts.flush()
        os.chmod(hosts.name, 0o644)
        try:
            subprocess.run(["unshare", "--mount", "mount", "--bind", hosts.name, "/etc/hosts"], check=True, timeout=60)
        except (OSError, subprocess.CalledProcessError):
            print(f"the resolver does not know {host}, and no hosts file may be mounted")
            sys.exit(SKIPPED)
        inside = f'mount --bind "{hosts.name}" /etc/hosts && exec "$0" "$@"'
        command = ["unshare", "--mount", "sh", "-c", inside, sys.executable, __file__]
        sys.exit(subprocess.run(command, check=False, env={**os.environ, MOUNTED: "1"}).returncode)


def main():
    resolve()
    container = "pgbackrest" + uuid.uuid4().hex[:12]
    service = BlobServiceClient(os.environ["LARIMAR_BLOB_ENDPOINT"], credential=os.environ["LARIMAR_KEY"],
                                connection_verify=os.environ["LARIMAR_CA_FILE"])
    client = service.create_container(container)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        config = configure(folder, container)
        cluster = prepared(folder, config)

        def pgbackrest(*arguments):
            return run("pgbackrest", f"--config={config}", "--stanza=main", *arguments)

        cluster.start()
        try:
            port = f"--pg1-port={cluster.port}"
            pgbackrest(port, "stanza-create")
            pgbackrest(port, "check")
            cluster.sql("CREATE TABLE rows (id serial PRIMARY KEY, text text NOT NULL)")
            add_rows(cluster, 20_000)
            pgbackrest(port, "--type=full", "backup")
            add_rows(cluster, 5_000)
            pgbackrest(port, "--type=diff", "backup")
            # Only in the archived log.
            add_rows(cluster, 1_000)
            digest = "SELECT count(*), md5(string_agg(id || text, ',' ORDER BY id)) FROM rows"
            wanted = cluster.sql(digest)
            assert wanted.startswith("26000|"), wanted
            cluster.sql("SELECT pg_switch_wal()")
            archived = "SELECT archived_count > 0 AND failed_count = 0 AND last_archived_wal >= " \
                       "pg_walfile_name(pg_current_wal_lsn() - 1) FROM pg_stat_archiver"
            until = time.monotonic() + PATIENCE
            while cluster.sql(archived) != "t":
                assert time.monotonic() < until, cluster.sql("SELECT * FROM pg_stat_archiver")
                time.sleep(0.5)
        finally:
            cluster.stop()
        [stanza] = json.loads(pgbackrest("--output=json", "info"))
        assert [backup["type"] for backup in stanza["backup"]] == ["full", "diff"], stanza
        verified = pgbackrest("--log-level-console=info", "verify")
        assert "completed successfully" in verified and "ERROR" not in verified, verified
        shutil.rmtree(cluster.data)
        pgbackrest("restore")
        cluster.start()
        try:
            # A cluster takes connections as soon as it is consistent, before recovery has replayed the whole log.
            until = time.monotonic() + PATIENCE
            while cluster.sql("SELECT pg_is_in_recovery()") != "f":
                assert time.monotonic() < until, "recovery does not end"
                time.sleep(0.5)
            assert cluster.sql(digest) == wanted, "the restored rows differ"
        finally:
            cluster.stop()
        version = run("pgbackrest", "version").split()[1]
    blobs = sum(1 for _ in client.list_blobs())
    assert blobs > 5, blobs
    client.delete_container()
    print(f"result: pgBackRest {version}: a cluster backed up, verified and restored over TLS, in host style")


def prepared(folder, config):
    """The cluster, in a folder that its user may enter."""
    if USER:
        for path in (folder, *folder.iterdir()):
            shutil.chown(path, USER, USER)
    return Cluster(folder, config)


if __name__ == "__main__":
    main()
