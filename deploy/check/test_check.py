"""Each check can fail: the committed files have no problem, and each of these changes makes one."""

import tempfile
import unittest
from pathlib import Path

import check
import kubernetes
from files import COMPOSE, DOCKERFILE, GUIDE, HAPROXY, MANIFESTS, SETTINGS, TOOLCHAIN, read_files
from grafana import DASHBOARD

FILES = read_files(check.ROOT)
DEPLOYMENT = f"{MANIFESTS}deployment.yaml"


def agreeable(arguments: list[str], variables: dict[str, str]) -> tuple[int, str]:
    """A server that knows the variables of the committed files and takes everything, save the word `refused`."""
    if arguments == ["--help"]:
        return 0, "\n".join(FILES.texts.values())
    texts = [str(variables)] + [Path(name).read_text(encoding="utf-8") for name in arguments[2:3]]
    return (1, "it is refused") if any("refused" in text for text in texts) else (0, "")


# What is changed where, and a piece of the complaint.
CHANGES = [
    (COMPOSE, "services:\n", "services: [\n", "syntax error"),
    (COMPOSE, "    restart: unless-stopped\n", "    restart: always\n    restart: unless-stopped\n", "duplication"),
    (COMPOSE, "    healthcheck:\n", "    healthcheque:\n", "healthcheque"),
    (COMPOSE, "POSTGRES_PASSWORD_FILE: /run/secrets/superuser_password", "POSTGRES_PASSWORD: x", "plain text"),
    (COMPOSE, "postgres://larimar@", "postgres://larimar:word@", "holds a password"),
    (COMPOSE, "secrets: [superuser_password, database_password]", "secrets: [superuser]", "no secret superuser"),
    (COMPOSE, "secrets: [database_password]", "secrets: []", "names no secret"),
    (COMPOSE, "file: secrets/", "file: ", "git ignores"),
    (COMPOSE, "replicas: 3", "replicas: 30", "do not fit"),
    (COMPOSE, "replicas: 3", "replicas: 2", "fewer than three"),
    (COMPOSE, "stop_grace_period: 45s", "stop_grace_period: 30s", "stop_grace_period"),
    (COMPOSE, "larimar@database:", "larimar@elsewhere:", "names no service"),
    (COMPOSE, ":10003/ready", ":10003/health", "whether it is ready"),
    (COMPOSE, "./haproxy.cfg:", "./nginx.conf:", "there is no ./nginx.conf"),
    (COMPOSE, "LARIMAR_LOG_FORMAT", "LARIMAR_LOG_FROMAT", "LARIMAR_LOG_FROMAT"),
    (COMPOSE, "LARIMAR_LOG_FORMAT: json", "LARIMAR_LOG_FORMAT: refused", "it is refused"),
    (HAPROXY, "uri /ready", "uri /", "readiness"),
    (HAPROXY, "larimar:10002", "larimar:10001", "each replica"),
    (HAPROXY, "    retries 2\n", "    retries 2\n    retry-on all-retryable-errors\n", "twice"),
    (DASHBOARD, '"fieldConfig"', '"fieldConfigs"', "no field /panels/1/fieldConfigs"),
    (DASHBOARD, '"legendFormat"', '"legend"', "no field /panels/1/targets/0/legend"),
    (DASHBOARD, '"panels": [', '"panels": {', "do not read it"),
    (DOCKERFILE, "ARG RUST_VERSION=", "ARG RUST_VERSION=0", "toolchain"),
    (DOCKERFILE, "USER 10001:10001", "USER 0:0", "root"),
    (DEPLOYMENT, "periodSeconds: 10", "periodSeconds: ten", "periodSeconds"),
    (DEPLOYMENT, "terminationGracePeriodSeconds: 60", "terminationGracePeriod: 60", "terminationGracePeriod"),
    (DEPLOYMENT, "terminationGracePeriodSeconds: 60", "terminationGracePeriodSeconds: 40", "not longer"),
    (DEPLOYMENT, "kind: Deployment", "kind: Deploymint", "schema"),
    (DEPLOYMENT, "path: /ready", "path: /health", "readinessProbe"),
    (DEPLOYMENT, "startupProbe", "livenessProbe", "duplication"),
    (DEPLOYMENT, "containerPort: 10003", "containerPort: 10004", "ports"),
    (DEPLOYMENT, "key: accounts", "key: account", "has no account"),
    (DEPLOYMENT, "replicas: 3", "replicas: 1", "fewer than three"),
    (DEPLOYMENT, '              cpu: "1"\n', "", "autoscaler needs"),
    (SETTINGS, "secrets/database-password", "secrets/password", "not mounted"),
    (SETTINGS, "verify-full", "require", "in full"),
    (SETTINGS, 'log_format = "json"', 'log_format = "refused"', "it is refused"),
    (GUIDE, "database_connections = 32", 'database_connections = "refused"', "it is refused"),
    (GUIDE, "LARIMAR_DATABASE_PASSWORD`", "LARIMAR_PASSWORD`", "LARIMAR_PASSWORD"),
    (f"{MANIFESTS}service.yaml", "component: server", "component: servant", "Service selects"),
    (f"{MANIFESTS}network-policy.yaml", "component: server", "component: servant", "NetworkPolicy selects"),
    (f"{MANIFESTS}disruption-budget.yaml", "component: server", "component: servant", "Budget selects"),
    (f"{MANIFESTS}autoscaling/autoscaler.yaml", "    name: larimar\n  min", "    name: other\n  min", "something else"),
    (f"{MANIFESTS}kustomization.yaml", "  - service.yaml\n", "", "service.yaml is not named"),
    (f"{MANIFESTS}kustomization.yaml", "  - service.yaml\n", "  - service.yaml\n  - more.yaml\n", "more.yaml is not there"),
    (f"{MANIFESTS}kustomization.yaml", "  - autoscaling\n", "  - scaling\n", "no component scaling"),
    (f"{MANIFESTS}kustomization.yaml", "      - larimar.toml\n", "      - server.toml\n", "server.toml is not there"),
]


class Check(unittest.TestCase):
    def test_the_committed_files_have_no_problem(self) -> None:
        self.assertEqual(check.problems_of(FILES, agreeable), [])

    def test_each_change_is_a_problem(self) -> None:
        for path, old, new, complaint in CHANGES:
            with self.subTest(path=path, new=new):
                found = check.problems_of(FILES.replaced(path, old, new), agreeable)
                self.assertTrue(any(complaint in problem for problem in found), f"{complaint!r} is not in {found}")

    def test_a_rendering_must_hold_every_kind(self) -> None:
        text = FILES.texts[f"{MANIFESTS}service.yaml"]
        self.assertIn("expected", kubernetes.rendered_problems(text)[-1])

    def test_secrets_of_the_checkout_are_not_read(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder)
            for path in (GUIDE, TOOLCHAIN, COMPOSE, "deploy/secrets/database_password", "deploy/check/.venv/x.yaml"):
                (root / path).parent.mkdir(parents=True, exist_ok=True)
                (root / path).write_text("x", encoding="utf-8")
            self.assertEqual(set(read_files(root).texts), {GUIDE, TOOLCHAIN, COMPOSE})


if __name__ == "__main__":
    unittest.main()
