"""The legacy Java SDK against a running server: `mvn test` in this folder, whose report must show every test passed."""

import subprocess
import xml.etree.ElementTree as xml
from pathlib import Path

FOLDER = Path(__file__).parent
TESTS = 3
SDK = "com.microsoft.azure"


def main():
    for report in FOLDER.glob("target/surefire-reports/*.xml"):
        report.unlink()
    # Maven ends its output with escape sequences and no new line.
    ended = subprocess.run(["mvn", "-q", "-B", "test"], cwd=FOLDER, stdout=subprocess.PIPE, text=True)
    print(ended.stdout)
    assert ended.returncode == 0, f"mvn ended with {ended.returncode}"
    [report] = FOLDER.glob("target/surefire-reports/*.xml")
    suite = xml.parse(report).getroot()
    counts = {name: int(suite.get(name)) for name in ("tests", "failures", "errors", "skipped")}
    assert counts == {"tests": TESTS, "failures": 0, "errors": 0, "skipped": 0}, counts
    space = "{http://maven.apache.org/POM/4.0.0}"
    dependencies = xml.parse(FOLDER / "pom.xml").getroot().iter(f"{space}dependency")
    [version] = [one.find(f"{space}version").text for one in dependencies if one.find(f"{space}groupId").text == SDK]
    print(f"result: {SDK}:azure-storage {version}: entities, messages and blobs of all kinds with the legacy Java SDK")


if __name__ == "__main__":
    main()
