//! Tags: set, read, counted, and their limits.

use super::{HELLO_MD5, block_blob, properties, put, serve_container};
use larimar_testkit::http::{Client, Response, Sas};

fn body(tags: &[(&str, &str)]) -> String {
    let tag = |(key, value): &(&str, &str)| format!("<Tag><Key>{key}</Key><Value>{value}</Value></Tag>");
    format!("<Tags><TagSet>{}</TagSet></Tags>", tags.iter().map(tag).collect::<String>())
}

fn set(client: &Client, path: &str, body: impl Into<Vec<u8>>) -> Response {
    client.request("PUT", &format!("{path}?comp=tags")).xml(body).send()
}

fn tags_of(client: &Client, path: &str) -> String {
    let reply = client.get(&format!("{path}?comp=tags")).send();
    reply.is_status(200);
    reply.elements("Key").iter().zip(reply.elements("Value")).map(|(key, value)| format!("{key}={value};")).collect()
}

#[test]
fn x2_tags_are_set_told_counted_and_replaced() {
    let server = serve_container();
    let client = server.blobs();
    put(&client, "/box/a", "x");
    let none = client.get("/box/a?comp=tags").send();
    assert!(none.text().contains("<Tags><TagSet /></Tags>"), "{none}");
    assert_eq!(properties(&client, "/box/a").header("x-ms-tag-count"), None);
    set(&client, "/box/a", body(&[("z", "last"), ("a +-./:=_9", "first +-./:=_9")])).is_status(204);
    assert_eq!(tags_of(&client, "/box/a"), "a +-./:=_9=first +-./:=_9;z=last;");
    assert_eq!(properties(&client, "/box/a").header("x-ms-tag-count"), Some("2"));
    assert_eq!(client.get("/box/a").send().header("x-ms-tag-count"), Some("2"));
    set(&client, "/box/a", body(&[("only", "1")])).is_status(204);
    assert_eq!(tags_of(&client, "/box/a"), "only=1;");
    block_blob(&client, "/box/b", "x").header("x-ms-tags", "a=1&b%20c=d%2Fe").send().is_status(201);
    assert_eq!(tags_of(&client, "/box/b"), "a=1;b c=d/e;");
    // A put without tags has none.
    put(&client, "/box/b", "y");
    assert_eq!(tags_of(&client, "/box/b"), "");
    client.get("/box/none?comp=tags").send().is_error(404, "BlobNotFound");
    set(&client, "/box/none", body(&[])).is_error(404, "BlobNotFound");
}

#[test]
fn x2_tags_past_their_limits_are_refused_and_change_nothing() {
    let server = serve_container();
    let client = server.blobs();
    put(&client, "/box/a", "x");
    let (key, value) = ("k".repeat(128), "v".repeat(256));
    set(&client, "/box/a", body(&[(&key, &value)])).is_status(204);
    let (long_key, long_value) = ("k".repeat(129), "v".repeat(257));
    let names: Vec<String> = (0..11).map(|n| format!("k{n}")).collect();
    let eleven: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), "v")).collect();
    for (tags, code) in [
        (&[(long_key.as_str(), "v")][..], "InvalidTag"),
        (&[("k", &long_value)], "InvalidTag"),
        (&[("", "v")], "EmptyTagName"),
        (&[("ä", "v")], "InvalidTag"),
        (&[("k", "a&amp;b")], "InvalidTag"),
        (&[("k", "1"), ("k", "2")], "DuplicateTagNames"),
        (&eleven, "TagsTooLarge"),
    ] {
        set(&client, "/box/a", body(tags)).is_error(400, code);
    }
    for text in ["", "x", "<Tags>", "<TagSet/>", "<Tags><TagSet><Tag><Key>a</Key></TagSet></Tags>"] {
        let refused = set(&client, "/box/a", text);
        assert_eq!(refused.status, 400, "{text}: {refused}");
    }
    let wrong = client.request("PUT", "/box/a?comp=tags").header("Content-MD5", HELLO_MD5);
    wrong.xml(body(&[])).send().is_error(400, "Md5Mismatch");
    assert_eq!(tags_of(&client, "/box/a"), format!("{key}={value};"));
    set(&client, "/box/a", body(&eleven[..10])).is_status(204);
    let header = |tags: &str| block_blob(&client, "/box/b", "x").header("x-ms-tags", tags).send();
    header("=v").is_error(400, "EmptyTagName");
    header("a=1&a=2").is_error(400, "DuplicateTagNames");
    header("a=%zz").is_error(400, "InvalidHeaderValue");
    client.get("/box/b").send().is_error(404, "BlobNotFound");
}

#[test]
fn x2_tags_of_snapshots_stay() {
    let server = serve_container();
    let client = server.blobs();
    block_blob(&client, "/box/a", "x").header("x-ms-tags", "a=1").send().is_status(201);
    let taken = client.request("PUT", "/box/a?comp=snapshot").send();
    set(&client, "/box/a", body(&[("b", "2")])).is_status(204);
    let at = taken.header("x-ms-snapshot").expect("a snapshot").to_owned();
    let reply = client.get(&format!("/box/a?comp=tags&snapshot={at}")).send();
    assert_eq!((reply.element("Key"), reply.element("Value")), (Some("a"), Some("1")), "{reply}");
    assert_eq!(tags_of(&client, "/box/a"), "b=2;");
}

/// An operation on a blob of a type: method, query, headers and body.
type Operation<'a> = (&'static str, &'static str, &'static str, Vec<(&'static str, &'a str)>, &'static str);

/// Operations on blobs that take conditions, with a source for copies.
fn operations(source: &str) -> Vec<Operation<'_>> {
    vec![
        ("BlockBlob", "HEAD", "", vec![], ""),
        ("BlockBlob", "GET", "", vec![], ""),
        ("BlockBlob", "GET", "?comp=metadata", vec![], ""),
        ("BlockBlob", "GET", "?comp=tags", vec![], ""),
        ("BlockBlob", "GET", "?comp=blocklist", vec![], ""),
        ("PageBlob", "GET", "?comp=pagelist", vec![], ""),
        ("BlockBlob", "PUT", "?comp=metadata", vec![("x-ms-meta-a", "b")], ""),
        ("BlockBlob", "PUT", "?comp=properties", vec![], ""),
        ("PageBlob", "PUT", "?comp=properties", vec![("x-ms-blob-content-length", "1024")], ""),
        ("BlockBlob", "PUT", "?comp=snapshot", vec![], ""),
        ("BlockBlob", "PUT", "?comp=tier", vec![("x-ms-access-tier", "Cool")], ""),
        ("BlockBlob", "PUT", "?comp=lease", vec![("x-ms-lease-action", "acquire"), ("x-ms-lease-duration", "15")], ""),
        ("BlockBlob", "PUT", "?comp=blocklist", vec![], "<BlockList/>"),
        ("BlockBlob", "PUT", "", vec![("x-ms-blob-type", "BlockBlob")], "y"),
        ("BlockBlob", "PUT", "", vec![("x-ms-blob-type", "AppendBlob")], ""),
        ("BlockBlob", "PUT", "", vec![("x-ms-blob-type", "BlockBlob"), ("x-ms-copy-source", source)], ""),
        ("BlockBlob", "PUT", "", vec![("x-ms-copy-source", source)], ""),
        ("AppendBlob", "PUT", "?comp=appendblock", vec![], "y"),
        ("AppendBlob", "PUT", "?comp=appendblock", vec![("x-ms-copy-source", source)], ""),
        ("PageBlob", "PUT", "?comp=page", vec![("x-ms-page-write", "clear"), ("x-ms-range", "bytes=0-511")], ""),
        ("BlockBlob", "PUT", "?comp=tags", vec![], "<Tags><TagSet/></Tags>"),
        ("BlockBlob", "DELETE", "", vec![], ""),
    ]
}

/// Every operation on a blob that takes conditions takes one on tags, and none is carried out while it does not hold.
#[test]
fn x2_conditions_on_tags_guard_every_operation() {
    let server = serve_container();
    let client = server.blobs();
    let wanted = "\"state\" = 'open' AND (\"rank\" >= '05' OR \"rank\" = 'top')";
    let tags = "state=open&rank=07";
    let source = format!("{}/box/source?{}", client.base(), Sas::blob("box", "source", "rt").token());
    block_blob(&client, "/box/source", "x").header("x-ms-tags", tags).send().is_status(201);
    let made = |path: &str, kind: &str, tags: &str| {
        let put = client.request("PUT", path).header("x-ms-blob-type", kind).header("x-ms-tags", tags);
        let put = if kind == "PageBlob" { put.header("x-ms-blob-content-length", "512") } else { put };
        put.body("").send().is_status(201);
    };
    for (n, (kind, method, query, headers, body)) in operations(&source).into_iter().enumerate() {
        for (tags, is_met) in [(tags, true), ("state=open&rank=04", false), ("state=done&rank=top", false), ("", false)]
        {
            let path = format!("/box/{n}-{tags}");
            made(&path, kind, tags);
            let before = properties(&client, &path);
            let mut request = client.request(method, &format!("{path}{query}")).header("x-ms-if-tags", wanted);
            for (name, value) in &headers {
                request = request.header(name, *value);
            }
            let reply = request.body(body).send();
            if is_met {
                assert!(reply.status < 300, "{method} {query} {headers:?}: {reply}");
                continue;
            }
            assert_eq!(reply.status, 412, "{method} {query} {headers:?} with {tags}: {reply}");
            assert_eq!(reply.header("x-ms-error-code"), Some("ConditionNotMet"), "{reply}");
            let after = properties(&client, &path);
            for name in ["etag", "x-ms-tag-count", "x-ms-lease-state", "x-ms-access-tier"] {
                assert_eq!(before.header(name), after.header(name), "{method} {query} {name}");
            }
        }
    }
    // It demands nothing of a blob that is not there.
    let new = block_blob(&client, "/box/new", "x").header("x-ms-if-tags", wanted).send();
    new.is_status(201);
    client.get("/box/none").header("x-ms-if-tags", wanted).send().is_error(404, "BlobNotFound");
}

/// The service's reference of 2026: Get and Set Blob Tags know conditions on the blob, under names of their own.
#[test]
fn reads_and_writes_of_tags_go_by_conditions_on_the_blob() {
    let server = serve_container();
    let client = server.blobs();
    let made = put(&client, "/box/a", "x");
    let etag = made.header("ETag").expect("an etag");
    let get = |name: &str, value: &str| client.get("/box/a?comp=tags").header(name, value).send();
    let set = |name: &str, value: &str| {
        client.request("PUT", "/box/a?comp=tags").header(name, value).xml(body(&[("k", "1")])).send()
    };
    let (past, future) = ("Sat, 01 Jan 2000 00:00:00 GMT", "Tue, 01 Jan 2030 00:00:00 GMT");
    for (name, good, bad, unread) in [
        ("x-ms-blob-if-match", etag, "\"0x8D0\"", 412),
        ("x-ms-blob-if-none-match", "\"0x8D0\"", etag, 304),
        ("x-ms-blob-if-modified-since", past, future, 304),
        ("x-ms-blob-if-unmodified-since", future, past, 412),
    ] {
        set(name, bad).is_error(412, "ConditionNotMet");
        get(name, bad).is_status(unread);
        get(name, good).is_status(200);
        set(name, good).is_status(204);
    }
}

/// A source is copied only while its tags satisfy the condition on them.
#[test]
fn x2_conditions_on_the_tags_of_a_source_guard_copies() {
    let server = serve_container();
    let client = server.blobs();
    block_blob(&client, "/box/a", "x").header("x-ms-tags", "k=1").send().is_status(201);
    let source = format!("{}/box/a?{}", client.base(), Sas::blob("box", "a", "rt").token());
    let copies: [&[(&str, &str)]; 3] = [&[], &[("x-ms-requires-sync", "true")], &[("x-ms-blob-type", "BlockBlob")]];
    for headers in copies {
        let copy = |wanted: &str| {
            let copy = client.request("PUT", "/box/b").header("x-ms-copy-source", &source);
            let copy = headers.iter().fold(copy, |copy, (name, value)| copy.header(name, *value));
            copy.header("x-ms-source-if-tags", wanted).body("").send()
        };
        copy("k = '2'").is_error(412, "ConditionNotMet");
        client.get("/box/b").send().is_error(404, "BlobNotFound");
        assert!(copy("k = '1'").status < 300);
        client.request("DELETE", "/box/b").send().is_status(202);
    }
}

/// A condition that cannot be read, or that an operation does not know, is refused: it is never passed over.
#[test]
fn x2_conditions_on_tags_that_make_no_sense_are_refused() {
    let server = serve_container();
    let client = server.blobs();
    block_blob(&client, "/box/a", "x").header("x-ms-tags", "k=1").send().is_status(201);
    let deep = format!("{}k = '1'{}", "(".repeat(2000), ")".repeat(2000));
    for wanted in ["k", "k = 1", "k = '1' AND", "@container = 'box'", &deep] {
        let refused = client.request("DELETE", "/box/a").header("x-ms-if-tags", wanted).send();
        refused.is_error(400, "InvalidHeaderValue");
    }
    let block = client.request("PUT", "/box/a?comp=block&blockid=AAAA").header("x-ms-if-tags", "k = '1'");
    block.body("x").send().is_error(400, "UnsupportedHeader");
    let container = client.request("DELETE", "/box?restype=container").header("x-ms-if-tags", "k = '1'");
    container.send().is_error(400, "UnsupportedHeader");
    properties(&client, "/box/a");
}

/// The answer to a condition on tags reveals them, so it needs the permission to read them.
#[test]
fn s2_conditions_on_tags_need_the_right_to_tags() {
    let server = serve_container();
    let owner = server.blobs();
    let made = owner.request("PUT", "/open?restype=container").header("x-ms-blob-public-access", "container").send();
    made.is_status(201);
    block_blob(&owner, "/open/a", "x").header("x-ms-tags", "k=secret").send().is_status(201);
    let of_container = |permissions: &str| owner.with_sas(&Sas::container("open", permissions).token());
    let guess = |reader: &Client| reader.get("/open/a").header("x-ms-if-tags", "k > 's'").send();
    guess(&of_container("rt")).is_status(200);
    for reader in [of_container("r"), owner.anonymous()] {
        let refused = guess(&reader);
        assert!(matches!(refused.status, 401 | 403), "{refused}");
    }
    let source = format!("{}/open/a?{}", owner.base(), Sas::container("open", "r").token());
    let writer = of_container("wct");
    let copy = writer.request("PUT", "/open/b").header("x-ms-copy-source", &source);
    let copied = copy.header("x-ms-source-if-tags", "k > 's'").body("").send();
    copied.is_error(403, "CannotVerifyCopySource");
}

/// Tags are listed to those only who may get them.
#[test]
fn s2_tags_are_listed_to_those_who_may_get_them() {
    let server = serve_container();
    let owner = server.blobs();
    let made = owner.request("PUT", "/open?restype=container").header("x-ms-blob-public-access", "container").send();
    made.is_status(201);
    block_blob(&owner, "/open/a", "x").header("x-ms-tags", "k=secret").send().is_status(201);
    let (list, tagged) =
        ("/open?restype=container&comp=list", "/open?restype=container&comp=list&include=metadata,tags");
    let of_container = |permissions: &str| owner.with_sas(&Sas::container("open", permissions).token());
    for (reader, is_allowed) in [
        (owner.lite(), true),
        (of_container("lt"), true),
        (of_container("rwl"), false),
        (owner.with_sas(&Sas::account("sco", "lt").with("ss", "b").token()), true),
        (owner.with_sas(&Sas::account("sco", "rwl").with("ss", "b").token()), false),
        (owner.anonymous(), false),
    ] {
        let plain = reader.get(list).send();
        plain.is_status(200);
        assert!(!plain.text().contains("secret"), "{plain}");
        let (listed, got) = (reader.get(tagged).send(), reader.get("/open/a?comp=tags").send());
        if is_allowed {
            listed.is_status(200);
            got.is_status(200);
            assert_eq!((listed.element("Value"), got.element("Value")), (Some("secret"), Some("secret")), "{listed}");
        } else {
            assert_eq!((listed.status, listed.code()), (got.status, got.code()), "{listed}");
            assert!(matches!(listed.status, 401 | 403) && !listed.text().contains("secret"), "{listed}");
        }
    }
    // The answer does not reveal what a private container has, either.
    owner
        .anonymous()
        .get("/box?restype=container&comp=list&include=tags")
        .send()
        .is_error(401, "NoAuthenticationInformation");
}
