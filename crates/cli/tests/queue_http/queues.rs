//! Queues: create, list, delete; metadata, properties, stats, and what lies outside of the service.

use super::{put, serve, serve_queue};
use larimar_testkit::http::Sas;

#[test]
fn x1_a_queue_is_created_found_and_deleted() {
    let server = serve();
    let client = server.queues();
    let create = |color: &str| client.request("PUT", "/orders").header("x-ms-meta-color", color).send();
    let created = create("red");
    created.is_status(201);
    assert!(created.header("x-ms-request-id").is_some());
    assert_eq!(created.header("Server"), Some("Windows-Azure-Queue/1.0 Microsoft-HTTPAPI/2.0"));
    create("red").is_status(204);
    create("blue").is_error(409, "QueueAlreadyExists");
    client.request("DELETE", "/orders").send().is_status(204);
    client.request("DELETE", "/orders").send().is_error(404, "QueueNotFound");
}

#[test]
fn x1_bad_names_and_metadata_are_refused() {
    let server = serve();
    let client = server.queues();
    for name in ["Upper", "a--b", "-ab", "a_b", "$logs"] {
        client.request("PUT", &format!("/{name}")).send().is_error(400, "InvalidResourceName");
    }
    for name in ["ab", &"q".repeat(64)] {
        client.request("PUT", &format!("/{name}")).send().is_error(400, "OutOfRangeInput");
    }
    let bad = client.request("PUT", "/orders").header("x-ms-meta-1a", "x").send();
    bad.is_error(400, "InvalidMetadata");
    let large = client.request("PUT", "/orders").header("x-ms-meta-a", "x".repeat(8 << 10)).send();
    large.is_error(400, "MetadataTooLarge");
}

#[test]
fn x1_metadata_is_replaced_and_told_with_the_count() {
    let server = serve_queue();
    let client = server.queues();
    let set = client.request("PUT", "/jobs?comp=metadata").header("x-ms-meta-a", "1").header("x-ms-meta-b", "2").send();
    set.is_status(204);
    client.request("PUT", "/jobs?comp=metadata").header("x-ms-meta-c", "3").send().is_status(204);
    put(&client, "one", "");
    put(&client, "two", "?visibilitytimeout=600");
    for method in ["GET", "HEAD"] {
        let found = client.request(method, "/jobs?comp=metadata").send();
        found.is_status(200);
        assert_eq!(found.header("x-ms-approximate-messages-count"), Some("2"), "hidden ones count too");
        assert_eq!((found.header("x-ms-meta-a"), found.header("x-ms-meta-c")), (None, Some("3")));
    }
    let missing = client.request("HEAD", "/missing?comp=metadata").send();
    missing.is_error(404, "QueueNotFound");
}

#[test]
fn x1_queues_are_listed_by_prefix_in_pages() {
    let server = serve();
    let client = server.queues();
    for name in ["beta", "alpha-2", "alpha-1", "alpha-3"] {
        client.request("PUT", &format!("/{name}")).header("x-ms-meta-of", name).send().is_status(201);
    }
    let list = |query: &str| client.get(&format!("/?comp=list{query}")).send();
    let all = list("");
    assert_eq!(all.elements("Name"), ["alpha-1", "alpha-2", "alpha-3", "beta"]);
    assert!(all.text().contains("<NextMarker />") || all.text().contains("<NextMarker/>"), "{all}");
    assert!(!all.text().contains("<Metadata>"), "{all}");
    assert_eq!(list("&include=metadata&prefix=beta").element("of"), Some("beta"));
    let page = list("&prefix=alpha&maxresults=2");
    assert_eq!((page.elements("Name"), page.element("MaxResults")), (vec!["alpha-1", "alpha-2"], Some("2")));
    let marker = page.element("NextMarker").expect("a marker").to_owned();
    let rest = client.get("/?comp=list&prefix=alpha").query("marker", &marker).send();
    assert_eq!(rest.elements("Name"), ["alpha-3"]);
    assert_eq!(list("&prefix=gamma").elements("Name"), Vec::<&str>::new());
    for max in ["0", "5001"] {
        list(&format!("&maxresults={max}")).is_error(400, "OutOfRangeQueryParameterValue");
    }
}

#[test]
fn x3_properties_and_stats_are_those_of_the_queue_service_alone() {
    let server = serve();
    let client = server.queues();
    let path = "/?restype=service&comp=properties";
    let logging = "<Logging><Version>2.0</Version><Read>true</Read><Write>true</Write><Delete>true</Delete>\
                   <RetentionPolicy><Enabled>false</Enabled></RetentionPolicy></Logging>";
    let body = format!("<StorageServiceProperties>{logging}</StorageServiceProperties>");
    client.request("PUT", path).body(body).send().is_status(202);
    assert!(client.get(path).send().text().contains(logging));
    let of_tables = server.client().get(path).accept("application/xml").send();
    assert!(!of_tables.text().contains("<Version>2.0"), "{of_tables}");
    let stats = client.secondary().get("/?restype=service&comp=stats").send();
    assert_eq!(stats.element("Status"), Some("live"), "{stats}");
    client.secondary().request("PUT", "/other").send().is_error(403, "InsufficientAccountPermissions");
}

#[test]
fn what_the_service_does_not_know_is_refused() {
    let server = serve_queue();
    let client = server.queues();
    for (method, path) in [("PATCH", "/jobs"), ("POST", "/jobs"), ("GET", "/jobs?comp=unknown"), ("GET", "/jobs/other")]
    {
        let reply = client.request(method, path).send();
        assert!((400..=405).contains(&reply.status), "{method} {path}: {reply}");
        assert!(reply.text().contains("<Error><Code>"), "{reply}");
    }
}

#[test]
fn names_of_metadata_keep_their_case_and_compare_without() {
    let server = serve();
    let client = server.queues();
    let create = |name: &str| client.request("PUT", "/cased").header(name, "1").header("x-ms-meta-lower", "2").send();
    create("x-ms-meta-CamelCase").is_status(201);
    create("X-MS-META-camelcase").is_status(204);
    let answer = client.get("/cased?comp=metadata").send();
    let names: Vec<_> = answer.headers.iter().map(|(name, _)| name.as_str()).collect();
    assert!(names.contains(&"x-ms-meta-CamelCase") && names.contains(&"x-ms-meta-lower"), "{answer}");
    let listed = client.get("/?comp=list&include=Metadata").send();
    assert_eq!((listed.element("CamelCase"), listed.element("lower")), (Some("1"), Some("2")), "{listed}");
    let guest = client.with_sas(&Sas::account("c", "w").with("ss", "q").token());
    let twice = guest.request("PUT", "/cased?comp=metadata").header("x-ms-meta-a", "1").also("x-ms-meta-A", "2").send();
    twice.is_error(400, "InvalidMetadata");
}

#[test]
fn errors_to_head_have_no_content_type() {
    let server = serve();
    let missing = server.queues().request("HEAD", "/missing?comp=metadata").send();
    missing.is_error(404, "QueueNotFound");
    assert_eq!(missing.header("Content-Type"), None, "{missing}");
    assert!(server.queues().get("/missing?comp=metadata").send().header("Content-Type").is_some());
}

#[test]
fn what_is_read_is_not_kept_by_caches() {
    let server = serve_queue();
    let client = server.queues();
    for path in
        ["/?comp=list", "/?restype=service&comp=properties", "/jobs?comp=acl", "/jobs?comp=metadata", "/jobs/messages"]
    {
        let read = client.get(path).send();
        assert_eq!((read.status, read.header("Cache-Control")), (200, Some("no-cache")), "{path}: {read}");
    }
    assert_eq!(client.get("/missing?comp=metadata").send().header("Cache-Control"), None);
    assert_eq!(client.request("PUT", "/jobs").send().header("Cache-Control"), None);
}

#[test]
fn a_marker_that_is_none_is_out_of_range() {
    let server = serve();
    let refused = server.queues().get("/?comp=list&marker=garbage").send();
    refused.is_error(400, "OutOfRangeInput");
    assert!(refused.text().contains("One of the request inputs is out of range."), "{refused}");
    assert_eq!(refused.element("QueryParameterName"), None, "{refused}");
}

#[test]
fn the_default_version_is_a_setting_of_blobs_alone() {
    let server = serve();
    let body = "<StorageServiceProperties><DefaultServiceVersion>2021-06-08</DefaultServiceVersion></StorageServiceProperties>";
    let path = "/?restype=service&comp=properties";
    server.queues().request("PUT", path).xml(body).send().is_error(400, "InvalidXmlDocument");
    server.client().request("PUT", path).xml(body).send().is_error(400, "InvalidXmlDocument");
    server.blobs().request("PUT", path).xml(body).send().is_status(202);
}
