//! Find Blobs by Tags: in a container, in the account, page by page, and who may.

use super::{block_blob, make_container, put, serve_container};
use larimar_testkit::http::{Client, Request, Response, Sas};

const IN_BOX: &str = "/box?restype=container&comp=blobs";
const IN_ACCOUNT: &str = "/?comp=blobs";

fn search<'c>(client: &'c Client, within: &str, expression: &str) -> Request<'c> {
    client.get(within).query("where", expression)
}

fn put_tagged(client: &Client, path: &str, tags: &str) {
    block_blob(client, path, "x").header("x-ms-tags", tags).send().is_status(201);
}

/// What was found: `container/blob`.
#[track_caller]
fn names(reply: &Response) -> Vec<String> {
    reply.is_status(200);
    let containers = reply.elements("ContainerName").into_iter();
    containers.zip(reply.elements("Name")).map(|(container, name)| format!("{container}/{name}")).collect()
}

#[track_caller]
fn found(client: &Client, within: &str, expression: &str) -> Vec<String> {
    names(&search(client, within, expression).send())
}

#[test]
fn x2_blobs_are_found_by_their_tags() {
    let server = serve_container();
    let client = server.blobs();
    make_container(&client, "other");
    put_tagged(&client, "/box/a%26b", "kind=big&n=1");
    put_tagged(&client, "/box/c", "kind=big&n=2");
    put_tagged(&client, "/other/d", "kind=big&n=2");
    put(&client, "/box/none", "x");
    let reply = search(&client, IN_BOX, "\"kind\"='big' AND n <= '1'").send();
    assert_eq!(reply.header("Content-Type"), Some("application/xml"), "{reply}");
    let body = reply.text().split_once("?>").expect("a declaration").1;
    let (start, rest) = body.split_once(" ServiceEndpoint=\"http://").expect("an endpoint");
    assert_eq!(start.trim(), "<EnumerationResults");
    assert_eq!(
        rest.split_once("/\">").expect("the endpoint ends").1,
        "<Where>&quot;kind&quot;='big' AND n &lt;= '1'</Where><Blobs><Blob><Name>a&amp;b</Name>\
         <ContainerName>box</ContainerName><Tags><TagSet><Tag><Key>kind</Key><Value>big</Value></Tag>\
         <Tag><Key>n</Key><Value>1</Value></Tag></TagSet></Tags></Blob></Blobs><NextMarker /></EnumerationResults>"
    );
    assert_eq!(found(&client, IN_ACCOUNT, "kind='big'"), ["box/a&amp;b", "box/c", "other/d"]);
    assert_eq!(found(&client, IN_ACCOUNT, "kind='big' AND @container='other'"), ["other/d"]);
    assert_eq!(found(&client, IN_BOX, "n='2'"), ["box/c"]);
    // Only tags that the expression names are returned.
    assert_eq!(search(&client, IN_BOX, "n='2'").send().elements("Key"), ["n"]);
    client.request("DELETE", "/box/c").send().is_status(202);
    assert_eq!(found(&client, IN_ACCOUNT, "n='2'"), ["other/d"]);
    client.request("DELETE", "/other?restype=container").send().is_status(202);
    assert_eq!(found(&client, IN_ACCOUNT, "n='2'"), Vec::<String>::new());
    search(&client, "/other?restype=container&comp=blobs", "n='2'").send().is_error(404, "ContainerNotFound");
}

#[test]
fn x2_found_blobs_come_in_pages() {
    let server = serve_container();
    let client = server.blobs();
    make_container(&client, "other");
    for n in 0..5 {
        put_tagged(&client, &format!("/box/b{n}"), "k=v");
        put_tagged(&client, &format!("/other/b{n}"), "k=v");
    }
    let (mut all, mut marker, mut pages) = (Vec::new(), String::new(), 0);
    loop {
        let reply = search(&client, IN_ACCOUNT, "k='v'").query("maxresults", "3").query("marker", &marker).send();
        let page = names(&reply);
        assert!(page.len() <= 3, "{reply}");
        (all, pages) = ([all, page].concat(), pages + 1);
        marker = reply.element("NextMarker").unwrap_or_default().to_owned();
        if marker.is_empty() {
            break;
        }
    }
    let expected: Vec<String> =
        ["box", "other"].iter().flat_map(|c| (0..5).map(move |n| format!("{c}/b{n}"))).collect();
    assert_eq!((all, pages), (expected, 4));
    let of = |name: &str, value: &str| search(&client, IN_ACCOUNT, "k='v'").query(name, value).send();
    of("marker", "x").is_error(400, "OutOfRangeInput");
    of("maxresults", "0").is_error(400, "OutOfRangeQueryParameterValue");
}

#[test]
fn x2_what_is_no_search_is_refused() {
    let server = serve_container();
    let client = server.blobs();
    put_tagged(&client, "/box/a", "a=1");
    for within in [IN_ACCOUNT, IN_BOX] {
        client.get(within).send().is_error(400, "MissingRequiredQueryParameter");
        search(&client, within, "").send().is_error(400, "MissingRequiredQueryParameter");
        for expression in ["a", "a=1", "a='1' OR b='2'", "a<>'1'", "@container='box'", "@name='x' AND a='1'", "a='1"] {
            search(&client, within, expression).send().is_error(400, "InvalidQueryParameterValue");
        }
        let long = format!("a='{}'", "x".repeat(9000));
        search(&client, within, &long).send().is_error(400, "InvalidQueryParameterValue");
        client.request("PUT", within).query("where", "a='1'").body("").send().is_error(405, "UnsupportedHttpVerb");
        // The operation came with a later version.
        let old = search(&client, within, "a='1'").header("x-ms-version", "2019-07-07").send();
        old.is_error(400, "InvalidQueryParameterValue");
        search(&client, within, "a='1'").header("x-ms-version", "2019-12-12").send().is_status(200);
    }
}

#[test]
fn s2_a_search_needs_the_permission_to_filter() {
    let server = serve_container();
    let owner = server.blobs();
    let public = owner.request("PUT", "/open?restype=container").header("x-ms-blob-public-access", "container");
    public.send().is_status(201);
    put_tagged(&owner, "/box/a", "k=v");
    put_tagged(&owner, "/open/a", "k=v");
    let with = |sas: Sas| owner.with_sas(&sas.token());
    assert_eq!(found(&with(Sas::container("box", "f")), IN_BOX, "k='v'"), ["box/a"]);
    let refused = search(&with(Sas::container("box", "racwdlt")), IN_BOX, "k='v'").send();
    refused.is_error(403, "AuthorizationPermissionMismatch");
    assert_eq!(search(&with(Sas::container("box", "f")), IN_ACCOUNT, "k='v'").send().status, 403);
    let elsewhere = search(&with(Sas::container("box", "f")), "/open?restype=container&comp=blobs", "k='v'").send();
    assert_eq!(elsewhere.status, 403, "{elsewhere}");
    assert_eq!(found(&with(Sas::account("o", "f").with("ss", "b")), IN_ACCOUNT, "k='v'"), ["box/a", "open/a"]);
    assert_eq!(found(&with(Sas::account("sco", "f").with("ss", "b")), IN_BOX, "k='v'"), ["box/a"]);
    search(&with(Sas::account("sco", "rwdlact").with("ss", "b")), IN_ACCOUNT, "k='v'")
        .send()
        .is_error(403, "AuthorizationPermissionMismatch");
    // It needs credentials, also for a public container.
    for within in [IN_ACCOUNT, "/open?restype=container&comp=blobs"] {
        let reply = search(&owner, within, "k='v'").unsigned().send();
        assert!((401..=404).contains(&reply.status), "{reply}");
        assert!(reply.elements("Name").is_empty());
    }
}
