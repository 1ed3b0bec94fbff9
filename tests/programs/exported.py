"""A Parquet file of `larimar export`, with a value of every type, for programs that read Parquet; and rows of files that
such programs write.

LARIMAR_BINARY names the binary, LARIMAR_CONNECTION_STRING the server.
"""

import json
import os
import subprocess
import tempfile
import uuid
from datetime import datetime, timezone
from pathlib import Path

ROWS = 5000
GUID = uuid.UUID("c9da6455-213d-42c9-9a79-3e9149a57833")
BINARY = bytes([0, 1, 255])
LAST = datetime(9999, 12, 31, 23, 59, 59, 999999, timezone.utc)
FIRST = datetime(1601, 1, 1, tzinfo=timezone.utc)
DAY = datetime(2024, 2, 29, 12, 30, 15, 123456, timezone.utc)


def entity(row):
    """One row in the JSON of the service. Row 1 has other limits than row 0; row 2 lacks most properties."""
    common = {"PartitionKey": f"p{row // 100:03}", "RowKey": f"{row:06}", "Number": row}
    typed = {
        "Long@odata.type": "Edm.Int64",
        "Long": str(2**62 + row),
        "Guid@odata.type": "Edm.Guid",
        "Guid": str(GUID),
        "Binary@odata.type": "Edm.Binary",
        "Binary": "AAH/",
        "Day@odata.type": "Edm.DateTime",
        "Day": "2024-02-29T12:30:15.123456Z",
        # The last tick of 100 ns that there is, and the first.
        "Far@odata.type": "Edm.DateTime",
        "Far": "1601-01-01T00:00:00Z" if row == 1 else "9999-12-31T23:59:59.9999999Z",
        "Double": 0.5,
        "Flag": row % 2 == 0,
        "Text": "" if row == 1 else "Grüße, 世界",
        "Mixed": "text" if row % 2 else row,
    }
    return common if row == 2 else common | typed


# Rows for `larimar import`: a text that compresses well, an empty one, and a missing number.
SMALL_ROWS = [
    {"PartitionKey": "p", "RowKey": "1", "s": "x" * 500, "n": 1},
    {"PartitionKey": "p", "RowKey": "2", "s": "", "n": None},
    {"PartitionKey": "p", "RowKey": "3", "s": "é", "n": 3},
]


def larimar(*arguments, **options):
    command = [os.environ["LARIMAR_BINARY"], *arguments, "--connection-string", os.environ["LARIMAR_CONNECTION_STRING"]]
    return subprocess.run(command, check=True, text=True, **options)


def export(name):
    """Imports the rows into a table and exports it; the path of the file."""
    folder = Path(tempfile.mkdtemp())
    source, target = folder / "rows.jsonl", folder / "rows.parquet"
    source.write_text("".join(json.dumps(entity(row)) + "\n" for row in range(ROWS)))
    larimar("import", name, str(source))
    larimar("export", name, "--to", str(target), "--parallel", "1")
    return target


def check_import(name, path):
    """Imports a file with the small rows into a table and compares what is stored."""
    larimar("import", name, str(path), "--mode", "replace")
    lines = larimar("table", "query", name, "--select", "PartitionKey,RowKey,s,n", "--output", "json", stdout=subprocess.PIPE).stdout
    found = [json.loads(line) for line in lines.splitlines()]
    expected = [{key: value for key, value in row.items() if value is not None} for row in SMALL_ROWS]
    found = [{key: row[key] for key in ("PartitionKey", "RowKey", "s", "n") if row.get(key) is not None} for row in found]
    assert found == expected, (name, found)
