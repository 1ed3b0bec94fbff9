//! Everything that clients can see of a store, as lines of text: what the services list, and of each thing its
//! properties, access policies and content. Only what is stored is written down, so that a server that answers with one
//! header more does not differ.

use larimar_testkit::Server;
use larimar_testkit::http::{Client, Response, encode};
use larimar_testkit::serde_json::Value;
use std::fmt::Write as _;

/// Queues whose messages become visible with time; [`super::write`] looks at them.
pub(crate) const HIDDEN: &str = "hidden";

/// A container whose blobs are also found by their tags. Stores of format 1.0 and 2.0 do not have it.
pub(crate) const TAGGED: &str = "tagged";

/// The service properties that `fill` sets.
const SETTINGS: [&str; 4] = ["Logging", "HourMetrics", "MinuteMetrics", "Cors"];

/// The headers with the stored properties of a container or a blob, besides metadata.
const HEADERS: [&str; 28] = [
    "Content-Length",
    "Content-Type",
    "Content-Encoding",
    "Content-Language",
    "Content-Disposition",
    "Cache-Control",
    "Content-MD5",
    "ETag",
    "Last-Modified",
    "x-ms-creation-time",
    "x-ms-blob-type",
    "x-ms-blob-public-access",
    "x-ms-blob-sequence-number",
    "x-ms-blob-committed-block-count",
    "x-ms-lease-state",
    "x-ms-lease-status",
    "x-ms-lease-duration",
    "x-ms-access-tier",
    "x-ms-access-tier-change-time",
    "x-ms-tag-count",
    "x-ms-copy-id",
    "x-ms-copy-source",
    "x-ms-copy-status",
    "x-ms-copy-progress",
    "x-ms-copy-completion-time",
    "x-ms-copy-destination-snapshot",
    "x-ms-incremental-copy",
    "x-ms-blob-sealed",
];

/// Texts up to this length are written down, of longer content length and checksum.
const TEXT_BYTES_MAX: usize = 80;

/// What clients see of a server's store.
pub(crate) fn of(server: &Server) -> String {
    let mut lines = String::new();
    tables(&server.client(), &mut lines);
    queues(&server.queues(), &mut lines);
    containers(&server.blobs(), &mut lines);
    lines
}

fn line(lines: &mut String, text: impl AsRef<str>) {
    writeln!(lines, "{}", text.as_ref()).expect("a string takes all");
}

fn tables(client: &Client, lines: &mut String) {
    service(client, "table", lines);
    for table in get(client, "/Tables").column("TableName") {
        line(lines, format!("table {table} acl {}", policies(client, &format!("/{table}?comp=acl"))));
        let (mut next, mut is_first) = (String::new(), true);
        while is_first || !next.is_empty() {
            is_first = false;
            let request = client.get(&format!("/{table}(){next}")).accept("application/json;odata=fullmetadata");
            let page = request.send();
            page.is_status(200);
            for entity in page.values() {
                line(lines, format!("entity {table} {}", stored(entity)));
            }
            let key = |name: &str| page.header(&format!("x-ms-continuation-{name}")).map(encode);
            next = key("NextPartitionKey").map_or_else(String::new, |partition| {
                format!("?NextPartitionKey={partition}&NextRowKey={}", key("NextRowKey").unwrap_or_default())
            });
        }
    }
}

/// An entity without what depends on the address it was read at.
fn stored(mut entity: Value) -> Value {
    let members = entity.as_object_mut().expect("an entity");
    members.retain(|name, _| !name.starts_with("odata.") || name == "odata.etag");
    entity
}

fn queues(client: &Client, lines: &mut String) {
    service(client, "queue", lines);
    for queue in names(&get(client, "/?comp=list")) {
        let answer = get(client, &format!("/{queue}?comp=metadata"));
        let acl = policies(client, &format!("/{queue}?comp=acl"));
        let count = answer.header("x-ms-approximate-messages-count").unwrap_or_default();
        line(lines, format!("queue {queue} messages {count} metadata {} acl {acl}", metadata(&answer)));
        if queue == HIDDEN {
            continue;
        }
        for message in
            get(client, &format!("/{queue}/messages?peekonly=true&numofmessages=32")).elements("QueueMessage")
        {
            line(lines, format!("message {queue} {message}"));
        }
    }
}

fn containers(client: &Client, lines: &mut String) {
    service(client, "blob", lines);
    for container in names(&get(client, "/?comp=list")) {
        let answer = get(client, &format!("/{container}?restype=container"));
        let acl = policies(client, &format!("/{container}?restype=container&comp=acl"));
        let (properties, metadata) = (headers(&answer), metadata(&answer));
        line(lines, format!("container {container} {properties} metadata {metadata} acl {acl}"));
        let list = format!("/{container}?restype=container&comp=list&include=snapshots,metadata,uncommittedblobs,copy");
        let list = get(client, &list);
        assert_eq!(list.element("NextMarker").unwrap_or_default(), "", "one page holds all");
        for blob in list.elements("Blob") {
            let inside = |name: &str| {
                let (_, rest) = blob.split_once(&format!("<{name}>"))?;
                rest.split_once(&format!("</{name}>")).map(|(text, _)| unescaped(text))
            };
            let name = inside("Name").expect("a name");
            one_blob(client, &format!("/{container}/{}", path(&name)), inside("Snapshot").as_deref(), lines);
        }
        if container == TAGGED {
            for expression in ["\"kind\"='draft'", "\"kind\"='final'", "\"kind\">='a' AND \"rank\">='2'"] {
                let found =
                    get(client, &format!("/{container}?restype=container&comp=blobs&where={}", encode(expression)));
                line(lines, format!("found {container} {expression} {}", found.elements("Name").join(" ")));
            }
        }
    }
}

fn one_blob(client: &Client, path: &str, snapshot: Option<&str>, lines: &mut String) {
    let version = snapshot.map(|time| format!("snapshot={}", encode(time))).unwrap_or_default();
    let shown = format!("{path} {}", snapshot.unwrap_or("now"));
    let part = |comp: &str| get(client, &format!("{path}?{comp}&{version}"));
    let mut found = client.get(&format!("{path}?{version}")).send();
    if found.status == 404 {
        line(lines, format!("blob {shown} uncommitted"));
    } else if found.status == 409 {
        // Blobs of the archive and destinations of incremental copies have properties, but are not read.
        let code = found.header("x-ms-error-code").unwrap_or_default().to_owned();
        found = client.request("HEAD", &format!("{path}?{version}")).send();
        found.is_status(200);
        line(lines, format!("blob {shown} {} metadata {}", headers(&found), metadata(&found)));
        line(lines, format!("content {shown} {code}"));
        return;
    } else {
        found.is_status(200);
        line(lines, format!("blob {shown} {} metadata {}", headers(&found), metadata(&found)));
        line(lines, format!("content {shown} {}", content(&found)));
    }
    match found.header("x-ms-blob-type") {
        Some("PageBlob") => line(lines, format!("pages {shown} {}", inner(&part("comp=pagelist"), "PageList"))),
        Some("AppendBlob") => {}
        _ => {
            let blocks = part("comp=blocklist&blocklisttype=all");
            line(
                lines,
                format!("blocks {shown} {}", content(&Response { body: inner(&blocks, "BlockList").into(), ..blocks })),
            );
        }
    }
    if snapshot.is_none() && found.header("x-ms-tag-count").is_some() {
        line(lines, format!("tags {shown} {}", inner(&part("comp=tags"), "Tags")));
    }
}

/// Short texts as they are; of others length and checksum.
fn content(found: &Response) -> String {
    match std::str::from_utf8(&found.body) {
        Ok(text) if text.len() <= TEXT_BYTES_MAX => format!("{text:?}"),
        _ => format!("{} bytes {:016x}", found.body.len(), xxhash_rust::xxh3::xxh3_64(&found.body)),
    }
}

fn service(client: &Client, name: &str, lines: &mut String) {
    let found = get(client, "/?restype=service&comp=properties");
    for setting in SETTINGS {
        line(lines, format!("{name} service {setting} {}", inner(&found, setting)));
    }
}

fn policies(client: &Client, path: &str) -> String {
    // Tables and queues answer with the list, containers with the public access besides.
    let list = client.get(path).accept("application/xml").send();
    list.is_status(200);
    list.elements("SignedIdentifier").concat()
}

fn headers(found: &Response) -> String {
    let present = HEADERS.iter().filter_map(|name| Some(format!("{name}={:?}", found.header(name)?)));
    present.collect::<Vec<_>>().join(" ")
}

fn metadata(found: &Response) -> String {
    let mut all: Vec<String> = Vec::new();
    for (name, value) in &found.headers {
        if let Some(name) = name.to_ascii_lowercase().strip_prefix("x-ms-meta-") {
            all.push(format!("{name}={value:?}"));
        }
    }
    all.sort();
    all.join(" ")
}

/// What stands inside the outermost element, without attributes and white space between elements.
fn inner(found: &Response, element: &str) -> String {
    found.element(element).unwrap_or_default().to_owned()
}

fn names(list: &Response) -> Vec<String> {
    list.elements("Name").iter().map(|name| unescaped(name)).filter(|name| !name.starts_with('$')).collect()
}

#[track_caller]
fn get(client: &Client, path: &str) -> Response {
    let reply = client.get(path).send();
    reply.is_status(200);
    reply
}

/// A name as a path has it.
pub(crate) fn path(name: &str) -> String {
    encode(name).replace("%2F", "/")
}

fn unescaped(text: &str) -> String {
    let entities = [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&apos;", "'"), ("&amp;", "&")];
    entities.iter().fold(text.to_owned(), |text, (entity, character)| text.replace(entity, character))
}
