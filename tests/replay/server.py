"""A Larimar that requests are replayed against, and a PostgreSQL that it can run on."""
import glob
import http.client
import os
import pathlib
import shutil
import socket
import subprocess
import tempfile
import time

from recording import DOMAINS, SERVICES, Message
from rewrite import ACCOUNT_KEY


class Server:
    """A running Larimar with one port for each service; started here if a program is given."""

    def __init__(self, ports=None):
        self.ports = dict(zip(SERVICES, ports or free_ports(len(SERVICES))))
        self.connections = {}
        self.process = None
        self.folder = None

    def start(self, program, accounts, database=None, blob_store=None, flags=()):
        """Starts a server on a new data directory, or on a database; 'blob_store' is for several servers on one."""
        self.folder = tempfile.mkdtemp(prefix="replay-")
        suffixes = ",".join(service + "." + domain for domain in DOMAINS for service in SERVICES)
        command = [program, "serve", "--data-dir", os.path.join(self.folder, "data"), "--admin=false",
                   "--host-suffixes", suffixes, "--log-level", "warn", *flags]
        if database:
            command += ["--engine", database, "--blob-store", blob_store or f"file://{self.new_folder('bytes')}"]
        else:
            command += ["--durability", "memory"]
        for service, port in self.ports.items():
            command += [f"--{service}-port", str(port)]
        environment = dict(os.environ, LARIMAR_ACCOUNTS=";".join(f"{name}:{ACCOUNT_KEY}" for name in sorted(accounts)))
        with open(os.path.join(self.folder, "log"), "wb") as log:
            self.process = subprocess.Popen(command, env=environment, stdout=log, stderr=log)
        if not wait_for(self.ports[SERVICES[-1]], self.process):
            raise SystemExit("the server does not start:\n" + self.log())

    def new_folder(self, name):
        path = os.path.join(self.folder, name)
        os.makedirs(path, exist_ok=True)
        return path

    def log(self):
        """What the server has logged so far."""
        return pathlib.Path(self.folder, "log").read_text(errors="replace") if self.folder else ""

    def stop(self):
        for connection in self.connections.values():
            connection.close()
        if self.process:
            self.process.terminate()
            self.process.wait()
            shutil.rmtree(self.folder, ignore_errors=True)

    def send(self, service, request):
        """The status and the answer; a connection that the server closed meanwhile is opened again."""
        for attempt in (1, 2):
            connection = self.connections.get(service)
            if connection is None:
                connection = http.client.HTTPConnection("127.0.0.1", self.ports[service], timeout=120)
                self.connections[service] = connection
            try:
                connection.putrequest(request.method, request.target, skip_host=True, skip_accept_encoding=True)
                for name, value in request.headers.items():
                    connection.putheader(request.names.get(name, name), value.encode("utf-8"))
                connection.endheaders(request.body or None)
                response = connection.getresponse()
                body = response.read()
                headers = {}
                for name, value in response.getheaders():
                    name = name.lower()
                    headers[name] = headers[name] + ", " + value if name in headers else value
                return response.status, Message(headers, body, reason=response.reason)
            except (http.client.HTTPException, OSError):
                connection.close()
                del self.connections[service]
                if attempt == 2:
                    raise


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
        if not wait_for(self.port, self.process):
            raise SystemExit("the database does not start")

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


def wait_for(port, process):
    """Waits until a process listens on a port; false if it ends before, or does not listen in time."""
    for _ in range(1200):
        try:
            socket.create_connection(("127.0.0.1", port), timeout=5).close()
            return True
        except OSError:
            if process.poll() is not None:
                return False
            time.sleep(0.1)
    return False
