"""The Grafana dashboard against the types that Grafana generates from its own schemas (grafana-foundation-sdk)."""

import json
from collections.abc import Iterator
from typing import Any

from files import Files
from grafana_foundation_sdk.cog import plugins
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models.dashboard import Dashboard

DASHBOARD = "deploy/grafana/larimar.json"
# Grafana writes this field beside `query`, and its schema does not have it.
UNLISTED = ("definition",)


def problems(files: Files) -> list[str]:
    """Fields that Grafana would drop or change when it reads the dashboard."""
    try:
        written = json.loads(files.texts[DASHBOARD])
        plugins.register_default_plugins()
        read = json.loads(JSONEncoder().encode(Dashboard.from_json(written)))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        return [f"{DASHBOARD}: Grafana's types do not read it: {error!r}"]
    return [f"{DASHBOARD}: {problem}" for problem in differences(written, read, "")]


def differences(written: Any, read: Any, path: str) -> Iterator[str]:
    """What was lost or changed on the way."""
    if isinstance(written, dict) and isinstance(read, dict):
        for name, value in written.items():
            if name in read:
                yield from differences(value, read[name], f"{path}/{name}")
            elif name not in UNLISTED:
                yield f"Grafana knows no field {path}/{name}"
    elif isinstance(written, list) and isinstance(read, list) and len(written) == len(read):
        for number, (one, other) in enumerate(zip(written, read)):
            yield from differences(one, other, f"{path}/{number}")
    elif written != read:
        yield f"Grafana reads {path} as {read!r}"
