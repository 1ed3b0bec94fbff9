"""The Compose file, its image and its balancer."""

import json
import re
from importlib import resources
from typing import Any

import jsonschema
from files import COMPOSE, DOCKERFILE, HAPROXY, TOOLCHAIN, Files, seconds, tomllib


def problems(files: Files) -> list[str]:
    found = schema_problems(files.document(COMPOSE))
    if found:
        return [f"{COMPOSE}: {problem}" for problem in found]
    compose = files.document(COMPOSE)
    found += secret_problems(compose)
    found += server_problems(compose)
    found += health_problems(compose)
    found += mount_problems(compose, files)
    return [f"{COMPOSE}: {problem}" for problem in found] + balancer_problems(files) + image_problems(files)


def schema_problems(compose: Any) -> list[str]:
    vendor = resources.files("check_jsonschema") / "builtin_schemas" / "vendor" / "compose-spec.json"
    schema = json.loads(vendor.read_text(encoding="utf-8"))
    errors = jsonschema.validators.validator_for(schema)(schema).iter_errors(compose)
    return [f"{error.json_path}: {error.message}" for error in errors]


def secret_problems(compose: dict[str, Any]) -> list[str]:
    """Passwords are in files, and every file that is used is declared."""
    found = []
    declared = compose.get("secrets", {})
    for name, service in compose["services"].items():
        for variable in service.get("environment", {}):
            if re.search(r"PASSWORD|ACCOUNTS|KEY", variable) and not variable.endswith("_FILE"):
                found.append(f"{name}: {variable} is a secret in plain text")
        for variable, value in service.get("environment", {}).items():
            if re.search(r"://[^/@]*:[^/@]*@", str(value)):
                found.append(f"{name}: {variable} holds a password")
            if variable.endswith("_FILE") and value.removeprefix("/run/secrets/") not in service.get("secrets", []):
                found.append(f"{name}: {variable} names no secret of the service")
        found += [f"{name}: no secret {secret}" for secret in service.get("secrets", []) if secret not in declared]
    for name, secret in declared.items():
        if not secret.get("file", "").startswith("secrets/"):
            found.append(f"secret {name} is not a file in deploy/secrets, which git ignores")
    return found


def server_problems(compose: dict[str, Any]) -> list[str]:
    larimar, database = compose["services"]["larimar"], compose["services"]["database"]
    environment = larimar["environment"]
    found = []
    replicas = larimar["deploy"]["replicas"]
    if replicas < 3:
        found.append("fewer than three servers")
    limit = next(int(word.split("=")[1]) for word in database["command"] if word.startswith("--max_connections="))
    wanted = replicas * int(environment["LARIMAR_DATABASE_CONNECTIONS"])
    if wanted > limit - 10:
        found.append(f"{wanted} connections of the servers do not fit into max_connections={limit}")
    if seconds(larimar["stop_grace_period"]) <= seconds(environment["LARIMAR_SHUTDOWN_GRACE"]):
        found.append("stop_grace_period is not longer than LARIMAR_SHUTDOWN_GRACE")
    host = re.search(r"@([a-z]+):", environment["LARIMAR_ENGINE"])
    if not host or host[1] not in compose["services"]:
        found.append("LARIMAR_ENGINE names no service")
    return found


def health_problems(compose: dict[str, Any]) -> list[str]:
    found = []
    for name, service in compose["services"].items():
        for needed, terms in service.get("depends_on", {}).items():
            if terms.get("condition") == "service_healthy" and "healthcheck" not in compose["services"][needed]:
                found.append(f"{name} waits for {needed}, which has no health check")
    if "http://127.0.0.1:10003/ready" not in compose["services"]["larimar"].get("healthcheck", {}).get("test", []):
        found.append("larimar is not asked whether it is ready")
    return found


def mount_problems(compose: dict[str, Any], files: Files) -> list[str]:
    found = []
    for name, service in compose["services"].items():
        for volume in service.get("volumes", []):
            source = volume.split(":")[0]
            if source.startswith("./") and f"deploy/{source.removeprefix('./')}" not in files.texts:
                found.append(f"{name}: there is no {source}")
            elif not source.startswith("./") and source not in compose.get("volumes", {}):
                found.append(f"{name}: there is no volume {source}")
    return found


def balancer_problems(files: Files) -> list[str]:
    text = files.texts[HAPROXY]
    wanted = {
        "a server for each replica": r"^\s*server-template \S+ \d+ larimar:10002$",
        "the readiness of each server": r"^\s*http-check send meth GET uri /ready\b",
        "the admin port": r"^\s*default-server check port 10003\b",
    }
    found = [what for what, pattern in wanted.items() if not re.search(pattern, text, re.MULTILINE)]
    if re.search(r"^\s*retry-on", text, re.MULTILINE):
        found.append("no retry-on, which could run a write twice")
    return [f"{HAPROXY}: expected {what}" for what in found]


def image_problems(files: Files) -> list[str]:
    text = files.texts[DOCKERFILE]
    found = []
    toolchain = tomllib.loads(files.texts[TOOLCHAIN])["toolchain"]["channel"]
    if f"ARG RUST_VERSION={toolchain}\n" not in text:
        found.append(f"{DOCKERFILE}: its toolchain is not that of {TOOLCHAIN}, {toolchain}")
    last_stage = text[text.rindex("\nFROM ") :]
    if not re.search(r"^USER [1-9]\d*:[1-9]\d*$", last_stage, re.MULTILINE):
        found.append(f"{DOCKERFILE}: the server would run as root")
    return found
