//! Who may do what without a token: keys, strangers, public containers, the secondary.

use super::{block_blob, content, put, serve_container};
use larimar_testkit::http::Client;

#[test]
fn s1_a_wrong_key_and_no_key_are_refused() {
    let server = serve_container();
    let client = server.blobs();
    put(&client, "/box/a", "x");
    assert_eq!(content(&client.lite(), "/box/a"), b"x");
    let wrong = client.of_account("devstoreaccount1", "d3Jvbmc=");
    wrong.get("/box/a").send().is_error(403, "AuthenticationFailed");
    let detail = wrong.get("/box/a").send();
    assert!(detail.element("AuthenticationErrorDetail").is_some(), "{detail}");
    client.of_account("nobody", "d3Jvbmc=").get("/box/a").send().is_error(404, "ResourceNotFound");
    let old = client.get("/box/a").header("x-ms-date", "Sat, 01 Jan 2000 00:00:00 GMT").send();
    old.is_error(403, "AuthenticationFailed");
    let malformed = client.get("/box/a").unsigned().header("Authorization", "SharedKey nonsense").send();
    assert!((400..=403).contains(&malformed.status), "{malformed}");
    let bearer = client.get("/box/a").unsigned().header("Authorization", "Bearer abc").send();
    bearer.is_error(401, "InvalidAuthenticationInfo");
}

#[test]
fn s1_signatures_cover_paths_and_queries_of_every_spelling() {
    let server = serve_container();
    let client = server.blobs();
    for path in [
        "/box/a%20b",
        "/box/%C3%BC%E6%97%A5",
        "/box/a+b",
        "/box/(a)'b'!*",
        "/box/a%2Fb",
        "/box/~x",
        "/box/a;b=c,d",
        "/box/%e6%97%a5",
    ] {
        put(&client, path, path);
        assert_eq!(content(&client, path), path.as_bytes());
        let tagged =
            client.request("PUT", &format!("{path}?COMP=metadata&timeout=30")).header("x-ms-meta-a", "1  2").send();
        tagged.is_status(200);
        let lite = client.lite();
        assert_eq!(content(&lite, path), path.as_bytes());
        block_blob(&lite, path, "lite").send().is_status(201);
    }
    let listed = client.get("/box?restype=container&comp=list&prefix=a%20b&delimiter=%2F&maxresults=5").send();
    assert_eq!(listed.elements("Name"), ["a b"]);
}

/// Which of the reads a caller may do: a blob, its properties, its blocks; the list, the container's properties.
fn reads(client: &Client, container: &str) -> [u16; 6] {
    let list = format!("/{container}?restype=container&comp=list");
    let properties = format!("/{container}?restype=container");
    let blob = format!("/{container}/a");
    [
        client.get(&blob).send().status,
        client.request("HEAD", &blob).send().status,
        client.get(&format!("{blob}?comp=blocklist")).send().status,
        client.get(&list).send().status,
        client.get(&properties).send().status,
        client.get(&format!("{properties}&comp=metadata")).send().status,
    ]
}

#[test]
fn s1_strangers_read_what_is_public() {
    let server = serve_container();
    let owner = server.blobs();
    let stranger = owner.anonymous();
    for (name, access) in [("blobs", "blob"), ("all", "container")] {
        let request =
            owner.request("PUT", &format!("/{name}?restype=container")).header("x-ms-blob-public-access", access);
        request.send().is_status(201);
    }
    for container in ["box", "blobs", "all"] {
        put(&owner, &format!("/{container}/a"), "x");
    }
    assert_eq!(reads(&owner, "box"), [200; 6]);
    assert_eq!(reads(&stranger, "box"), [401; 6]);
    assert_eq!(reads(&stranger, "blobs"), [200, 200, 200, 401, 401, 401]);
    assert_eq!(reads(&stranger, "all"), [200; 6]);
    assert_eq!(reads(&stranger, "missing"), [401; 6]);
    // A private container looks to strangers like one that is not there.
    for path in ["/a", "?restype=container", "?restype=container&comp=list", "/none"] {
        for container in ["box", "missing"] {
            let request = stranger.get(&format!("/{container}{path}"));
            request.send().is_error(401, "NoAuthenticationInformation");
            request.header("x-ms-version", "2019-07-07").send().is_error(404, "ResourceNotFound");
        }
    }
    stranger.get("/blobs/none").send().is_error(404, "BlobNotFound");
    stranger.get("/blobs/a?comp=blocklist").send().is_status(200);
    // Plain browsers send none of the service's headers.
    let bare = stranger.get("/blobs/a").without("x-ms-version").without("x-ms-date").without("Accept").send();
    assert_eq!((bare.status, bare.text()), (200, "x"));
    for request in [
        block_blob(&stranger, "/all/b", "x"),
        stranger.request("DELETE", "/all/a"),
        stranger.request("PUT", "/all/a?comp=metadata"),
        stranger.request("PUT", "/all/a?comp=snapshot"),
        stranger.request("PUT", "/new?restype=container"),
        stranger.request("DELETE", "/all?restype=container"),
        stranger.get("/all?restype=container&comp=acl"),
        stranger.get("/all/a?comp=tags"),
        stranger.get("/all/a?comp=blocklist&blocklisttype=uncommitted"),
        stranger.get("/all/a?comp=blocklist&blocklisttype=all"),
        stranger.get("/?comp=list"),
        stranger.get("/?restype=service&comp=properties"),
    ] {
        let refused = request.send();
        refused.is_error(401, "NoAuthenticationInformation");
        assert!(refused.header("WWW-Authenticate").is_some(), "{refused}");
        request.header("x-ms-version", "2018-11-09").send().is_error(404, "ResourceNotFound");
    }
    for path in ["/", "/all", "/all/a"] {
        let info = stranger.get(&format!("{path}?restype=account&comp=properties"));
        info.send().is_error(404, "ResourceNotFound");
    }
    owner.request("PUT", "/all?restype=container&comp=acl").body("").send().is_status(200);
    assert_eq!(reads(&stranger, "all"), [401; 6], "access is taken back");
    assert_eq!(content(&owner, "/all/a"), b"x");
}

#[test]
fn s1_the_secondary_is_read_and_not_written() {
    let server = serve_container();
    let client = server.blobs();
    put(&client, "/box/a", "x");
    let secondary = client.secondary();
    assert_eq!(content(&secondary, "/box/a"), b"x");
    assert_eq!(secondary.get("/box?restype=container&comp=list").send().elements("Name"), ["a"]);
    for request in [
        block_blob(&secondary, "/box/b", "x"),
        secondary.request("DELETE", "/box/a"),
        secondary.request("PUT", "/new?restype=container"),
        secondary.request("PUT", "/box/a?comp=lease").header("x-ms-lease-action", "break"),
        secondary.request("POST", "/?comp=batch").body(""),
    ] {
        request.send().is_error(403, "InsufficientAccountPermissions");
    }
    client.get("/box/b").send().is_error(404, "BlobNotFound");
}

#[test]
fn s1_accounts_are_named_by_the_host_too() {
    let server = serve_container();
    let client = server.blobs();
    put(&client, "/box/a", "x");
    let host = format!("devstoreaccount1.blob.localhost:{}", client.address().port());
    let on_host =
        |method: &str, target: &str| client.request(method, target).target(target).header("Host", host.as_str());
    let found = on_host("GET", "/box/a").send();
    assert_eq!((found.status, found.text()), (200, "x"), "{found}");
    let list = on_host("GET", "/box?restype=container&comp=list").send();
    assert!(list.text().contains(&format!("ServiceEndpoint=\"http://{host}/\"")), "{list}");
    let copy = on_host("PUT", "/box/b").header("x-ms-copy-source", format!("http://{host}/box/a")).send();
    copy.is_status(202);
    assert_eq!(content(&client, "/box/b"), b"x");
    let away = "http://other.blob.core.windows.net/box/a";
    on_host("PUT", "/box/c").header("x-ms-copy-source", away).send().is_error(404, "CannotVerifyCopySource");
    // As the Azure CLI spells it.
    let own = "https://devstoreaccount1.blob.core.windows.net/box/a";
    on_host("PUT", "/box/c").header("x-ms-copy-source", own).send().is_status(202);
}
