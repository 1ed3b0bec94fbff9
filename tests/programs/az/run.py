"""The Azure CLI against a running server: `az storage table/entity/queue/message/container/blob …` with a connection
string, each answer compared with what was written.

LARIMAR_CONNECTION_STRING names the server. The first command is run by the program `az`, the others by what that
program calls, all in one process: the interpreter takes longer to start than the commands need.
"""

import contextlib
import hashlib
import io
import json
import os
import random
import subprocess
import sys
import tempfile
import uuid
from pathlib import Path

AZ = Path(sys.executable).with_name("az")
PATIENCE = 300


class Az:
    """Runs `az storage …` and reads the JSON it prints."""

    def __init__(self, folder):
        os.environ.update({
            "AZURE_STORAGE_CONNECTION_STRING": os.environ["LARIMAR_CONNECTION_STRING"],
            "AZURE_CONFIG_DIR": str(folder / "config"),
            "AZURE_CORE_COLLECT_TELEMETRY": "0",
            "AZURE_CORE_ONLY_SHOW_ERRORS": "1",
            "AZURE_CORE_OUTPUT": "json",
        })
        self.runs = 0
        # One for all commands: the CLI keeps writing to where it wrote first.
        self.complaints = io.StringIO()
        index_storage_only(folder / "config")

    def program(self, *arguments):
        """By the program itself."""
        self.runs += 1
        command = [AZ, "storage", *map(str, arguments)]
        return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, timeout=PATIENCE).stdout)

    def invoke(self, *arguments):
        """Exit code, output and complaints of a command."""
        from azure.cli.core import get_default_cli

        self.runs += 1
        output = io.StringIO()
        self.complaints.seek(0)
        self.complaints.truncate()
        with contextlib.redirect_stderr(self.complaints):
            try:
                ended = get_default_cli().invoke(["storage", *map(str, arguments)], out_file=output)
            except SystemExit as exit:
                ended = exit.code
        return ended, output.getvalue(), self.complaints.getvalue()

    def __call__(self, *arguments):
        ended, output, complaints = self.invoke(*arguments)
        text = f"az storage {' '.join(map(str, arguments))}"
        assert not ended, f"{text}\nended with {ended}: {complaints}"
        print(f"ok  {text}", flush=True)
        return json.loads(output) if output.strip() else None

    def refused(self, why, *arguments):
        """The command fails, and says so."""
        ended, output, complaints = self.invoke(*arguments)
        text = f"az storage {' '.join(map(str, arguments))}"
        assert ended, f"{text}\nwas not refused: {output}"
        assert why in complaints, f"{text}\nwas refused, but not with {why}:\n{complaints}"
        print(f"ok  {text}: {why}", flush=True)


def index_storage_only(config):
    """Tells the CLI where its storage commands are, so that it does not look for packages of all the others."""
    from azure.cli.core import __version__

    config.mkdir()
    index = {"storage": ["azure.cli.command_modules.storage"]}
    text = json.dumps({"version": __version__, "cloudProfile": "latest", "commandIndex": index})
    (config / "commandIndex.json").write_text(text)


def equal(got, wanted):
    assert got == wanted, f"expected {wanted!r}, got {got!r}"


def name():
    return "az" + uuid.uuid4().hex[:20]


def tables(az):
    table = name()
    equal(az("table", "create", "-n", table), {"created": True})
    equal(az("table", "exists", "-n", table), {"exists": True})
    assert {"name": table} in [{"name": item["name"]} for item in az("table", "list")]

    def insert(row, *properties):
        return az("entity", "insert", "-t", table, "--entity", "PartitionKey=p", f"RowKey={row}", *properties)

    insert("1", "Age=39", "Age@odata.type=Edm.Int32", "Name=Grüße & 世界", "Big=9007199254740993",
           "Big@odata.type=Edm.Int64", "Open=true", "Open@odata.type=Edm.Boolean")
    insert("2", "Age=40", "Age@odata.type=Edm.Int32", "Name=two")
    shown = az("entity", "show", "-t", table, "--partition-key", "p", "--row-key", "1")
    equal((shown["Age"], shown["Name"], shown["Open"]), (39, "Grüße & 世界", True))
    equal(int(shown["Big"]["value"] if isinstance(shown["Big"], dict) else shown["Big"]), 9007199254740993)
    found = az("entity", "query", "-t", table, "--filter", "PartitionKey eq 'p' and Age gt 39")
    equal([item["RowKey"] for item in found["items"]], ["2"])
    pages = az("entity", "query", "-t", table, "--num-results", "1")
    equal([item["RowKey"] for item in pages["items"]], ["1"])
    rest = az("entity", "query", "-t", table, "--marker", *[f"{key}={value}" for key, value in pages["nextMarker"].items()])
    equal([item["RowKey"] for item in rest["items"]], ["2"])
    az("entity", "merge", "-t", table, "--entity", "PartitionKey=p", "RowKey=2", "More=yes")
    equal(az("entity", "show", "-t", table, "--partition-key", "p", "--row-key", "2", "--select", "Name", "More")["Name"],
          "two")
    az("entity", "replace", "-t", table, "--entity", "PartitionKey=p", "RowKey=2", "Only=this")
    assert "Name" not in az("entity", "show", "-t", table, "--partition-key", "p", "--row-key", "2")
    az.refused("already exists", "entity", "insert", "-t", table, "--entity", "PartitionKey=p", "RowKey=2")
    az("entity", "delete", "-t", table, "--partition-key", "p", "--row-key", "2")
    az.refused("does not exist", "entity", "show", "-t", table, "--partition-key", "p", "--row-key", "2")
    az("table", "policy", "create", "-t", table, "-n", "policy", "--permissions", "r", "--expiry", "2120-01-01T00:00Z")
    assert "policy" in az("table", "policy", "list", "-t", table)
    equal(az("table", "delete", "-n", table), {"deleted": True})
    equal(az("table", "exists", "-n", table), {"exists": False})


def queues(az):
    queue = name()
    equal(az("queue", "create", "-n", queue, "--metadata", "colour=red"), {"created": True})
    equal(az("queue", "exists", "-n", queue), {"exists": True})
    assert queue in [item["name"] for item in az("queue", "list", "--prefix", queue)]
    equal(az("queue", "metadata", "show", "-n", queue), {"colour": "red"})
    az("queue", "metadata", "update", "-n", queue, "--metadata", "colour=blue", "size=5")
    equal(az("queue", "metadata", "show", "-n", queue), {"colour": "blue", "size": "5"})

    put = az("message", "put", "-q", queue, "--content", "first <&> 世界")
    az("message", "put", "-q", queue, "--content", "second", "--time-to-live", "-1")
    peeked = az("message", "peek", "-q", queue, "--num-messages", "32")
    equal([item["content"] for item in peeked], ["first <&> 世界", "second"])
    equal(peeked[0]["id"], put["id"])
    [got] = az("message", "get", "-q", queue, "--visibility-timeout", "600")
    equal((got["content"], got["dequeueCount"]), ("first <&> 世界", 1))
    az("message", "update", "-q", queue, "--id", got["id"], "--pop-receipt", got["popReceipt"], "--content", "changed",
       "--visibility-timeout", "0")
    contents = sorted(item["content"] for item in az("message", "peek", "-q", queue, "--num-messages", "32"))
    equal(contents, ["changed", "second"])
    az.refused("PopReceiptMismatch", "message", "delete", "-q", queue, "--id", got["id"], "--pop-receipt",
               got["popReceipt"])
    for item in az("message", "get", "-q", queue, "--num-messages", "1"):
        az("message", "delete", "-q", queue, "--id", item["id"], "--pop-receipt", item["popReceipt"])
    az("message", "clear", "-q", queue)
    equal(az("message", "peek", "-q", queue), [])
    az("queue", "policy", "create", "-q", queue, "-n", "policy", "--permissions", "rp", "--expiry", "2120-01-01T00:00Z")
    assert "policy" in az("queue", "policy", "list", "-q", queue)
    equal(az("queue", "delete", "-n", queue), {"deleted": True})
    equal(az("queue", "exists", "-n", queue), {"exists": False})


def containers(az):
    container = name()
    equal(az("container", "create", "-n", container, "--metadata", "colour=red"), {"created": True})
    equal(az("container", "exists", "-n", container), {"exists": True})
    assert container in [item["name"] for item in az("container", "list", "--prefix", container)]
    equal(az("container", "metadata", "show", "-n", container), {"colour": "red"})
    az("container", "metadata", "update", "-n", container, "--metadata", "colour=blue")
    equal(az("container", "show", "-n", container)["metadata"], {"colour": "blue"})
    az("container", "set-permission", "-n", container, "--public-access", "blob")
    equal(az("container", "show-permission", "-n", container), {"publicAccess": "blob"})
    az("container", "policy", "create", "-c", container, "-n", "policy", "--permissions", "rl", "--expiry",
       "2120-01-01T00:00Z")
    assert "policy" in az("container", "policy", "list", "-c", container)
    lease = az("container", "lease", "acquire", "-c", container, "--lease-duration", "60")
    az.refused("LeaseIdMissing", "container", "delete", "-n", container)
    az("container", "lease", "release", "-c", container, "--lease-id", lease)
    equal(az("container", "delete", "-n", container), {"deleted": True})
    equal(az("container", "exists", "-n", container), {"exists": False})


def blobs(az, folder):
    container = name()
    az("container", "create", "-n", container)
    in_container = ("-c", container)
    source, target = folder / "source.bin", folder / "target.bin"
    source.write_bytes(random.Random(4).randbytes(3_000_000))
    az("blob", "upload", *in_container, "-n", "dir/a b.bin", "-f", source, "--metadata", "a=b", "--content-type", "x/y")
    equal(az("blob", "exists", *in_container, "-n", "dir/a b.bin"), {"exists": True})
    shown = az("blob", "show", *in_container, "-n", "dir/a b.bin")
    equal((shown["properties"]["contentLength"], shown["metadata"]), (3_000_000, {"a": "b"}))
    equal(shown["properties"]["contentSettings"]["contentType"], "x/y")
    az("blob", "download", *in_container, "-n", "dir/a b.bin", "-f", target)
    equal(digest(target), digest(source))
    az.refused("BlobAlreadyExists", "blob", "upload", *in_container, "-n", "dir/a b.bin", "-f", source)
    az("blob", "upload", *in_container, "-n", "dir/a b.bin", "-f", source, "--overwrite")
    az("blob", "metadata", "update", *in_container, "-n", "dir/a b.bin", "--metadata", "c=d")
    equal(az("blob", "metadata", "show", *in_container, "-n", "dir/a b.bin"), {"c": "d"})
    az("blob", "update", *in_container, "-n", "dir/a b.bin", "--content-type", "text/plain")
    az("blob", "set-tier", *in_container, "-n", "dir/a b.bin", "--tier", "Cool")

    snapshot = az("blob", "snapshot", *in_container, "-n", "dir/a b.bin")["snapshot"]
    listed = az("blob", "list", *in_container, "--include", "s")
    equal({(item["name"], item["snapshot"]) for item in listed}, {("dir/a b.bin", snapshot), ("dir/a b.bin", None)})
    az("blob", "copy", "start", "--destination-container", container, "--destination-blob", "copy", "--source-container",
       container, "--source-blob", "dir/a b.bin")
    copied = az("blob", "show", *in_container, "-n", "copy")["properties"]
    equal((copied["copy"]["status"], copied["contentSettings"]["contentType"]), ("success", "text/plain"))
    lease = az("blob", "lease", "acquire", *in_container, "-b", "copy", "--lease-duration", "60")
    az.refused("LeaseIdMissing", "blob", "delete", *in_container, "-n", "copy")
    az("blob", "delete", *in_container, "-n", "copy", "--lease-id", lease)
    az("blob", "delete", *in_container, "-n", "dir/a b.bin", "--delete-snapshots", "include")

    for kind, size in (("append", 100_000), ("page", 1024 * 1024)):
        source.write_bytes(random.Random(size).randbytes(size))
        az("blob", "upload", *in_container, "-n", kind, "-f", source, "--type", kind)
        az("blob", "download", *in_container, "-n", kind, "-f", target)
        equal(digest(target), digest(source))
    batches(az, container, folder)
    az("container", "delete", "-n", container)


def batches(az, container, folder):
    """Many files at once, by a signature that the CLI makes itself."""
    tree, back = folder / "tree", folder / "back"
    for number in range(6):
        path = tree / f"d{number % 2}" / f"file é {number}.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"content {number}\n")
    (tree / "empty").write_text("")
    back.mkdir()
    az("blob", "upload-batch", "-d", container, "--destination-path", "batch", "-s", tree)
    az("blob", "download-batch", "-s", container, "-d", back, "--pattern", "batch/*")
    wanted = {str(path.relative_to(tree)): path.read_bytes() for path in tree.rglob("*") if path.is_file()}
    got = {str(path.relative_to(back / "batch")): path.read_bytes() for path in back.rglob("*") if path.is_file()}
    equal(got, wanted)
    listed = az("blob", "list", "-c", container, "--prefix", "batch/", "--delimiter", "/")
    equal(sorted(item["name"] for item in listed), ["batch/d0/", "batch/d1/", "batch/empty"])

    sas = az("container", "generate-sas", "-n", container, "--permissions", "rl", "--expiry", "2120-01-01T00:00Z")
    endpoint = os.environ["LARIMAR_BLOB_ENDPOINT"]
    az("blob", "download", "--blob-url", f"{endpoint}/{container}/batch/empty?{sas}", "-f", folder / "by sas")
    equal((folder / "by sas").read_bytes(), b"")
    az("blob", "delete-batch", "-s", container, "--pattern", "batch/*")
    equal(az("blob", "list", "-c", container, "--prefix", "batch/"), [])


def services(az):
    before = az("cors", "list", "--services", "bqt")
    az("cors", "add", "--services", "bqt", "--methods", "GET", "PUT", "--origins", "http://one.example", "--max-age", "60")
    added = [item for item in az("cors", "list", "--services", "bqt") if item not in before]
    equal(sorted(item["Service"] for item in added), ["blob", "queue", "table"])
    az("cors", "clear", "--services", "bqt")
    equal(az("cors", "list", "--services", "bqt"), [])
    logging = az("logging", "show", "--services", "bqt")
    equal(sorted(logging), ["blob", "queue", "table"])


def version():
    from azure.cli.core import __version__

    return __version__


def digest(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def main():
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        az = Az(folder)
        assert isinstance(az.program("container", "list"), list)
        tables(az)
        queues(az)
        containers(az)
        blobs(az, folder)
        services(az)
        print(f"{az.runs} commands of az did what they were asked to")
        print(f"result: Azure CLI {version()}: `az storage` for tables, queues, containers and blobs")


if __name__ == "__main__":
    main()
