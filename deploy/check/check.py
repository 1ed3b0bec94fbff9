"""Checks the files in deploy/ against their schemas, the server's settings and each other.

    python check.py --larimar target/debug/larimar [--tool kubectl] [--tool haproxy] [--tool promtool]

Prints a line for each problem and ends with 1 if there is one. Nothing here talks to a cluster or to Docker.
`test_check.py` shows that each check can fail.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import compose
import grafana
import kubernetes
import settings
from files import Files, read_files

ROOT = Path(__file__).resolve().parents[2]
TOOL_SECONDS_MAX = 60


def problems_of(files: Files, larimar: settings.Larimar) -> list[str]:
    """Everything that is wrong with these files."""
    found = [*files.parse_problems()]
    if found:
        return found  # What cannot be read cannot be checked either.
    found += compose.problems(files)
    found += kubernetes.problems(files)
    found += grafana.problems(files)
    found += settings.problems(files, larimar)
    return found


def larimar_at(binary: Path) -> settings.Larimar:
    """Calls the server's binary, in a folder and an environment without settings."""

    def call(arguments: list[str], variables: dict[str, str]) -> tuple[int, str]:
        clean = {name: value for name, value in os.environ.items() if not name.startswith(("LARIMAR_", "AZURITE_"))}
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run(
                [binary, *arguments],
                env={**clean, **variables},
                cwd=folder,
                capture_output=True,
                text=True,
                timeout=TOOL_SECONDS_MAX,
                check=False,
            )
        return done.returncode, done.stdout + done.stderr

    return call


def tool_problems(tool: str) -> list[str]:
    """What a tool of the machine says, where it works on files alone."""
    commands = {
        "kubectl": ["kubectl", "kustomize", "deploy/kubernetes"],
        "haproxy": ["haproxy", "-c", "-f", "deploy/haproxy.cfg"],
        "promtool": ["promtool", "test", "rules", "tests/programs/prometheus/alerts_test.yml"],
    }
    done = subprocess.run(
        commands[tool], cwd=ROOT, capture_output=True, text=True, timeout=TOOL_SECONDS_MAX, check=False
    )
    if done.returncode != 0:
        return [f"{' '.join(commands[tool])}: {(done.stdout + done.stderr).strip()}"]
    return kubernetes.rendered_problems(done.stdout) if tool == "kubectl" else []


def main() -> int:
    parser = argparse.ArgumentParser(description="Checks the files in deploy/")
    parser.add_argument("--larimar", type=Path, required=True, help="the server's binary")
    parser.add_argument("--tool", action="append", default=[], choices=["kubectl", "haproxy", "promtool"])
    options = parser.parse_args()
    files = read_files(ROOT)
    found = problems_of(files, larimar_at(options.larimar.resolve()))
    for tool in options.tool:
        found += tool_problems(tool)
    for problem in found:
        print(f"deploy: {problem}")
    print(f"deploy: {len(files.texts)} files, {len(found)} problems")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
