"""Records one outcome per scenario: a JSON line each in the file that LARIMAR_RESULTS names.

Several tests may show one scenario; it passed when none of them failed. A scenario of the list that no test
shows is a failure, when the whole suite runs.
"""

import json
import os
import tomllib
from importlib.metadata import version
from pathlib import Path

import pytest

PACKAGES = {"table": "azure-data-tables", "queue": "azure-storage-queue", "blob": "azure-storage-blob"}
SCENARIOS = Path(__file__).parent.parent / "scenarios.toml"
RANK = {"passed": 1, "skipped": 0, "failed": 2}


def scenario_services():
    """The service of every scenario, by its id."""
    with SCENARIOS.open("rb") as file:
        return {item["id"]: item.get("service", "table") for item in tomllib.load(file)["scenario"]}


class Recorder:
    def __init__(self, whole_suite):
        self.whole_suite = whole_suite
        self.outcomes = {}

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self, items):
        known = scenario_services()
        for item in items:
            marker = item.get_closest_marker("scenario")
            if item.get_closest_marker("documentation"):
                continue
            if marker is None or marker.args[0] not in known:
                raise pytest.UsageError(f"{item.nodeid} names no scenario of {SCENARIOS.name}")

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_makereport(self, item, call):
        report = (yield).get_result()
        if report.when == "call" or report.outcome != "passed":
            marker = item.get_closest_marker("scenario")
            if marker is None:
                return
            scenario = marker.args[0]
            self.note(scenario, report.outcome, detail_of(item, report))

    def note(self, scenario, outcome, detail):
        before = self.outcomes.get(scenario)
        if before is None or RANK[outcome] > RANK[before[0]]:
            self.outcomes[scenario] = (outcome, detail)

    def pytest_sessionfinish(self, session):
        if self.whole_suite:
            for scenario in scenario_services():
                self.note_missing(session, scenario)
        self.write()

    def note_missing(self, session, scenario):
        if scenario not in self.outcomes:
            self.outcomes[scenario] = ("failed", "no test of this suite ran it")
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter):
        for scenario, (outcome, detail) in self.outcomes.items():
            if outcome == "failed":
                terminalreporter.write_line(f"scenario {scenario} failed: {detail}")

    def write(self):
        path = os.environ.get("LARIMAR_RESULTS")
        if not path:
            return
        services = scenario_services()
        with open(path, "a", encoding="utf-8") as file:
            for scenario, (outcome, detail) in self.outcomes.items():
                package = PACKAGES[services[scenario]]
                line = {"sdk": "python", "version": version(package), "scenario": scenario}
                file.write(json.dumps({**line, "outcome": outcome, "detail": detail}) + "\n")


def detail_of(item, report):
    if report.outcome == "passed":
        return ""
    if report.outcome == "skipped":
        return str(report.longrepr[2]).removeprefix("Skipped: ")
    crash = getattr(report.longrepr, "reprcrash", None)
    return f"{item.name}: {crash.message if crash else report.longrepr}"
