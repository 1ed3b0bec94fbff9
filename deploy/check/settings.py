"""Settings of the server that the files name: all exist, and the server takes their values."""

import re
import tempfile
from collections.abc import Callable
from pathlib import Path

from files import COMPOSE, GUIDE, SETTINGS, Files

# Arguments and variables in; exit code and output back.
Larimar = Callable[[list[str], dict[str, str]], tuple[int, str]]


def problems(files: Files, larimar: Larimar) -> list[str]:
    return [*variable_problems(files, larimar), *compose_problems(files, larimar), *toml_problems(files, larimar)]


def variable_problems(files: Files, larimar: Larimar) -> list[str]:
    """The server refuses only variables that are similar to a setting; here each has to be one."""
    _, help_text = larimar(["--help"], {})
    flags = re.findall(r"^ +--([a-z-]+)", help_text, re.MULTILINE)
    known = {f"LARIMAR_{flag.upper().replace('-', '_')}" for flag in flags}
    known |= set(re.findall(r"LARIMAR_[A-Z_]+", help_text))
    found = []
    for path, text in sorted(files.texts.items()):
        for name in sorted(set(re.findall(r"LARIMAR_[A-Z_]+", text)) - known):
            found.append(f"{path}: {name} is no variable that `larimar --help` tells of")
    return found


def compose_problems(files: Files, larimar: Larimar) -> list[str]:
    variables = files.document(COMPOSE)["services"]["larimar"]["environment"]
    return refusal(COMPOSE, larimar(["config"], {name: str(value) for name, value in variables.items()}))


def toml_problems(files: Files, larimar: Larimar) -> list[str]:
    texts = {SETTINGS: files.texts[SETTINGS]}
    blocks = re.findall(r"^```toml\n(.*?)^```$", files.texts[GUIDE], re.MULTILINE | re.DOTALL)
    texts |= {f"{GUIDE}, TOML block {number}": text for number, text in enumerate(blocks, 1)}
    found = []
    for name, text in texts.items():
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "larimar.toml"
            file.write_text(text, encoding="utf-8")
            found += refusal(name, larimar(["config", "--config", str(file)], {}))
    return found


def refusal(name: str, outcome: tuple[int, str]) -> list[str]:
    code, output = outcome
    return [] if code == 0 else [f"{name}: larimar config: {output.strip()}"]
