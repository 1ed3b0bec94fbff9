"""Which exchanges cannot be replayed: features that Larimar lacks, and answers that depend on the moment."""
import re
import urllib.parse

from recording import account_and_service

UNSUPPORTED_HEADERS = (
    ("x-ms-encryption-key", "customer-provided keys"),
    ("x-ms-source-encryption-key", "customer-provided keys"),
    ("x-ms-encryption-scope", "encryption scopes"),
    ("x-ms-default-encryption-scope", "encryption scopes"),
    ("x-ms-immutability-policy-mode", "immutability policies"),
    ("x-ms-immutability-policy-until-date", "immutability policies"),
    ("x-ms-legal-hold", "legal holds"),
    ("x-ms-copy-source-authorization", "Bearer token for a copy's source"),
    ("x-ms-deleted-container-name", "soft delete"),
    ("x-ms-source-container-name", "renaming of containers"),
)
UNSUPPORTED_COMP = {
    "query": "query acceleration", "undelete": "soft delete", "immutabilitypolicies": "immutability policies",
    "legalhold": "legal holds", "userdelegationkey": "user delegation", "rename": "renaming of containers",
}
# Answers that show a feature which the original account had switched on.
FEATURE_HEADERS = (
    ("x-ms-encryption-scope", "encryption scopes"),
    ("x-ms-resource-type", "hierarchical namespace"),
    ("x-ms-or-policy-id", "object replication"),
    ("x-ms-immutability-policy-mode", "immutability policies"),
)


def reason_to_leave_out(exchange):
    """Why an exchange cannot be replayed, or None."""
    if exchange.service is None:
        return "other hosts: " + re.sub(r"^[^.]*\.", "", exchange.host)
    if "skoid" in exchange.query:
        return "user delegation SAS"
    comp = exchange.query.get("comp", "").lower()
    if comp in UNSUPPORTED_COMP:
        return UNSUPPORTED_COMP[comp]
    if "versionid" in exchange.query or exchange.query.get("sr") == "bv":
        return "blob versions"
    if exchange.query.get("sr") == "d":
        return "hierarchical namespace"
    if "ses" in exchange.query:
        return "encryption scopes"
    include = exchange.query.get("include", "").lower()
    for word, reason in (("version", "blob versions"), ("deleted", "soft delete"), ("immutab", "immutability policies"),
                         ("legalhold", "legal holds")):
        if word in include:
            return reason
    for name, reason in UNSUPPORTED_HEADERS:
        if name in exchange.request.headers:
            return reason
    for name, reason in FEATURE_HEADERS:
        if name in exchange.answer.headers:
            return reason
    if "x-ms-copy-source" in exchange.request.headers:
        source = urllib.parse.urlsplit(exchange.request.header("x-ms-copy-source"))
        if account_and_service(source.netloc)[1] is None:
            return "copies from other hosts"
        if "skoid=" in source.query:
            return "user delegation SAS"
        if "versionid=" in source.query:
            return "blob versions"
    if comp == "properties" and exchange.service == "blob" and exchange.method == "PUT":
        if b"<StaticWebsite><Enabled>true" in exchange.request.body:
            return "static websites"
        if b"<DeleteRetentionPolicy><Enabled>true" in exchange.request.body:
            return "soft delete"
    if re.fullmatch(r"P\d+", exchange.request.header("x-ms-access-tier", "")) and exchange.status < 300:
        return "premium page blob tiers"
    boundary = re.search(r"boundary=\"?([^\";]+)", exchange.request.content_type)
    if boundary and boundary[1].encode() not in exchange.request.body:
        return "boundary of the batch lost in the recording"
    if comp == "batch" and b"versionid=" in exchange.request.body:
        return "blob versions"
    if comp == "batch" and (b"Bearer" in exchange.request.body or b"skoid=" in exchange.request.body):
        return "Bearer tokens"
    return None


def is_transient(exchanges, index):
    """Answers that depend on the moment: 'not now', 'not yet there', 'not yet gone'."""
    exchange = exchanges[index]
    if exchange.status >= 500 and exchange.status != 501 or exchange.status in (408, 429):
        return True
    if "-secondary." in exchange.host and exchange.status == 404:
        return True  # not yet replicated
    before = exchanges[index - 1] if index else None
    if before and all((one.method, one.url, one.status) == ("DELETE", exchange.url, 202) for one in (before, exchange)):
        return True  # the container is still being deleted
    return exchange.error_code in ("ContainerBeingDeleted", "QueueBeingDeleted", "TableBeingDeleted",
                                   "AccountBeingCreated", "OperationTimedOut")


def is_polled(exchanges, index):
    """Whether a read is repeated until its answer changes: the client waits for something."""
    one = exchanges[index]
    if one.method not in ("GET", "HEAD"):
        return False
    for other in exchanges[index + 1:]:
        if (one.method, one.url, one.request.header("x-ms-range")) != \
                (other.method, other.url, other.request.header("x-ms-range")):
            return False
        if (one.status, one.answer.body, one.answer.header("x-ms-copy-status")) != \
                (other.status, other.answer.body, other.answer.header("x-ms-copy-status")):
            return True
    return False

