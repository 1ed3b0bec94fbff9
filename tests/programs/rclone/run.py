"""rclone against a running server: a tree goes in and comes out through its azureblob backend, byte for byte.

LARIMAR_BLOB_ENDPOINT names the server, whose account is the development account. Only the standard library is used.
"""

import hashlib
import os
import random
import subprocess
import tempfile
import uuid
from pathlib import Path

PATIENCE = 600
MIB = 1024 * 1024

# Name and size of every file; the largest is sent in blocks.
FILES = {
    "empty": 0,
    "one byte": 1,
    "deep/er/and/deeper/still.txt": 1000,
    "names/with space & ampersand.txt": 10,
    "names/per%cent %20 + plus.txt": 10,
    "names/Grüße 世界 🦀.txt": 10,
    "names/quote's, (brackets) [and] {braces}.txt": 10,
    "names/UPPER": 3,
    "names/upper": 4,
    "names/empty too": 0,
    "large/5 MiB.bin": 5 * MIB + 1,
    "large/70 MiB.bin": 70 * MIB + 17,
    **{f"many/{number:03}.txt": number for number in range(200)},
}


def rclone(*arguments):
    environment = {**os.environ, "RCLONE_CONFIG": os.devnull, "LC_ALL": "C.UTF-8"}
    command = ["rclone", *map(str, arguments), "--retries", "1", "--stats", "0"]
    print(f"$ {' '.join(command)}", flush=True)
    ended = subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE, timeout=PATIENCE)
    return ended.stdout.decode()


def make(tree):
    for name, size in FILES.items():
        path = tree / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(random.Random(name).randbytes(size))


def contents(tree):
    files = (path for path in tree.rglob("*") if path.is_file())
    return {str(path.relative_to(tree)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def main():
    endpoint = os.environ["LARIMAR_BLOB_ENDPOINT"]
    container = "rclone" + uuid.uuid4().hex[:12]
    remote = f":azureblob,use_emulator,endpoint='{endpoint}':{container}"
    with tempfile.TemporaryDirectory() as folder:
        source, target, moved = (Path(folder) / name for name in ("source", "target", "moved"))
        make(source)
        wanted = contents(source)
        assert len(wanted) == len(FILES)

        rclone("mkdir", remote)
        rclone("copy", source, remote, "--azureblob-chunk-size", "4M", "--azureblob-upload-concurrency", "4")
        # Sizes and checksums as the server tells them, then the bytes themselves.
        rclone("check", source, remote)
        rclone("check", source, remote, "--download")
        listed = rclone("lsf", "--recursive", "--files-only", remote).splitlines()
        assert sorted(listed) == sorted(wanted), sorted(set(listed) ^ set(wanted))

        rclone("copy", remote, target)
        assert contents(target) == wanted, "what came back differs"

        # A second copy finds nothing to do, a change and a removal are carried over.
        (source / "names" / "UPPER").write_bytes(b"changed")
        (source / "many" / "000.txt").unlink()
        rclone("sync", source, remote)
        rclone("sync", remote, target)
        assert contents(target) == contents(source), "what was synchronised differs"

        # The server's own copies.
        rclone("moveto", f"{remote}/large", f"{remote}/elsewhere")
        rclone("copy", f"{remote}/elsewhere", moved)
        assert contents(moved) == contents(source / "large"), "what was moved differs"
        assert rclone("lsf", f"{remote}/large") == ""
        rclone("purge", remote)
    version = rclone("version").split()[1].lstrip("v")
    print(f"result: rclone {version}: trees copied, checked, synchronised, moved and purged")


if __name__ == "__main__":
    main()
