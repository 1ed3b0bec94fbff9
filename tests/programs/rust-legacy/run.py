"""The Rust crates of the service against a running server: `cargo run` in this folder, with its own lock file.

LARIMAR_TARGET names the folder for what is compiled.
"""

import os
import subprocess
from pathlib import Path


def main():
    environment = {**os.environ, "CARGO_TARGET_DIR": os.environ["LARIMAR_TARGET"], "CARGO_PROFILE_DEV_DEBUG": "0"}
    for name in ("CARGO", "CARGO_MANIFEST_DIR", "RUSTFLAGS"):
        environment.pop(name, None)
    subprocess.run(["cargo", "run", "--quiet", "--locked"], cwd=Path(__file__).parent, env=environment, check=True)


if __name__ == "__main__":
    main()
