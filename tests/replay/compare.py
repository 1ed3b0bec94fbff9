"""Compares an answer with the recorded one: status, error, headers, and bodies as structures."""
import collections
import json
import re
import urllib.parse
import xml.etree.ElementTree as ElementTree

from recording import Message, code_in_body, is_text
from rewrite import resource_at

IGNORED_HEADERS = {
    "server", "date", "transfer-encoding", "connection", "keep-alive", "x-ms-request-id", "strict-transport-security",
    "content-length",
    # Features that the original accounts had switched on.
    "x-ms-version-id", "x-ms-is-current-version", "x-ms-last-access-time", "x-ms-delete-type-permanent",
    # Rules of CORS that the original accounts had; no recorded request names an origin.
    "vary", "access-control-allow-origin", "access-control-expose-headers", "access-control-allow-credentials",
}
IGNORED_ELEMENTS = {"VersionId", "IsCurrentVersion", "LastAccessTime", "OrMetadata", "DeletedTime",
                    "RemainingRetentionDays"}
# Values that a server makes up: only their form is compared, and they are learned.
VOLATILE = {
    "etag", "odata.etag", "last-modified", "x-ms-snapshot", "snapshot", "x-ms-creation-time", "creation-time",
    "x-ms-copy-completion-time", "copycompletiontime", "x-ms-copy-destination-snapshot", "copydestinationsnapshot",
    "x-ms-access-tier-change-time", "accesstierchangetime", "x-ms-copy-id", "copyid", "x-ms-lease-id",
    "x-ms-time-next-visible", "timenextvisible", "insertiontime", "expirationtime", "messageid", "lastsynctime",
    "timestamp", "start", "expiry",
}
# Tokens whose form is the server's own business.
TOKENS = {"x-ms-popreceipt", "popreceipt", "nextmarker", "marker", "x-ms-continuation-nextpartitionkey",
          "x-ms-continuation-nextrowkey", "x-ms-continuation-nexttablename", "x-ms-lease-time"}
FORMS = (
    (re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"), "{guid}"),
    (re.compile(r"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun), \d\d \w{3} \d{4} \d\d:\d\d:\d\d GMT"), "{http time}"),
    (re.compile(r"\d{4}-\d\d-\d\dT\d\d(?::|%3A)\d\d(?::|%3A)\d\d"), "{time}"),
    (re.compile(r"0x[0-9A-F]{14,17}"), "{hex}"),
)


def form(value):
    for pattern, name in FORMS:
        value = pattern.sub(name, value)
    # Tables cut the zeros off the end of a fraction, so only its presence counts.
    return re.sub(r"\.\d+", ".{fraction}", value)


def without_signature(text):
    text = re.sub(r"^http://", "https://", text)
    return re.sub(r"(?:&|\?)(?:sig|se|st|sp|sv|sr|spr|ss|srt)=[^&]*", "", text)


def name_of_found(blob):
    return f"{blob.findtext('ContainerName')}/{blob.findtext('Name')}"


def clean_message(text):
    """An error message without what differs every time."""
    text = re.sub(r"RequestId:[0-9a-fA-F-]+", "RequestId:…", text)
    text = re.sub(r"Time:\d{4}-[0-9T:.\-]+Z", "Time:…", text)
    return text


class Comparison:
    """Compares one answer with the recorded one; collects differences as (kind, expected, got)."""

    def __init__(self, exchange, session):
        self.exchange = exchange
        self.session = session
        self.differences = []

    def note(self, kind, expected, got):
        self.differences.append((kind, expected, got))

    def compare(self, status, answer):
        exchange = self.exchange
        if status != exchange.status:
            expected = f"{exchange.status} {exchange.error_code or ''}".strip()
            got = f"{status} {answer.header('x-ms-error-code') or code_in_body(answer) or ''}".strip()
            self.note(f"status {expected} -> {got}", describe(exchange.status, exchange.answer),
                      describe(status, answer))
            return self.differences
        codes = exchange.error_code, answer.header("x-ms-error-code") or code_in_body(answer)
        if exchange.status >= 400 and codes[0] != codes[1]:
            self.note(f"error {exchange.status} {codes[0]} -> {codes[1]}", describe(exchange.status, exchange.answer),
                      describe(status, answer))
            return self.differences
        self.compare_headers(exchange.answer.headers, answer.headers, "header")
        self.ends = ["x-ms-continuation-nexttablename" not in message.headers for message in (exchange.answer, answer)]
        self.compare_etag_changes(exchange.answer.header("etag"), answer.header("etag"))
        self.compare_bodies(exchange.answer, answer)
        times = exchange.answer.header("last-modified"), answer.header("last-modified")
        if all(times):
            self.session.modified[resource_at(exchange.url)] = times
        return self.differences

    def compare_etag_changes(self, expected, got):
        """A resource's ETag changes exactly where the original's did."""
        if not expected or not got:
            return
        resource = self.exchange.host + self.exchange.path + "?" + self.exchange.query.get("snapshot", "")
        is_pending = self.exchange.answer.header("x-ms-copy-status") == "pending"
        was_copied = resource in self.session.copying
        (self.session.copying.add if is_pending else self.session.copying.discard)(resource)
        before = self.session.etags.get(resource)
        self.session.etags[resource] = expected, got
        if before and (before[0] == expected) != (before[1] == got):
            kind = "unchanged" if before[0] == expected else "changed"
            if kind == "changed" and was_copied:
                return  # the original's copy went on, where this server was done
            self.note(f"ETag change: the original's was {kind}", (before[0], expected), (before[1], got))

    # Headers

    def compare_headers(self, expected, got, what):
        pending_copy = expected.get("x-ms-copy-status") == "pending"
        for name in sorted(set(expected) | set(got)):
            if name in IGNORED_HEADERS:
                continue
            if pending_copy and name.startswith("x-ms-copy-"):
                # The original was still copying; where this server is done there is nothing to compare.
                if name == "x-ms-copy-id":
                    self.session.learn(expected.get(name), got.get(name))
                continue
            if name not in got:
                self.note(f"{what} missing: {name}", expected[name], None)
            elif name not in expected:
                self.note(f"{what} extra: {name}", None, got[name])
            else:
                self.compare_value(name, expected[name], got[name], f"{what} value: {name}")

    def compare_value(self, name, expected, got, kind):
        name = name.lower()
        if name in VOLATILE:
            self.compare_volatile(name, expected, got, kind)
        elif name in TOKENS:
            self.session.learn(expected, got)
            if bool(expected) != bool(got):
                self.note(kind, expected, got)
        elif name in ("x-ms-version", "www-authenticate"):
            return  # versions were changed in old recordings; where to get a token is each server's own business
        elif name == "content-type":
            # The recorder's HTTP library puts blanks after semicolons.
            if form(expected).replace("; ", ";") != form(got).replace("; ", ";"):
                self.note(kind, expected, got)
        elif name in ("location", "dataserviceid", "x-ms-copy-source", "copysource", "serviceendpoint") or \
                expected.startswith("https://"):
            ours, theirs = without_signature(got), without_signature(self.in_new_words(expected))
            if name in ("x-ms-copy-source", "copysource"):
                # The source is told as it was sent, and the replay escapes more of a snapshot's time.
                ours, theirs = urllib.parse.unquote(ours), urllib.parse.unquote(theirs)
            if ours != theirs:
                self.note(kind, expected, got)
        elif expected != got:
            self.note(kind, expected, got)

    def in_new_words(self, text):
        for recorded, actual in self.session.actual.items():
            if recorded in text:
                text = text.replace(recorded, actual)
        return text

    def compare_volatile(self, name, expected, got, kind):
        if not expected or not got:
            if expected != got:
                self.note(kind, expected, got)
            return
        expected_form, got_form = form(expected), form(got)
        if name in ("etag", "odata.etag", "timestamp"):
            # Of a whole second, tables cut off all of the fraction.
            expected_form, got_form = (text.replace(".{fraction}", "") for text in (expected_form, got_form))
        if expected_form != got_form:
            self.note(kind + " (form)", expected, got)
        self.session.learn(expected, got)

    # Bodies

    def compare_bodies(self, expected, got):
        exchange = self.exchange
        if exchange.method == "HEAD" or not expected.body and not got.body:
            lengths = expected.header("content-length"), got.header("content-length")
            if exchange.method == "HEAD" and exchange.status == 200 and lengths[0] != lengths[1] and \
                    expected.header("transfer-encoding") is None:
                self.note("header value: content-length", *lengths)
            return
        if bool(expected.body) != bool(got.body):
            self.note("body missing" if expected.body else "body extra", shorten(expected.body), shorten(got.body))
            return
        kind = expected.content_type
        if kind.startswith("multipart/mixed"):
            self.compare_multipart(expected, got)
        elif is_text(kind) and "xml" in kind and expected.body.lstrip(b"\xef\xbb\xbf").startswith(b"<"):
            self.compare_xml(expected.body, got.body)
        elif "json" in kind:
            self.compare_json(expected.body, got.body)
        elif expected.body != got.body:
            self.note("body bytes", shorten(expected.body), shorten(got.body))

    def compare_xml(self, expected, got):
        try:
            expected_root = ElementTree.fromstring(expected)
            got_root = ElementTree.fromstring(got)
        except ElementTree.ParseError as error:
            if expected != got:
                self.note("body is not XML", shorten(expected), f"{error}: {shorten(got)}")
            return
        if expected.startswith(b"\xef\xbb\xbf") != got.startswith(b"\xef\xbb\xbf"):
            self.note("body: byte order mark", shorten(expected, 60), shorten(got, 60))
        if expected_root.tag == "EnumerationResults" and self.exchange.path in ("", "/"):
            self.trim_listing(expected_root, got_root)
        if expected_root.tag == "StorageServiceProperties":
            self.trim_settings(expected_root, got_root)
        self.compare_elements(expected_root, got_root, expected_root.tag)

    def trim_listing(self, expected, got):
        """In a listing of the account only what this recording has made is compared."""
        marks = [root.find("NextMarker") for root in (expected, got)]
        ends = [mark is None or not mark.text for mark in marks]
        for collection in ("Containers", "Queues"):
            lists = [root.find(collection) for root in (expected, got)]
            if None not in lists:
                items = [[item for item in part if (item.findtext("Name") or "").lower() in self.session.names]
                         for part in lists]
                kept = self.shared_items(items, lambda item: item.findtext("Name"), ends)
                for part, keep in zip(lists, kept):
                    part[:] = keep
        self.trim_found(expected, got, ends)
        if None not in marks:
            self.session.learn(marks[0].text, marks[1].text)
            for mark in marks:
                mark.text = ""

    def trim_found(self, expected, got, ends):
        """Of the blobs that were found by their tags, too. The original tells some of them twice."""
        lists = [root.find("Blobs") for root in (expected, got)]
        if None in lists:
            return
        items = [list({name_of_found(item): item for item in part
                       if (item.findtext("ContainerName") or "").lower() in self.session.names}.values())
                 for part in lists]
        for part, keep in zip(lists, self.shared_items(items, name_of_found, ends)):
            part[:] = keep

    def shared_items(self, lists, name_of, ends):
        """The items that both listings have; what is missing from a listing that goes to the end is a difference."""
        names = [[name_of(item) for item in items] for items in lists]
        if "-secondary." in self.exchange.host:
            ends = False, False  # it may lag behind
        if ends[1] and set(names[0]) - set(names[1]):
            self.note("listing lacks items", names[0], names[1])
        if ends[0] and set(names[1]) - set(names[0]):
            self.note("listing has more items", names[0], names[1])
        return [[item for item in items if name_of(item) in names[0] and name_of(item) in names[1]] for items in lists]

    def trim_settings(self, expected, got):
        """Of the service's settings only those are compared that this recording has set."""
        for root in (expected, got):
            for part in root:
                if part.tag not in self.session.settings:
                    part.text = None
                    for child in list(part):
                        part.remove(child)

    def compare_elements(self, expected, got, path):
        if expected.tag != got.tag:
            self.note(f"body element: {path}", expected.tag, got.tag)
            return
        for name in sorted(set(expected.attrib) | set(got.attrib)):
            if name not in got.attrib:
                self.note(f"body attribute missing: {path}@{name}", expected.attrib[name], None)
            elif name not in expected.attrib:
                self.note(f"body attribute extra: {path}@{name}", None, got.attrib[name])
            else:
                self.compare_value(name, expected.attrib[name], got.attrib[name], f"body attribute: {path}@{name}")
        mine = [child for child in expected if child.tag not in IGNORED_ELEMENTS]
        theirs = [child for child in got if child.tag not in IGNORED_ELEMENTS]
        if not mine and not theirs:
            name = path.rsplit("/")[-1]
            before, after = expected.text or "", got.text or ""
            if name == "Message":
                before, after = clean_message(before), clean_message(after)
            elif name == "AuthenticationErrorDetail":
                before, after = (re.sub(r"\[.*?\]|'.*?'", "…", text, flags=re.S) for text in (before, after))
            self.compare_value(name, before, after, f"body value: {path}")
            return
        tags = [child.tag for child in mine], [child.tag for child in theirs]
        if tags[0] != tags[1]:
            counts = collections.Counter(tags[0]), collections.Counter(tags[1])
            for tag in sorted((counts[0] - counts[1])):
                self.note(f"body element missing: {path}/{tag}", texts(mine, tag), texts(theirs, tag))
            for tag in sorted((counts[1] - counts[0])):
                self.note(f"body element extra: {path}/{tag}", texts(mine, tag), texts(theirs, tag))
            if counts[0] == counts[1]:
                self.note(f"body order of elements: {path}", " ".join(tags[0]), " ".join(tags[1]))
        remaining = list(theirs)
        for child in mine:
            partner = next((other for other in remaining if other.tag == child.tag), None)
            if partner is not None:
                remaining.remove(partner)
                self.compare_elements(child, partner, f"{path}/{child.tag}")

    def compare_json(self, expected, got):
        try:
            self.compare_json_values(json.loads(expected), json.loads(got), "")
        except ValueError as error:
            self.note("body is not JSON", shorten(expected), f"{error}: {shorten(got)}")

    def compare_json_values(self, expected, got, path):
        name = path.rsplit("/", 1)[-1]
        if type(expected) is not type(got):
            self.note(f"body JSON type: {path}", expected, got)
        elif isinstance(expected, dict):
            for key in sorted(set(expected) | set(got)):
                if key not in got:
                    self.note(f"body member missing: {path}/{key}", expected[key], None)
                elif key not in expected:
                    self.note(f"body member extra: {path}/{key}", None, got[key])
                else:
                    self.compare_json_values(expected[key], got[key], f"{path}/{key}")
            common = [key for key in expected if key in got], [key for key in got if key in expected]
            if common[0] != common[1]:
                self.note(f"body order of members: {path}", " ".join(common[0]), " ".join(common[1]))
        elif isinstance(expected, list):
            if self.exchange.path.endswith("/Tables"):
                expected, got = self.trim_tables(expected, got)
            if len(expected) != len(got):
                self.note(f"body count of items: {path}", len(expected), len(got))
            for one, other in zip(expected, got):
                self.compare_json_values(one, other, path + "/[]")
        elif isinstance(expected, str):
            if name == "value" and "message" in path:
                expected, got = clean_message(expected), clean_message(got)
            self.compare_value(name, expected, got, f"body value: {path}")
        elif expected != got:
            self.note(f"body value: {path}", expected, got)

    def trim_tables(self, expected, got):
        mine = [[item for item in items if item.get("TableName", "").lower() in self.session.names]
                for items in (expected, got)]
        return self.shared_items(mine, lambda item: item["TableName"], self.ends)

    def compare_multipart(self, expected, got):
        parts = parse_multipart(expected), parse_multipart(got)
        if len(parts[0]) != len(parts[1]):
            self.note("batch: number of answers", len(parts[0]), len(parts[1]))
        for one, other in zip(*parts):
            statuses = [part.status_line.split(" ")[1] + " " + (code_in_body(part) or "") for part in (one, other)]
            if statuses[0] != statuses[1]:
                self.note(f"batch part status: {statuses[0]} -> {statuses[1]}", shorten(one.body), shorten(other.body))
                continue
            if one.status_line != other.status_line:
                self.note("batch part reason phrase", one.status_line, other.status_line)
            self.compare_headers(one.outer, other.outer, "batch part outer header")
            self.compare_headers(one.headers, other.headers, "batch part header")
            if bool(one.body) != bool(other.body):
                self.note("batch part body", shorten(one.body), shorten(other.body))
            elif one.body.lstrip(b"\xef\xbb\xbf").startswith(b"<"):
                self.compare_xml(one.body, other.body)
            elif one.body.startswith(b"{"):
                self.compare_json(one.body, other.body)


def texts(elements, tag):
    return [ElementTree.tostring(element, encoding="unicode")[:200] for element in elements if element.tag == tag]


def shorten(body, limit=600):
    text = body.decode("utf-8", "replace") if isinstance(body, bytes) else str(body)
    return text if len(text) <= limit else text[:limit] + f"… ({len(text)} in all)"


def readable(message, limit):
    """A body for people to read."""
    if not message.body:
        return ""
    if is_text(message.content_type) or message.content_type.startswith("multipart/"):
        return shorten(message.body, limit)
    return f"({len(message.body)} bytes)"


def describe(status, answer):
    headers = {name: value for name, value in answer.headers.items() if name not in IGNORED_HEADERS}
    return f"{status} {headers} {readable(answer, 900)}"


def head_lines(text):
    headers = {}
    for line in text.split("\r\n"):
        name, colon, value = line.partition(":")
        if colon:
            headers[name.strip().lower()] = value.strip()
    return headers


def parse_multipart(message):
    """The answers in a multipart body, also those within a change set."""
    boundary = re.search(r"boundary=\"?([^\";\r\n]+)", message.content_type)
    found = []
    if not boundary:
        return found
    for piece in message.body.split(b"--" + boundary[1].encode())[1:]:
        if piece.startswith(b"--"):
            break
        head, _, rest = piece.lstrip(b"\r\n").partition(b"\r\n\r\n")
        outer = head_lines(head.decode("utf-8", "replace"))
        if outer.get("content-type", "").startswith("multipart/mixed"):
            found += parse_multipart(Message(outer, rest))
            continue
        inner_head, _, body = rest.partition(b"\r\n\r\n")
        status_line, _, inner = inner_head.decode("utf-8", "replace").partition("\r\n")
        part = Message(head_lines(inner), body.rstrip(b"\r\n"))
        part.outer = outer
        part.status_line = status_line.strip()
        found.append(part)
    return found

