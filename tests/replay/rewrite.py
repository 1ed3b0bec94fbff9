"""Recorded requests made ready for another server: signed anew, with times shifted to now and with the ETags, ids,
receipts and tokens that this server returned in place of those of the original one.
"""
import base64
import collections
import datetime
import email.utils
import hashlib
import hmac
import re
import urllib.parse

from recording import account_and_service

ACCOUNT_KEY = base64.b64encode(hashlib.sha512(b"replay of recorded sessions").digest()).decode()
WRONG_KEY = base64.b64encode(hashlib.sha512(b"not the key of the account").digest()).decode()


class Session:
    """What is known while one recording is replayed."""

    def __init__(self):
        self.actual = {}       # value made by the original server -> value made by this one
        self.etags = {}        # address of a resource -> its last ETag, from the original server and from this one
        self.modified = {}     # address of a resource -> its Last-Modified, from the original server and from this one
        self.copying = set()   # addresses of resources whose copies the original server had not finished
        self.created = set()   # (account, container or queue) that the recording has made
        self.names = set()     # names of containers, queues and tables that the recording speaks of
        self.settings = set()  # parts of the service properties that the recording has set
        self.shift = datetime.timedelta(0)  # from the time of the recording to now

    def learn(self, recorded, actual):
        if recorded and actual and recorded not in self.actual:
            self.actual[recorded] = actual
            if recorded.startswith('"') and actual.startswith('"'):
                # Some clients leave the quotes of an ETag away.
                self.actual[recorded.strip('"')] = actual.strip('"')
            elif recorded.startswith("0x"):
                self.actual['"' + recorded + '"'] = '"' + actual.strip('"') + '"'
            elif re.fullmatch(r"\d{4}-[0-9T:-]+\.\d{1,6}Z", recorded):
                # The recorder leaves zeros at the end of a time away, and clients add them again.
                self.actual[recorded[:-1].ljust(27, "0") + "Z"] = actual

    def condition_time(self, recorded, resource):
        """The time of a condition, as far from the resource's Last-Modified here as it was in the recording. A shift to
        now is not enough: it may fall on either side of a second that the resource was changed in.
        """
        moment = http_date(recorded)
        modified = [http_date(time) for time in self.modified.get(resource, ())]
        if moment and len(modified) == 2 and all(modified):
            return email.utils.format_datetime(modified[1] + (moment - modified[0]), usegmt=True)
        return self.actual.get(recorded) or shifted_http_date(recorded, self.shift)

    def now_for(self, recorded):
        return self.actual.get(recorded, recorded)

    def is_older(self, exchange):
        """Whether the recording uses a container or queue that was there before it began."""
        first = urllib.parse.unquote(exchange.path).strip("/").split("/")[0]
        if exchange.service == "table" or not first or exchange.status >= 400 and exchange.status != 409:
            return False
        if exchange.error_code == "ContainerAlreadyExists" and (exchange.account, first) not in self.created:
            return True
        made = exchange.method == "PUT" and not exchange.query.get("comp") and \
            (exchange.query.get("restype") == "container" if exchange.service == "blob" else
             "/" not in exchange.path.strip("/"))
        if made:
            self.created.add((exchange.account, first))
        return (exchange.account, first) not in self.created

    def lacks_page(self, exchange):
        """Whether a further page is asked for where this server had everything on the page before."""
        marks = [exchange.query.get(name) for name in ("marker", "NextTableName", "NextPartitionKey")]
        return exchange.status == 200 and any(mark and mark not in self.actual for mark in marks)

    def note_names(self, exchange):
        first = urllib.parse.unquote(exchange.path).strip("/").split("/")[0].split("(")[0]
        if first and first.lower() != "tables":
            self.names.add(first.lower())
        for name in re.findall(rb'"TableName":"([^"]+)"', exchange.request.body):
            self.names.add(name.decode().lower())
        named = re.match(r"/Tables\('([^']+)'\)", urllib.parse.unquote(exchange.path))
        if named:
            self.names.add(named.group(1).lower())


ISO_TIME = re.compile(r"(\d{4}-\d\d-\d\d)T(\d\d:\d\d)(:\d\d)?(\.\d+)?(Z|\+00:00)?")


def shifted_iso(text, shift):
    """A time in ISO form moved by the shift, in the same form; the fraction of a second stays as it is."""
    match = ISO_TIME.fullmatch(text)
    if not match:
        if re.fullmatch(r"\d{4}-\d\d-\d\d", text):
            return (datetime.date.fromisoformat(text) + shift).isoformat()
        return text
    day, minute, second, fraction, zone = match.groups()
    moment = datetime.datetime.fromisoformat(day + "T" + minute + (second or ":00"))
    if moment.year < 1970 or moment.year > 9000:
        return text
    moment += datetime.timedelta(seconds=round(shift.total_seconds()))
    form = "%Y-%m-%dT%H:%M:%S" if second else "%Y-%m-%dT%H:%M"
    return moment.strftime(form) + (fraction or "") + (zone or "")


def http_date(text):
    """The time of an HTTP header, or None if it is not one."""
    try:
        return email.utils.parsedate_to_datetime(text).astimezone(datetime.timezone.utc)
    except (TypeError, ValueError):
        return None


def shifted_http_date(text, shift):
    moment = http_date(text)
    return email.utils.format_datetime(moment + shift, usegmt=True) if moment else text


# Query parameters whose values may be known from earlier answers.
LEARNED_PARAMETERS = ("snapshot", "prevsnapshot", "popreceipt", "marker", "copyid", "NextPartitionKey", "NextRowKey",
                      "NextTableName")
CONDITION_HEADERS = ("if-match", "if-none-match", "x-ms-source-if-match", "x-ms-source-if-none-match", "x-ms-lease-id",
                     "x-ms-source-lease-id", "x-ms-proposed-lease-id", "x-ms-copy-id")
CONDITION_TIMES = ("if-modified-since", "if-unmodified-since", "x-ms-source-if-modified-since",
                   "x-ms-source-if-unmodified-since")
URL_HEADERS = ("x-ms-copy-source", "x-ms-previous-snapshot-url")
UNSENT_HEADERS = ("host", "connection", "transfer-encoding", "traceparent", "request-id", "content-length",
                  "authorization", "expect")


def escaped(text):
    """Recorded addresses have characters beyond ASCII and blanks as they are; what is escaped stays escaped."""
    return urllib.parse.quote(text, safe="%!#$&'()*+,/:;=?@[]~")


def rewrite_url(url, session, key):
    """The address with values learned from earlier answers, and signed anew where it has a SAS."""
    parts = urllib.parse.urlsplit(url)
    account, service = account_and_service(parts.netloc)
    pairs = []
    for raw in parts.query.split("&") if parts.query else []:
        name, equals, raw_value = raw.partition("=")
        value = urllib.parse.unquote(raw_value if name in ("sig", "popreceipt") else raw_value.replace("+", " "))
        new = value
        if name in LEARNED_PARAMETERS:
            new = session.now_for(value)
        elif name in ("st", "se"):
            new = shifted_iso(value, session.shift)
        elif name == "spr":
            new = "https,http"
        pairs.append([name, equals, escaped(raw_value) if new == value else urllib.parse.quote(new, safe=""), new])
    if any(name == "sig" for name, *_ in pairs):
        parameters = {name: value for name, _, _, value in pairs}
        signature = sas_signature(account, service, urllib.parse.unquote(parts.path), parameters, key)
        for pair in pairs:
            if pair[0] == "sig":
                pair[2] = urllib.parse.quote(signature, safe="")
    query = "&".join(name + equals + raw for name, equals, raw, _ in pairs)
    path = escaped(parts.path)
    message = re.fullmatch(r"(/[^/]+/messages/)([^/]+)", path)
    if service == "queue" and message:
        path = message.group(1) + session.now_for(message.group(2))
    return urllib.parse.urlunsplit((parts.scheme, parts.netloc, path, query, ""))


def sign(text, key):
    return base64.b64encode(hmac.new(base64.b64decode(key), text.encode(), hashlib.sha256).digest()).decode()


def sas_signature(account, service, path, parameters, key):
    """The signature of an account SAS, or of a service SAS for a container, blob, queue or table."""
    get = lambda name: parameters.get(name, "")
    if "ss" in parameters:
        lines = [account, get("sp"), get("ss"), get("srt"), get("st"), get("se"), get("sip"), get("spr"), get("sv")]
        if get("sv") >= "2020-12-06":
            lines.append(get("ses"))
        return sign("\n".join(lines) + "\n", key)
    if service == "table":
        resource = "/table/" + account + "/" + get("tn").lower()
    elif service == "queue":
        resource = "/queue/" + account + "/" + path.strip("/").split("/")[0]
    elif get("sr") == "c":
        resource = "/blob/" + account + "/" + path.strip("/").split("/")[0]
    else:
        resource = "/blob/" + account + "/" + path.lstrip("/")
    lines = [get("sp"), get("st"), get("se"), resource, get("si"), get("sip"), get("spr"), get("sv")]
    if service == "table":
        lines += [get("spk"), get("srk"), get("epk"), get("erk")]
    elif service == "blob":
        if get("sv") >= "2018-11-09":
            lines += [get("sr"), get("snapshot") if get("sr") == "bs" else ""]
        if get("sv") >= "2020-12-06":
            lines.append(get("ses"))
        lines += [get("rscc"), get("rscd"), get("rsce"), get("rscl"), get("rsct")]
    return sign("\n".join(lines), key)


def shared_key(account, service, method, path, query, headers, key):
    """The Authorization header; path as sent, query decoded, names of headers in lower case."""
    if service == "table":
        resource = "/" + account + path + ("?comp=" + query["comp"] if "comp" in query else "")
        return "SharedKeyLite " + account + ":" + sign(headers["x-ms-date"] + "\n" + resource, key)
    length = headers.get("content-length", "")
    lines = [method, headers.get("content-encoding", ""), headers.get("content-language", ""),
             "" if length == "0" else length, headers.get("content-md5", ""), headers.get("content-type", ""), "",
             headers.get("if-modified-since", ""), headers.get("if-match", ""), headers.get("if-none-match", ""),
             headers.get("if-unmodified-since", ""), headers.get("range", "")]
    lines += [name + ":" + " ".join(headers[name].split()) for name in sorted(headers) if name.startswith("x-ms-")]
    resource = "/" + account + path
    folded = collections.defaultdict(list)
    for name, value in query.items():
        folded[name.lower()].append(value)
    resource += "".join("\n" + name + ":" + ",".join(sorted(folded[name])) for name in sorted(folded))
    return "SharedKey " + account + ":" + sign("\n".join(lines) + "\n" + resource, key)


def resource_at(url):
    """The address of a blob, snapshot or container: the URL without what it is asked for."""
    parts = urllib.parse.urlsplit(url)
    return parts.netloc + urllib.parse.unquote(parts.path) + "?" + decoded_query(url).get("snapshot", "")


def decoded_query(url):
    query = {}
    for raw in urllib.parse.urlsplit(url).query.split("&"):
        if raw:
            name, _, value = raw.partition("=")
            query[urllib.parse.unquote(name)] = urllib.parse.unquote(value)
    return query


class Request:
    """A recorded request made ready for this server."""

    def __init__(self, exchange, session):
        # Where the service refused the signature, a wrong one is sent.
        key = WRONG_KEY if exchange.error_code == "AuthenticationFailed" else ACCOUNT_KEY
        now = email.utils.formatdate(usegmt=True)
        self.method = exchange.method
        self.url = rewrite_url(exchange.url, session, key)
        parts = urllib.parse.urlsplit(self.url)
        self.target = urllib.parse.urlunsplit(("", "", parts.path or "/", parts.query, ""))
        self.body = rewrite_body(exchange, session, now)
        headers = {}
        for name, value in exchange.request.headers.items():
            if name in UNSENT_HEADERS:
                continue
            if name in CONDITION_HEADERS:
                value = session.now_for(value)
            elif name in CONDITION_TIMES:
                source = exchange.request.header("x-ms-copy-source") if "source" in name else None
                value = session.condition_time(value, resource_at(source or exchange.url))
            elif name in URL_HEADERS:
                value = rewrite_url(value, session, key)
            elif name == "x-ms-date":
                value = now
            headers[name] = value
        self.fix_length_and_digest(exchange, headers)
        if "authorization" in exchange.request.headers:
            headers["x-ms-date"] = now
            headers["authorization"] = shared_key(exchange.account, exchange.service, self.method, parts.path or "/",
                                                  decoded_query(self.url), headers, key)
        headers["host"] = exchange.host
        self.headers = headers
        self.names = exchange.request.names

    def fix_length_and_digest(self, exchange, headers):
        """Length and digest are counted anew where they were right in the recording; a wrong one stays wrong."""
        recorded = exchange.request.header("content-length")
        if self.body or self.method in ("PUT", "POST", "PATCH", "MERGE"):
            headers["content-length"] = str(len(self.body))
        elif recorded is not None:
            headers["content-length"] = recorded
        digest = base64.b64encode(hashlib.md5(exchange.request.body).digest()).decode()
        if headers.get("content-md5") == digest:
            headers["content-md5"] = base64.b64encode(hashlib.md5(self.body).digest()).decode()


def rewrite_body(exchange, session, now):
    body = exchange.request.body
    kind = exchange.request.content_type
    comp = exchange.query.get("comp")
    if comp == "batch":
        return rewrite_blob_batch(exchange, session, now)
    if kind.startswith("multipart/mixed"):
        text = body.decode("utf-8", "surrogateescape")
        text = re.sub(r"(?m)^(If-Match: )(.*?)(\r?)$", lambda m: m[1] + session.now_for(m[2]) + m[3], text)
        return text.encode("utf-8", "surrogateescape")
    if comp == "acl":
        times = re.compile(rb"(<(?:Start|Expiry)>)([^<]*)")
        return times.sub(lambda m: m[1] + shifted_iso(m[2].decode(), session.shift).encode(), body)
    return body


def rewrite_blob_batch(exchange, session, now):
    """Each request inside a blob batch has a signature of its own."""
    boundary = re.search(r"boundary=\"?([^\";]+)", exchange.request.content_type)[1]
    pieces = exchange.request.body.decode("utf-8", "surrogateescape").split("--" + boundary)
    refused = re.findall(r"HTTP/1\.1 (\d+)", exchange.answer.body.decode("latin-1"))
    for index, piece in enumerate(pieces):
        match = re.match(r"(?s)(\r\n.*?\r\n\r\n)([A-Z]+) (\S.*?) HTTP/1\.1\r\n(.*)", piece)
        if not match:
            continue
        head, method, target, rest = match.groups()
        key = WRONG_KEY if refused[index - 1:index] == ["403"] else ACCOUNT_KEY
        lines = [line for line in rest.split("\r\n") if line and not line.lower().startswith("traceparent")]
        headers = {line.partition(":")[0].strip().lower(): line.partition(":")[2].strip() for line in lines}
        if method == "PUT" and "comp=" not in target and "x-ms-access-tier" in headers:
            target += "&comp=tier"  # lost when the signature was taken out of the recording
        url = rewrite_url("https://" + exchange.host + target, session, key)
        parts = urllib.parse.urlsplit(url)
        for name in CONDITION_HEADERS:
            if name in headers:
                headers[name] = session.now_for(headers[name])
        if "authorization" in headers:
            headers["x-ms-date"] = now
            headers["authorization"] = shared_key(exchange.account, "blob", method, parts.path, decoded_query(url),
                                                  headers, key)
        text = "".join(name + ": " + value + "\r\n" for name, value in headers.items())
        target = urllib.parse.urlunsplit(("", "", parts.path, parts.query, ""))
        pieces[index] = head + method + " " + target + " HTTP/1.1\r\n" + text + "\r\n"
    return ("--" + boundary).join(pieces).encode("utf-8", "surrogateescape")

