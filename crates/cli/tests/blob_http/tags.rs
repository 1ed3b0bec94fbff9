//! Tags: set, told, counted, and the limits of each.

use super::{HELLO_MD5, block_blob, properties, put, serve_container};
use larimar_testkit::http::{Client, Response, Sas};

fn body(tags: &[(&str, &str)]) -> String {
    let tag = |(key, value): &(&str, &str)| format!("<Tag><Key>{key}</Key><Value>{value}</Value></Tag>");
    format!("<Tags><TagSet>{}</TagSet></Tags>", tags.iter().map(tag).collect::<String>())
}

fn set(client: &Client, path: &str, body: impl Into<Vec<u8>>) -> Response {
    client.request("PUT", &format!("{path}?comp=tags")).xml(body).send()
}

fn told(client: &Client, path: &str) -> String {
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
    assert_eq!(told(&client, "/box/a"), "a +-./:=_9=first +-./:=_9;z=last;");
    assert_eq!(properties(&client, "/box/a").header("x-ms-tag-count"), Some("2"));
    assert_eq!(client.get("/box/a").send().header("x-ms-tag-count"), Some("2"));
    set(&client, "/box/a", body(&[("only", "1")])).is_status(204);
    assert_eq!(told(&client, "/box/a"), "only=1;");
    block_blob(&client, "/box/b", "x").header("x-ms-tags", "a=1&b%20c=d%2Fe").send().is_status(201);
    assert_eq!(told(&client, "/box/b"), "a=1;b c=d/e;");
    // A put without tags has none.
    put(&client, "/box/b", "y");
    assert_eq!(told(&client, "/box/b"), "");
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
    assert_eq!(told(&client, "/box/a"), format!("{key}={value};"));
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
    assert_eq!(told(&client, "/box/a"), "b=2;");
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
    // What there is in a container that is not public is not told either.
    owner.anonymous().get("/box?restype=container&comp=list&include=tags").send().is_error(404, "ResourceNotFound");
}
