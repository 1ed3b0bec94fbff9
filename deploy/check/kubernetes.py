"""The Kubernetes manifests: each against its schema, and all against each other."""

import functools
import json
from typing import Any

import kubernetes_validate
import yaml
from files import MANIFESTS, SETTINGS, Files, seconds, tomllib

TEMPLATE = f"{MANIFESTS}secret.example.yaml"
NOT_FOR_THE_CLUSTER = ("Kustomization", "Component")


def problems(files: Files) -> list[str]:
    found = []
    manifests: dict[str, Any] = {}
    for path in files.yaml_paths(MANIFESTS):
        for document in files.documents(path):
            if document.get("kind") in NOT_FOR_THE_CLUSTER:
                continue
            found += [f"{path}: {problem}" for problem in schema_problems(document)]
            manifests[document.get("kind", path)] = document
    if found:
        return found
    return [*list_problems(files), *pod_problems(files, manifests), *selector_problems(manifests)]


def schema_problems(document: Any) -> list[str]:
    """What the oldest and the newest version of Kubernetes that have schemas here would refuse."""
    return list(schema_problems_of(json.dumps(document)))


@functools.cache
def schema_problems_of(text: str) -> tuple[str, ...]:
    """Kept by the text, since a schema takes long to read and the tests ask for the same files again and again."""
    document = json.loads(text)
    versions = kubernetes_validate.utils.all_versions()
    for version in (versions[0], versions[-1]):
        try:
            kubernetes_validate.validate(document, version, strict=True)
        except kubernetes_validate.ValidationError as error:
            return (f"Kubernetes {version}: {error.json_path}: {error.message}",)
        except kubernetes_validate.SchemaNotFoundError as error:
            return (error.message,)
    return ()


def rendered_problems(text: str) -> list[str]:
    """What is wrong with the output of `kubectl kustomize`."""
    documents = [document for document in yaml.safe_load_all(text) if document is not None]
    found = [f"rendered: {problem}" for document in documents for problem in schema_problems(document)]
    kinds = {document["kind"]: document for document in documents}
    wanted = {
        "Namespace",
        "ConfigMap",
        "Deployment",
        "Service",
        "PodDisruptionBudget",
        "HorizontalPodAutoscaler",
        "NetworkPolicy",
    }
    if set(kinds) != wanted:
        return [*found, f"rendered: expected {sorted(wanted)}, found {sorted(kinds)}"]
    if "replicas" in kinds["Deployment"]["spec"]:
        found.append("rendered: the number of replicas is the autoscaler's")
    pod = kinds["Deployment"]["spec"]["template"]["spec"]
    if kinds["ConfigMap"]["metadata"]["name"] not in [v.get("configMap", {}).get("name") for v in pod["volumes"]]:
        found.append("rendered: the pods do not mount the settings")
    return [*found, *(f"rendered: {problem}" for problem in selector_problems(kinds))]


def list_problems(files: Files) -> list[str]:
    """Each kustomization names the files beside it, and only those; nobody applies the template."""
    found = []
    for path in [path for path in files.yaml_paths(MANIFESTS) if path.endswith("/kustomization.yaml")]:
        folder = path.removesuffix("kustomization.yaml")
        kustomization = files.document(path)
        named = {folder + name for name in kustomization.get("resources", [])}
        beside = {other for other in files.yaml_paths(folder) if "/" not in other.removeprefix(folder)}
        beside -= {path, TEMPLATE}
        found += [f"{path}: {other} is not there" for other in sorted(named - beside)]
        found += [f"{path}: {other} is not named" for other in sorted(beside - named)]
        for name in kustomization.get("components", []):
            if f"{folder}{name}/kustomization.yaml" not in files.texts:
                found.append(f"{path}: there is no component {name}")
        for generator in kustomization.get("configMapGenerator", []):
            found += [f"{path}: {name} is not there" for name in generator["files"] if folder + name not in files.texts]
    return found


def pod_problems(files: Files, manifests: dict[str, Any]) -> list[str]:
    path = f"{MANIFESTS}deployment.yaml"
    deployment = manifests["Deployment"]
    pod = deployment["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    found = []
    if deployment["spec"]["replicas"] < 3:
        found.append("fewer than three servers")
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    if ports != {"table": 10002, "admin": 10003}:
        found.append("the ports are not those of the server")
    for probe, page in (("startupProbe", "/health"), ("livenessProbe", "/health"), ("readinessProbe", "/ready")):
        if container.get(probe, {}).get("httpGet") != {"path": page, "port": "admin"}:
            found.append(f"{probe} does not ask for {page} on the admin port")
    settings = tomllib.loads(files.texts[SETTINGS])
    sleep = int(container["lifecycle"]["preStop"]["exec"]["command"][1])
    if pod["terminationGracePeriodSeconds"] <= sleep + seconds(settings["shutdown_grace"]):
        found.append("terminationGracePeriodSeconds is not longer than preStop and shutdown_grace together")
    if not container.get("resources", {}).get("requests", {}).get("cpu"):
        found.append("no request for CPU, which the autoscaler needs")
    found += secret_problems(pod, container, settings, manifests["Secret"])
    return [f"{path}: {problem}" for problem in found]


def secret_problems(pod: Any, container: Any, settings: dict[str, Any], secret: Any) -> list[str]:
    """The pod asks for keys that the template has, and the settings name files that are mounted."""
    found = []
    items = next(volume["secret"] for volume in pod["volumes"] if volume["name"] == "secrets")["items"]
    mounted = next(mount["mountPath"] for mount in container["volumeMounts"] if mount["name"] == "secrets")
    references = [variable["valueFrom"]["secretKeyRef"] for variable in container["env"]]
    for key in [item["key"] for item in items] + [reference["key"] for reference in references]:
        if key not in secret["stringData"]:
            found.append(f"the Secret's template has no {key}")
    there = [f"{mounted}/{item['path']}" for item in items]
    root = settings["engine"].partition("sslrootcert=")[2].partition("&")[0]
    for name in (settings["database_password_file"], root):
        if name not in there:
            found.append(f"{name} of the settings is not mounted")
    if "sslmode=verify-full" not in settings["engine"]:
        found.append("the database's certificate is not checked in full")
    return found


def selector_problems(manifests: dict[str, Any]) -> list[str]:
    labels = manifests["Deployment"]["spec"]["template"]["metadata"]["labels"]
    selectors = {
        "Deployment": manifests["Deployment"]["spec"]["selector"]["matchLabels"],
        "Service": manifests["Service"]["spec"]["selector"],
        "PodDisruptionBudget": manifests["PodDisruptionBudget"]["spec"]["selector"]["matchLabels"],
        "NetworkPolicy": manifests["NetworkPolicy"]["spec"]["podSelector"]["matchLabels"],
    }
    found = [f"{kind} selects other pods" for kind, wanted in selectors.items() if not wanted.items() <= labels.items()]
    scaled = manifests["HorizontalPodAutoscaler"]["spec"]["scaleTargetRef"]
    if (scaled["kind"], scaled["name"]) != ("Deployment", manifests["Deployment"]["metadata"]["name"]):
        found.append("HorizontalPodAutoscaler scales something else")
    return found
