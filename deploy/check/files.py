"""The files that are checked, as texts and as parsed YAML."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from yamllint import linter
from yamllint.config import YamlLintConfig

try:
    import tomllib
except ModuleNotFoundError:  # before Python 3.11
    import tomli as tomllib

COMPOSE = "deploy/compose.yaml"
HAPROXY = "deploy/haproxy.cfg"
DOCKERFILE = "deploy/Dockerfile"
MANIFESTS = "deploy/kubernetes/"
SETTINGS = "deploy/kubernetes/larimar.toml"
GUIDE = "docs/scale-out.md"
TOOLCHAIN = "rust-toolchain.toml"

LINT = YamlLintConfig("{extends: default, rules: {line-length: {max: 120}, document-start: disable}}")


@dataclass(frozen=True)
class Files:
    """Paths from the root of the checkout, with what is in them."""

    texts: dict[str, str]

    def yaml_paths(self, below: str = "") -> list[str]:
        return sorted(path for path in self.texts if path.endswith((".yaml", ".yml")) and path.startswith(below))

    def documents(self, path: str) -> list[Any]:
        return [document for document in yaml.safe_load_all(self.texts[path]) if document is not None]

    def document(self, path: str) -> Any:
        return self.documents(path)[0]

    def parse_problems(self) -> list[str]:
        """YAML that does not parse, says a key twice, or is not in the house style."""
        found = []
        for path in self.yaml_paths():
            found += [f"{path}:{problem.line}: {problem.desc}" for problem in linter.run(self.texts[path], LINT)]
        return found

    def replaced(self, path: str, old: str, new: str) -> "Files":
        """A copy with one text changed, for tests."""
        if old not in self.texts[path]:
            raise ValueError(f"{path} does not say {old!r}")
        return Files({**self.texts, path: self.texts[path].replace(old, new)})


def read_files(root: Path) -> Files:
    """The files of a checkout; secrets and installed packages are left alone."""
    paths = [root / GUIDE, root / TOOLCHAIN]
    for path in sorted((root / "deploy").rglob("*")):
        parts = path.relative_to(root / "deploy").parts
        if path.is_file() and parts[0] not in ("secrets", "check"):
            paths.append(path)
    return Files({path.relative_to(root).as_posix(): path.read_text(encoding="utf-8") for path in paths})


def seconds(text: str) -> float:
    """A span of time such as `30s`, `2m` or `500ms`."""
    match = re.fullmatch(r"(\d+)(ms|s|m|h)", text)
    if not match:
        raise ValueError(f"no span of time: {text!r}")
    return int(match[1]) * {"ms": 0.001, "s": 1, "m": 60, "h": 3600}[match[2]]
