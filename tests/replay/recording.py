"""Recordings of the real service: files of HTTP exchanges, as a test made them, in order.

A recording is one JSON file. Recordings come in a folder, or in an archive that is unpacked below `target/`.
"""
import base64
import email.utils
import hashlib
import json
import pathlib
import re
import shutil
import tarfile
import urllib.parse

SERVICES = ("blob", "queue", "table")
DOMAINS = ("core.windows.net", "preprod.core.windows.net")
UNPACKED = pathlib.Path(__file__).resolve().parents[2] / "target" / "recordings"


def open_recordings(path):
    """The folder of recordings at a path: the path itself, or where the archive at the path is unpacked."""
    path = pathlib.Path(path)
    if path.is_dir():
        return path
    folder = UNPACKED / hashlib.sha256(path.read_bytes()).hexdigest()[:16]
    if not folder.exists():
        shutil.rmtree(UNPACKED, ignore_errors=True)
        partial = folder.with_name(folder.name + ".partial")
        with tarfile.open(path) as archive:
            archive.extractall(partial, filter="data")
        partial.rename(folder)
    return folder


def find_recordings(folder, service=None, text=None):
    """The recordings as (suite, path). A suite is a folder two levels down, such as tables/NAME."""
    folder = pathlib.Path(folder)
    suites = [suite for suite in sorted(folder.glob("*/*")) if suite.is_dir()]
    for suite in suites:
        if service and service.lower() not in suite.name.lower():
            continue
        for path in sorted(suite.rglob("*.json")):
            if not text or text.lower() in str(path).lower():
                yield suite.name, path


class Message:
    """The headers and body of a request or an answer. Header names are looked up in lower case."""

    def __init__(self, headers, body, names=None, reason=None):
        self.headers = headers
        self.body = body
        self.reason = reason
        self.names = names or {}  # name in lower case -> as it was written

    def header(self, name, default=None):
        return self.headers.get(name.lower(), default)

    @property
    def content_type(self):
        return self.header("content-type", "")


class Exchange:
    def __init__(self, number, entry):
        self.number = number
        self.method = entry["RequestMethod"]
        self.url = entry["RequestUri"]
        self.status = entry["StatusCode"]
        self.request = message_of(entry["RequestHeaders"], entry["RequestBody"])
        self.answer = message_of(entry["ResponseHeaders"], entry["ResponseBody"])
        parts = urllib.parse.urlsplit(self.url)
        self.host = parts.netloc
        self.path = parts.path
        self.query = dict(urllib.parse.parse_qsl(parts.query, keep_blank_values=True))
        self.account, self.service = account_and_service(self.host)

    @property
    def time(self):
        """When the original server answered."""
        date = self.answer.header("date")
        return email.utils.parsedate_to_datetime(date) if date else None

    @property
    def error_code(self):
        return self.answer.header("x-ms-error-code") or code_in_body(self.answer)


def account_and_service(host):
    for domain in DOMAINS:
        match = re.fullmatch(r"([a-z0-9]+)(?:-secondary)?\.(blob|queue|table)\." + re.escape(domain), host)
        if match:
            return match.groups()
    return None, None


def message_of(headers, body):
    flat, names = {}, {}
    for name, value in headers.items():
        names[name.lower()] = name
        separator = " " if name.lower() in ("user-agent", "server") else ", "
        flat[name.lower()] = separator.join(value) if isinstance(value, list) else value
    return Message(flat, body_bytes(body, flat.get("content-type", "")), names)


def is_text(content_type):
    kind = content_type.split(";")[0].strip().lower()
    return kind.startswith("text/") or kind.endswith(("/json", "/xml", "+json", "+xml"))


def body_bytes(value, content_type):
    """A body in a recording is JSON itself, text (also as a list of lines), or base64 where the type is not text."""
    if value is None or value == []:
        return b""
    if isinstance(value, dict):
        return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
    if isinstance(value, list):
        if all(isinstance(line, str) for line in value):
            return "".join(value).encode()
        return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
    if is_text(content_type):
        return value.encode()
    try:
        return base64.b64decode(value, validate=True)
    except ValueError:
        return value.encode()


def load_recording(path):
    document = json.loads(path.read_text(encoding="utf-8-sig"))
    return [Exchange(number, entry) for number, entry in enumerate(document["Entries"])]



def code_in_body(answer):
    match = re.search(rb"<Code>([^<]+)</Code>", answer.body[:2000]) or \
        re.search(rb'"code": ?"([^"]+)"', answer.body[:2000]) if answer.body else None
    return match[1].decode() if match else None

