//! Containers: create, properties, metadata, access, conditions, deletion, and their list.

use super::{block_blob, content, header, make_container, put, serve, serve_container};
use larimar_testkit::http::Response;

#[test]
fn x2_a_container_is_made_told_and_deleted() {
    let server = serve();
    let client = server.blobs();
    let made = client
        .request("PUT", "/box?restype=container")
        .header("x-ms-meta-Color", "red")
        .header("x-ms-blob-public-access", "blob")
        .body("")
        .send();
    made.is_status(201);
    assert!(header(&made, "ETag").starts_with("\"0x8D"), "{made}");
    assert_eq!(made.header("Server"), Some("Windows-Azure-Blob/1.0 Microsoft-HTTPAPI/2.0"));
    assert_eq!(made.header("x-ms-version"), Some("2024-11-04"));
    assert!(made.header("x-ms-request-id").is_some());
    client.request("PUT", "/box?restype=container").send().is_error(409, "ContainerAlreadyExists");
    for method in ["GET", "HEAD"] {
        let answer = client.request(method, "/box?restype=container").send();
        answer.is_status(200);
        for (name, value) in [
            ("ETag", header(&made, "ETag")),
            ("Last-Modified", header(&made, "Last-Modified")),
            ("x-ms-meta-Color", "red"),
            ("x-ms-lease-status", "unlocked"),
            ("x-ms-lease-state", "available"),
            ("x-ms-blob-public-access", "blob"),
            ("x-ms-has-immutability-policy", "false"),
            ("x-ms-has-legal-hold", "false"),
        ] {
            assert_eq!(answer.header(name), Some(value), "{name}: {answer}");
        }
        assert!(answer.header("x-ms-lease-duration").is_none());
        let metadata = client.request(method, "/box?restype=container&comp=metadata").send();
        assert_eq!(metadata.header("x-ms-meta-Color"), Some("red"), "{metadata}");
        assert_eq!(metadata.header("ETag"), made.header("ETag"));
    }
    client.request("DELETE", "/box?restype=container").send().is_status(202);
    client.get("/box?restype=container").send().is_error(404, "ContainerNotFound");
    client.request("HEAD", "/box?restype=container").send().is_error(404, "ContainerNotFound");
    client.request("DELETE", "/box?restype=container").send().is_error(404, "ContainerNotFound");
    for path in ["/box/a", "/box?restype=container&comp=list", "/box?restype=container&comp=acl"] {
        client.get(path).send().is_error(404, "ContainerNotFound");
    }
    client
        .request("PUT", "/box/a")
        .header("x-ms-blob-type", "BlockBlob")
        .body("x")
        .send()
        .is_error(404, "ContainerNotFound");
}

#[test]
fn x2_a_container_made_again_is_empty() {
    let server = serve_container();
    let client = server.blobs();
    put(&client, "/box/a", "old");
    client.request("PUT", "/box/a?comp=block&blockid=AAAA").body("staged").send().is_status(201);
    client.request("DELETE", "/box?restype=container").send().is_status(202);
    make_container(&client, "box");
    client.get("/box/a").send().is_error(404, "BlobNotFound");
    client.get("/box/a?comp=blocklist&blocklisttype=all").send().is_error(404, "BlobNotFound");
    let list = client.get("/box?restype=container&comp=list&include=uncommittedblobs,snapshots").send();
    assert!(list.elements("Name").is_empty(), "{list}");
}

#[test]
fn x2_metadata_of_a_container_is_replaced_whole() {
    let server = serve_container();
    let client = server.blobs();
    let set = |pairs: &[(&str, &str)]| {
        let request = client.request("PUT", "/box?restype=container&comp=metadata");
        let reply = pairs.iter().fold(request, |request, (name, value)| request.header(name, *value)).send();
        reply.is_status(200);
        reply
    };
    let first = set(&[("x-ms-meta-a", "1"), ("x-ms-meta-b", "2")]);
    let second = set(&[("x-ms-meta-c", "3")]);
    assert_ne!(header(&first, "ETag"), header(&second, "ETag"));
    let answer = client.get("/box?restype=container").send();
    assert_eq!((answer.header("x-ms-meta-a"), answer.header("x-ms-meta-c")), (None, Some("3")));
    assert_eq!(answer.header("ETag"), second.header("ETag"));
    set(&[]);
    assert_eq!(client.get("/box?restype=container").send().header("x-ms-meta-c"), None);
}

#[test]
fn x2_containers_know_conditions_on_times_only() {
    let server = serve_container();
    let client = server.blobs();
    let metadata = |name: &str, value: &str| {
        client.request("PUT", "/box?restype=container&comp=metadata").header(name, value).send()
    };
    metadata("If-Modified-Since", "Tue, 01 Jan 2030 00:00:00 GMT").is_error(412, "ConditionNotMet");
    metadata("If-Modified-Since", "Sat, 01 Jan 2000 00:00:00 GMT").is_status(200);
    metadata("If-Match", "*").is_error(400, "ConditionHeadersNotSupported");
    metadata("If-Modified-Since", "yesterday").is_error(400, "InvalidHeaderValue");
    let delete =
        |name: &str, value: &str| client.request("DELETE", "/box?restype=container").header(name, value).send();
    delete("If-Unmodified-Since", "Sat, 01 Jan 2000 00:00:00 GMT").is_error(412, "ConditionNotMet");
    delete("If-Modified-Since", "Tue, 01 Jan 2030 00:00:00 GMT").is_error(412, "ConditionNotMet");
    delete("If-None-Match", "\"0x8D\"").is_error(400, "ConditionHeadersNotSupported");
    let acl = client.request("PUT", "/box?restype=container&comp=acl").body("");
    acl.header("If-Unmodified-Since", "Sat, 01 Jan 2000 00:00:00 GMT").send().is_error(412, "ConditionNotMet");
    delete("If-Unmodified-Since", "Tue, 01 Jan 2030 00:00:00 GMT").is_status(202);
}

#[test]
fn x2_access_of_a_container_is_set_whole_and_told() {
    let server = serve_container();
    let client = server.blobs();
    let acl = "/box?restype=container&comp=acl";
    let policy = |id: &str, permission: &str| {
        format!(
            "<SignedIdentifier><Id>{id}</Id><AccessPolicy><Start>2020-01-01T00:00:00Z</Start>\
             <Expiry>2120-01-01T00:00:00Z</Expiry><Permission>{permission}</Permission></AccessPolicy></SignedIdentifier>"
        )
    };
    let list = |policies: String| format!("<SignedIdentifiers>{policies}</SignedIdentifiers>");
    let set = client.request("PUT", acl).header("x-ms-blob-public-access", "container");
    let done = set.clone().body(list(policy("readers", "rl"))).send();
    done.is_status(200);
    let answer = client.get(acl).send();
    assert_eq!(answer.header("x-ms-blob-public-access"), Some("container"));
    assert_eq!(answer.header("ETag"), done.header("ETag"));
    assert_eq!(answer.element("Id"), Some("readers"), "{answer}");
    assert_eq!(answer.element("Permission"), Some("rl"));
    assert!(answer.element("Expiry").is_some_and(|time| time.starts_with("2120-01-01T00:00:00")), "{answer}");
    let many = |count: usize| list((0..count).map(|n| policy(&format!("p{n}"), "r")).collect());
    client.request("PUT", acl).body(many(5)).send().is_status(200);
    assert_eq!(client.get(acl).send().elements("Id").len(), 5);
    assert_eq!(client.get(acl).send().header("x-ms-blob-public-access"), None, "access is set anew as well");
    for body in [
        many(6),
        list(policy(&"i".repeat(65), "r")),
        list(policy("a", "q")),
        list("<SignedIdentifier/>".to_owned()),
        list("<Other/>".to_owned()),
        "<SignedIdentifiers>".to_owned(),
        "nonsense".to_owned(),
    ] {
        let refused = client.request("PUT", acl).body(body.clone()).send();
        assert_eq!(refused.status, 400, "{body}: {refused}");
    }
    assert_eq!(client.get(acl).send().elements("Id").len(), 5, "what is refused changes nothing");
    set.header("x-ms-blob-public-access", "everybody").body("").send().is_error(400, "InvalidHeaderValue");
    client.request("PUT", acl).body("").send().is_status(200);
    assert!(client.get(acl).send().elements("Id").is_empty());
}

#[test]
fn x2_containers_are_listed_in_order_by_prefix_and_in_pages() {
    let server = serve();
    let client = server.blobs();
    for name in ["beta", "alpha-2", "alpha-1", "gamma"] {
        let request = client.request("PUT", &format!("/{name}?restype=container"));
        request.header("x-ms-meta-of", name).send().is_status(201);
    }
    let list = |query: &str| {
        let reply = client.get(&format!("/?comp=list{query}")).send();
        reply.is_status(200);
        reply
    };
    let all = list("");
    assert_eq!(all.elements("Name"), ["alpha-1", "alpha-2", "beta", "gamma"]);
    assert!(all.text().contains(&format!("<EnumerationResults ServiceEndpoint=\"{}/\">", client.base())), "{all}");
    assert!(all.text().contains("<NextMarker />"), "{all}");
    for element in ["Last-Modified", "Etag", "LeaseStatus", "LeaseState", "HasImmutabilityPolicy", "HasLegalHold"] {
        assert_eq!(all.elements(element).len(), 4, "{element}: {all}");
    }
    assert!(all.element("Etag").is_some_and(|etag| etag.starts_with("&quot;0x8D")), "{all}");
    assert!(all.element("of").is_none(), "metadata is listed only on demand: {all}");
    assert_eq!(list("&include=metadata").elements("of"), ["alpha-1", "alpha-2", "beta", "gamma"]);
    assert_eq!(list("&prefix=alpha").elements("Name"), ["alpha-1", "alpha-2"]);
    assert_eq!(list("&prefix=delta").elements("Name").len(), 0);
    let (mut marker, mut seen) = (String::new(), Vec::new());
    for _ in 0..4 {
        let page = list(&format!("&maxresults=1&marker={marker}"));
        assert_eq!(page.element("MaxResults"), Some("1"));
        seen.extend(page.elements("Name").iter().map(|name| (*name).to_owned()));
        marker = page.element("NextMarker").unwrap_or_default().to_owned();
    }
    assert_eq!((seen.join(" "), marker), ("alpha-1 alpha-2 beta gamma".to_owned(), String::new()));
    client.get("/?comp=list&maxresults=0").send().is_error(400, "OutOfRangeQueryParameterValue");
    client.get("/?comp=list&maxresults=x").send().is_error(400, "InvalidQueryParameterValue");
    client.get("/?comp=list&marker=nonsense").send().is_error(400, "OutOfRangeInput");
    client.get("/?comp=list&include=everything").send().is_error(400, "InvalidQueryParameterValue");
}

/// What the service answers is not known; a container without a name is neither created nor deleted nor listed.
#[test]
fn an_empty_name_of_a_container_is_refused() {
    let server = serve_container();
    let client = server.blobs();
    put(&client, "/box/a", "x");
    for (method, path) in [
        ("PUT", "/?restype=container"),
        ("DELETE", "/?restype=container"),
        ("GET", "/?restype=container"),
        ("GET", "/?restype=container&comp=list"),
        ("PUT", "//?restype=container"),
    ] {
        let reply = client.request(method, path).body("").send();
        assert_eq!(reply.status, 400, "{method} {path}: {reply}");
    }
    assert_eq!(client.get("/?comp=list").send().elements("Name"), ["box"]);
    assert_eq!(content(&client, "/box/a"), b"x");
}

#[test]
fn names_of_metadata_keep_their_case() {
    let server = serve();
    let client = server.blobs();
    let names = |reply: &Response| reply.headers.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>();
    let has = |reply: &Response, name: &str| names(reply).contains(&name.to_owned());
    let created = client.request("PUT", "/box?restype=container").header("x-ms-meta-Hello", "1").send();
    created.is_status(201);
    assert!(has(&client.get("/box?restype=container").send(), "x-ms-meta-Hello"));
    let listed = client.get("/?comp=list&include=metadata").send();
    assert_eq!(listed.element("Hello"), Some("1"), "{listed}");
    let blob = block_blob(&client, "/box/a", "x").header("X-Ms-Meta-AzureWebJobs_Owner", "2");
    blob.send().is_status(201);
    let check = |path: &str| {
        for method in ["GET", "HEAD"] {
            let answer = client.request(method, path).send();
            assert!(has(&answer, "x-ms-meta-AzureWebJobs_Owner"), "{path}: {answer}");
        }
    };
    check("/box/a");
    check("/box/a?comp=metadata");
    let copied = client.request("PUT", "/box/b").header("x-ms-copy-source", format!("{}/box/a", client.base())).send();
    copied.is_status(202);
    check("/box/b");
    let listed = client.get("/box?restype=container&comp=list&include=metadata").send();
    assert_eq!(listed.elements("AzureWebJobs_Owner"), ["2", "2"], "{listed}");
    // A client that reads, changes and writes back signs the names as it received them.
    client.request("PUT", "/box/a?comp=metadata").header("x-ms-meta-AzureWebJobs_Owner", "3").send().is_status(200);
    assert_eq!(client.request("HEAD", "/box/a").send().header("x-ms-meta-AzureWebJobs_Owner"), Some("3"));
}

#[test]
fn errors_to_head_have_no_content_type() {
    let server = serve_container();
    let client = server.blobs();
    for path in ["/box/none", "/none?restype=container", "/none/none"] {
        let missing = client.request("HEAD", path).send();
        assert_eq!((missing.status, missing.header("Content-Type")), (404, None), "{path}: {missing}");
        assert!(missing.header("x-ms-error-code").is_some());
    }
    put(&client, "/box/a", "x");
    let failed = client.request("HEAD", "/box/a").header("If-Match", "\"0x1\"").send();
    assert_eq!((failed.status, failed.header("Content-Type")), (412, None), "{failed}");
    assert!(client.request("HEAD", "/box/a").send().header("Content-Type").is_some());
}
