"""adlfs against a running server: files in and out, folders, attributes (metadata and content types), appends, copies.

LARIMAR_CONNECTION_STRING names the server.
"""

import os
import random
import tempfile
import uuid
from pathlib import Path

from adlfs import AzureBlobFileSystem, __version__
from azure.storage.blob import BlobServiceClient, ContentSettings

MIB = 1024 * 1024


def attributes(azure, container):
    path = f"{container}/attributes.txt"
    with azure.open(path, "wb", metadata={"colour": "red"}, content_settings=ContentSettings("text/x-test")) as out:
        out.write(b"content")
    info = azure.info(path)
    assert (info["size"], info["metadata"], info["content_settings"]["content_type"]) == (7, {"colour": "red"}, "text/x-test"), info
    azure.setxattrs(path, colour="blue", shape="round")
    azure.invalidate_cache()
    assert (azure.getxattr(path, "colour"), azure.getxattr(path, "shape")) == ("blue", "round")
    assert azure.cat_file(path) == b"content"
    assert azure.created(path) <= azure.modified(path)
    [listed] = [entry for entry in azure.ls(container, detail=True) if entry["name"] == path]
    assert listed["metadata"] == {"colour": "blue", "shape": "round"}, listed


def files(azure, container, folder):
    sizes = {"empty": 0, "a/one": 1, "a/b/Grüße & 世界.bin": 1000, "large.bin": 9 * MIB + 5}
    contents = {name: random.Random(name).randbytes(size) for name, size in sizes.items()}
    for name, data in contents.items():
        (folder / "up" / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / "up" / name).write_bytes(data)
    azure.put(f"{folder}/up/", f"{container}/tree/", recursive=True)
    found = azure.find(f"{container}/tree", detail=True)
    assert {name.removeprefix(f"{container}/tree/"): entry["size"] for name, entry in found.items()} == sizes, found
    azure.get(f"{container}/tree/", f"{folder}/down/", recursive=True)
    for name, data in contents.items():
        assert (folder / "down" / name).read_bytes() == data, name
    assert azure.cat_file(f"{container}/tree/large.bin", start=MIB, end=MIB + 100) == contents["large.bin"][MIB : MIB + 100]
    assert azure.glob(f"{container}/tree/a/**/*.bin") == [f"{container}/tree/a/b/Grüße & 世界.bin"]
    azure.copy(f"{container}/tree/large.bin", f"{container}/copy.bin")
    azure.mv(f"{container}/copy.bin", f"{container}/moved.bin")
    assert azure.cat_file(f"{container}/moved.bin") == contents["large.bin"]
    assert not azure.exists(f"{container}/copy.bin")
    with azure.open(f"{container}/log", "ab") as out:
        out.write(b"one,")
    with azure.open(f"{container}/log", "ab") as out:
        out.write(b"two")
    assert azure.cat_file(f"{container}/log") == b"one,two"
    azure.rm(f"{container}/tree", recursive=True)
    assert not azure.exists(f"{container}/tree/a/one")


def main():
    connection = os.environ["LARIMAR_CONNECTION_STRING"]
    azure = AzureBlobFileSystem(connection_string=connection)
    container = "adlfs" + uuid.uuid4().hex[:12]
    azure.mkdir(container)
    attributes(azure, container)
    with tempfile.TemporaryDirectory() as folder:
        files(azure, container, Path(folder))
    client = BlobServiceClient.from_connection_string(connection).get_container_client(container)
    left = sorted(blob.name for blob in client.list_blobs())
    assert left == ["attributes.txt", "log", "moved.bin"], left
    azure.rmdir(container)
    assert not client.exists()
    print(f"result: adlfs {__version__}: files, folders, ranges, appends and attributes")


if __name__ == "__main__":
    main()
