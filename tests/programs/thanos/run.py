"""thanos' acceptance test for object stores on its Azure provider, against a running server: `go test` in this folder."""

import os
import subprocess
import sys
from pathlib import Path

SKIPPED = 77


def main():
    module = "github.com/thanos-io/objstore"
    loaded = subprocess.run(["go", "list", "-m", "-f", "{{.Version}}", module], capture_output=True, text=True)
    if loaded.returncode != 0:
        print(" ".join(loaded.stderr.split()))
        sys.exit(SKIPPED)
    environment = {**os.environ, "GOTMPDIR": os.environ.get("TMPDIR", "/tmp")}
    command = ["go", "test", "-count=1", "-v", "./..."]
    ended = subprocess.run(command, cwd=Path(__file__).parent, env=environment, stdout=subprocess.PIPE, text=True)
    print(ended.stdout)
    assert ended.returncode == 0 and "--- PASS: TestAcceptance" in ended.stdout
    # The module has no releases; its version ends with the date and the commit.
    date = loaded.stdout.strip().split("-")[1][:8]
    print(f"result: thanos objstore of {date}: its acceptance test for object stores")


if __name__ == "__main__":
    main()
