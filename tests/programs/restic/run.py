"""restic against a running server over TLS with the account in the host name: a tree is backed up twice, checked bit by
bit, restored, pruned and restored again, byte for byte.

restic has no setting for the address in every release, so it speaks to the service's own host name through a proxy of
this script, which leads every connection to the server: nothing leaves this machine, and no resolver is asked. Its
certificate is that of LARIMAR_CA_FILE. Only the standard library is used.
"""

import contextlib
import hashlib
import json
import os
import random
import shutil
import socket
import socketserver
import subprocess
import tempfile
import threading
import uuid
from pathlib import Path
from urllib.parse import urlsplit

PATIENCE = 600
MIB = 1024 * 1024
FILES = {
    "empty": 0,
    "one byte": 1,
    "deep/er/still.txt": 1000,
    "names/Grüße 世界 & %20.txt": 10,
    "large/30 MiB.bin": 30 * MIB + 17,
    **{f"many/{number:03}.txt": number * 100 for number in range(100)},
}


class Proxy(socketserver.StreamRequestHandler):
    """Answers CONNECT, whatever the host is, with a connection to the server."""

    target = None
    hosts = set()

    def handle(self):
        method, host, _ = self.rfile.readline().decode().split(" ")
        assert method == "CONNECT", method
        self.hosts.add(host)
        while self.rfile.readline().strip():
            pass
        with socket.create_connection(self.target) as server:
            self.wfile.write(b"HTTP/1.1 200 OK\r\n\r\n")
            back = threading.Thread(target=pump, args=(server, self.connection), daemon=True)
            back.start()
            pump(self.connection, server)
            back.join()


def pump(source, target):
    with contextlib.suppress(OSError):
        while data := source.recv(65536):
            target.sendall(data)
    with contextlib.suppress(OSError):
        target.shutdown(socket.SHUT_WR)


@contextlib.contextmanager
def proxy():
    endpoint = urlsplit(os.environ["LARIMAR_BLOB_ENDPOINT"])
    assert endpoint.scheme == "https", endpoint
    Proxy.target = (endpoint.hostname, endpoint.port)
    server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Proxy)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()


class Restic:
    def __init__(self, through, folder):
        kept = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
        self.environment = {
            **kept,
            "HTTPS_PROXY": through,
            "AZURE_ACCOUNT_NAME": os.environ["LARIMAR_ACCOUNT"],
            "AZURE_ACCOUNT_KEY": os.environ["LARIMAR_KEY"],
            "RESTIC_REPOSITORY": f"azure:restic{uuid.uuid4().hex[:12]}:/backups",
            "RESTIC_PASSWORD": "secret",
            "RESTIC_CACHE_DIR": str(folder / "cache"),
        }

    def __call__(self, *arguments):
        command = ["restic", "--cacert", os.environ["LARIMAR_CA_FILE"], *map(str, arguments)]
        print(f"$ {' '.join(command)}", flush=True)
        ended = subprocess.run(command, env=self.environment, check=True, stdout=subprocess.PIPE, timeout=PATIENCE)
        return ended.stdout.decode()

    def snapshots(self):
        return [snapshot["id"] for snapshot in json.loads(self("snapshots", "--json"))]


def contents(tree):
    files = (path for path in tree.rglob("*") if path.is_file())
    return {str(path.relative_to(tree)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def main():
    with tempfile.TemporaryDirectory() as name, proxy() as through:
        folder = Path(name)
        source, target = folder / "source", folder / "target"
        for file, size in FILES.items():
            (source / file).parent.mkdir(parents=True, exist_ok=True)
            (source / file).write_bytes(random.Random(file).randbytes(size))
        first = contents(source)
        assert len(first) == len(FILES)

        restic = Restic(through, folder)
        restic("init")
        restic("backup", source)
        (source / "one byte").write_bytes(b"changed")
        (source / "many" / "000.txt").unlink()
        second = contents(source)
        restic("backup", source)
        restic("check", "--read-data")
        old, new = restic.snapshots()
        for snapshot, wanted in ((old, first), (new, second)):
            shutil.rmtree(target, ignore_errors=True)
            restic("restore", snapshot, "--target", target)
            assert contents(target / source.relative_to("/")) == wanted, "what came back differs"
        restic("forget", old, "--prune")
        restic("check", "--read-data")
        assert restic.snapshots() == [new]
        shutil.rmtree(target)
        restic("restore", new, "--target", target)
        assert contents(target / source.relative_to("/")) == second, "what came back after pruning differs"
        account = os.environ["LARIMAR_ACCOUNT"]
        assert Proxy.hosts == {f"{account}.blob.core.windows.net:443"}, Proxy.hosts
        version = restic("version").split()[1]
    print(f"result: restic {version}: {len(first)} files backed up, checked, pruned and restored over TLS, in host style")


if __name__ == "__main__":
    main()
