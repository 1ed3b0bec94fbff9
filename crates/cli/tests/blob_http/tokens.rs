//! Shared access signatures: for a blob, a container, a snapshot, by a stored policy, for the account.

use super::{block_blob, content, header, make_container, put, serve_container};
use larimar_testkit::http::{Client, Response, Sas};

/// Does something with a token of letters that allow it, and is refused with letters that do not.
#[track_caller]
fn check(owner: &Client, (allowing, lacking): (&str, &str), status: u16, run: impl Fn(&Client) -> Response) {
    let with = |permissions: &str| owner.with_sas(&Sas::container("box", permissions).token());
    let refused = run(&with(lacking));
    assert_eq!(refused.header("x-ms-error-code"), Some("AuthorizationPermissionMismatch"), "{lacking}: {refused}");
    run(&with(allowing)).is_status(status);
}

#[test]
fn s2_a_token_for_a_container_allows_what_it_names() {
    let server = serve_container();
    let owner = server.blobs();
    put(&owner, "/box/a", "x");
    let lease = |client: &Client, action: &str| {
        let request = client.request("PUT", "/box/a?comp=lease").header("x-ms-lease-action", action);
        if action == "acquire" { request.header("x-ms-lease-duration", "-1") } else { request }.send()
    };
    check(&owner, ("r", "wdl"), 200, |client| client.get("/box/a").send());
    check(&owner, ("r", "wdl"), 200, |client| client.request("HEAD", "/box/a").send());
    check(&owner, ("r", "l"), 200, |client| client.get("/box/a?comp=blocklist").send());
    check(&owner, ("l", "rw"), 200, |client| client.get("/box?restype=container&comp=list").send());
    check(&owner, ("w", "r"), 200, |client| client.request("PUT", "/box/a?comp=metadata").send());
    let block = "/box/a?comp=block&blockid=AAAA";
    check(&owner, ("w", "rc"), 201, |client| client.request("PUT", block).body("x").send());
    check(&owner, ("c", "rl"), 201, |client| client.request("PUT", "/box/a?comp=snapshot").send());
    check(&owner, ("w", "rc"), 201, |client| lease(client, "acquire"));
    check(&owner, ("d", "r"), 202, |client| lease(client, "break"));
    check(&owner, ("t", "rw"), 200, |client| client.get("/box/a?comp=tags").send());
    let log = owner.request("PUT", "/box/log").header("x-ms-blob-type", "AppendBlob").body("").send();
    log.is_status(201);
    check(&owner, ("a", "r"), 201, |client| client.request("PUT", "/box/log?comp=appendblock").body("x").send());
    check(&owner, ("d", "rwl"), 202, |client| client.request("DELETE", "/box/log").send());
}

#[test]
fn s2_a_token_for_a_container_is_for_its_blobs_and_no_others() {
    let server = serve_container();
    let owner = server.blobs();
    make_container(&owner, "other");
    put(&owner, "/other/a", "x");
    let all = owner.with_sas(&Sas::container("box", "racwdlt").token());
    for request in [
        all.request("DELETE", "/box?restype=container"),
        all.request("PUT", "/box?restype=container&comp=metadata"),
        all.get("/box?restype=container&comp=acl"),
        all.get("/?comp=list"),
    ] {
        let reply = request.send();
        assert_eq!(reply.status, 403, "{reply}");
    }
    all.get("/other/a").send().is_error(403, "AuthenticationFailed");
    all.get("/other?restype=container&comp=list").send().is_error(403, "AuthenticationFailed");
}

#[test]
fn s2_a_token_for_a_blob_is_for_that_blob() {
    let server = serve_container();
    let owner = server.blobs();
    put(&owner, "/box/dir/a%20%C3%BC", "x");
    put(&owner, "/box/dir/b", "x");
    let guest = owner.with_sas(&Sas::blob("box", "dir/a ü", "rd").token());
    assert_eq!(content(&guest, "/box/dir/a%20%C3%BC"), b"x");
    guest.get("/box/dir/b").send().is_error(403, "AuthenticationFailed");
    guest.get("/box?restype=container&comp=list").send().is_error(403, "AuthenticationFailed");
    block_blob(&guest, "/box/dir/a%20%C3%BC", "y").send().is_error(403, "AuthorizationPermissionMismatch");
    guest.request("DELETE", "/box/dir/a%20%C3%BC").send().is_status(202);
}

#[test]
fn s2_a_token_for_a_snapshot_is_for_that_snapshot() {
    let server = serve_container();
    let owner = server.blobs();
    put(&owner, "/box/a", "old");
    let taken = owner.request("PUT", "/box/a?comp=snapshot").send();
    let at = header(&taken, "x-ms-snapshot").to_owned();
    put(&owner, "/box/a", "new");
    let token = Sas::blob("box", "a", "r").with("sr", "bs").with("snapshot", &at).token();
    let found = owner.with_sas(&token).get("/box/a").send();
    assert_eq!((found.status, found.text()), (200, "old"), "{found}");
    // Parameters have no case, and a condition on the snapshot's tags needs the right to those.
    let capital = token.replace("snapshot=", "Snapshot=");
    assert_eq!(owner.with_sas(&capital).get("/box/a").send().status, 200);
    let with_tags = Sas::blob("box", "a", "rt").with("sr", "bs").with("snapshot", &at).token();
    let other = owner.with_sas(&with_tags).get("/box/a").header("x-ms-if-tags", "k = 'v'").send();
    other.is_error(412, "ConditionNotMet");
    let without_tags = owner.with_sas(&token).get("/box/a").header("x-ms-if-tags", "k = 'v'").send();
    assert_eq!(without_tags.status, 403, "{without_tags}");
    // Signed for the snapshot, it does not open the blob.
    let signature_only: String =
        token.split('&').filter(|pair| !pair.starts_with("snapshot=")).collect::<Vec<_>>().join("&");
    assert_eq!(owner.with_sas(&signature_only).get("/box/a").send().status, 403);
    // A token for the blob opens its snapshots.
    let blob = owner.with_sas(&Sas::blob("box", "a", "r").token());
    assert_eq!(content(&blob, &format!("/box/a?snapshot={at}")), b"old");
}

#[test]
fn s2_tokens_end_begin_and_are_bound() {
    let server = serve_container();
    let owner = server.blobs();
    put(&owner, "/box/a", "x");
    let get = |sas: Sas| owner.with_sas(&sas.token()).get("/box/a").send();
    let read = || Sas::blob("box", "a", "r");
    get(read().with("se", "2020-01-01T00:00:00Z")).is_error(403, "AuthenticationFailed");
    get(read().with("st", "2120-01-01").with("se", "2121-01-01")).is_error(403, "AuthenticationFailed");
    get(read().with("st", "2020-01-01").with("se", "2121-01-01T00:00Z")).is_status(200);
    get(read().with("spr", "https")).is_error(403, "AuthorizationProtocolMismatch");
    get(read().with("spr", "https,http")).is_status(200);
    get(read().with("sip", "10.0.0.1")).is_error(403, "AuthorizationSourceIPMismatch");
    get(read().with("sip", "127.0.0.1-127.0.0.9")).is_status(200);
    get(read().without("se")).is_error(403, "AuthenticationFailed");
    get(read().without("sp")).is_error(403, "AuthenticationFailed");
    get(read().with("sr", "x")).is_error(403, "AuthenticationFailed");
    get(read().with("sv", "yesterday")).is_error(403, "AuthenticationFailed");
    let forged = read().token_signed_with("d3Jvbmc=");
    owner.with_sas(&forged).get("/box/a").send().is_error(403, "AuthenticationFailed");
    // What was signed cannot be widened.
    let wider = read().token().replace("sp=r", "sp=rwd");
    owner.with_sas(&wider).get("/box/a").send().is_error(403, "AuthenticationFailed");
    let broken = format!("{}&sig=AAAA", read().token());
    let twice = owner.with_sas(&broken).get("/box/a").send();
    assert!((400..=403).contains(&twice.status), "{twice}");
    // Tokens of people with accounts elsewhere are out of scope.
    let delegated =
        read().with("skoid", "11111111-2222-3333-4444-555555555555").with("sktid", "x").with("skv", "2021-06-08");
    let refused = get(delegated);
    assert!((400..500).contains(&refused.status), "{refused}");
}

#[test]
fn s2_a_token_may_change_what_readers_are_told() {
    let server = serve_container();
    let owner = server.blobs();
    let made = block_blob(&owner, "/box/a", "x")
        .header("x-ms-blob-content-type", "text/plain")
        .header("x-ms-blob-content-encoding", "identity")
        .header("x-ms-blob-cache-control", "no-cache");
    made.send().is_status(201);
    let token = Sas::blob("box", "a", "r")
        .with("rscc", "max-age=5")
        .with("rscd", "attachment; filename=\"r & d.txt\"")
        .with("rsce", "br")
        .with("rscl", "fr")
        .with("rsct", "application/x-test")
        .token();
    let guest = owner.with_sas(&token);
    for answer in [guest.get("/box/a").send(), guest.request("HEAD", "/box/a").send()] {
        answer.is_status(200);
        for (name, value) in [
            ("Cache-Control", "max-age=5"),
            ("Content-Disposition", "attachment; filename=\"r & d.txt\""),
            ("Content-Encoding", "br"),
            ("Content-Language", "fr"),
            ("Content-Type", "application/x-test"),
        ] {
            assert_eq!(answer.header(name), Some(value), "{answer}");
        }
    }
    let some = owner.with_sas(&Sas::container("box", "r").with("rsct", "text/html").token()).get("/box/a").send();
    assert_eq!((some.header("Content-Type"), some.header("Cache-Control")), (Some("text/html"), Some("no-cache")));
    assert_eq!(owner.get("/box/a").send().header("Content-Type"), Some("text/plain"));
    let tampered = token.replace("x-test", "x-other");
    owner.with_sas(&tampered).get("/box/a").send().is_error(403, "AuthenticationFailed");
    // A value that no header can have must not break the answer.
    let odd =
        owner.with_sas(&Sas::blob("box", "a", "r").with("rsct", "text/\r\nx-evil: 1").token()).get("/box/a").send();
    assert!(odd.status < 500 && odd.header("x-evil").is_none(), "{odd}");
}

#[test]
fn s2_a_token_that_creates_does_not_overwrite() {
    let server = serve_container();
    let owner = server.blobs();
    put(&owner, "/box/there", "kept");
    let creator = owner.with_sas(&Sas::container("box", "c").token());
    block_blob(&creator, "/box/new", "x").send().is_status(201);
    block_blob(&creator, "/box/new", "y").send().is_error(403, "UnauthorizedBlobOverwrite");
    block_blob(&creator, "/box/there", "y").send().is_error(403, "UnauthorizedBlobOverwrite");
    let conditional = block_blob(&creator, "/box/there", "y").header("If-Match", "*").send();
    assert_eq!(conditional.status, 403, "{conditional}");
    for kind in ["AppendBlob", "PageBlob"] {
        let make = |path: &str| {
            let request = creator.request("PUT", path).header("x-ms-blob-type", kind);
            request.header("x-ms-blob-content-length", "512").body("").send()
        };
        make(&format!("/box/{}", kind.to_lowercase())).is_status(201);
        make("/box/there").is_error(403, "UnauthorizedBlobOverwrite");
    }
    assert_eq!(content(&owner, "/box/there"), b"kept");
    let writer = owner.with_sas(&Sas::container("box", "w").token());
    block_blob(&writer, "/box/there", "new").send().is_status(201);
    let tagged = block_blob(&writer, "/box/there", "new").header("x-ms-tags", "a=1").send();
    tagged.is_error(403, "AuthorizationPermissionMismatch");
}

#[test]
fn s4_a_stored_policy_can_be_revoked() {
    let server = serve_container();
    let owner = server.blobs();
    put(&owner, "/box/a", "x");
    let acl = |policies: &str| {
        let body = format!("<SignedIdentifiers>{policies}</SignedIdentifiers>");
        owner.request("PUT", "/box?restype=container&comp=acl").body(body).send().is_status(200);
    };
    let policy = |id: &str, expiry: &str, permission: &str| {
        format!(
            "<SignedIdentifier><Id>{id}</Id><AccessPolicy><Expiry>{expiry}</Expiry>\
             <Permission>{permission}</Permission></AccessPolicy></SignedIdentifier>"
        )
    };
    acl(&(policy("readers", "2120-01-01T00:00:00Z", "r") + &policy("late", "2020-01-01T00:00:00Z", "r")));
    let reader = owner.with_sas(&Sas::container_policy("box", "readers").token());
    assert_eq!(content(&reader, "/box/a"), b"x");
    block_blob(&reader, "/box/a", "y").send().is_error(403, "AuthorizationPermissionMismatch");
    let of_blob = Sas::blob("box", "a", "r").without("sp").without("se").with("si", "readers").token();
    assert_eq!(content(&owner.with_sas(&of_blob), "/box/a"), b"x");
    let get = |sas: Sas| owner.with_sas(&sas.token()).get("/box/a").send();
    get(Sas::container_policy("box", "late")).is_error(403, "AuthenticationFailed");
    get(Sas::container_policy("box", "nobody")).is_error(403, "AuthenticationFailed");
    // What the policy says cannot be said again.
    get(Sas::container_policy("box", "readers").with("sp", "rw")).is_error(403, "AuthenticationFailed");
    acl("");
    reader.get("/box/a").send().is_error(403, "AuthenticationFailed");
    acl(&policy("readers", "2120-01-01T00:00:00Z", "w"));
    reader.get("/box/a").send().is_error(403, "AuthorizationPermissionMismatch");
    owner.request("DELETE", "/box?restype=container").send().is_status(202);
    reader.get("/box/a").send().is_error(403, "AuthenticationFailed");
}

#[test]
fn s2_a_token_for_the_account_tells_services_and_kinds_apart() {
    let server = serve_container();
    let owner = server.blobs();
    put(&owner, "/box/a", "x");
    let with =
        |types: &str, permissions: &str| owner.with_sas(&Sas::account(types, permissions).with("ss", "b").token());
    with("s", "l").get("/?comp=list").send().is_status(200);
    with("co", "l").get("/?comp=list").send().is_error(403, "AuthorizationResourceTypeMismatch");
    with("s", "r").get("/?restype=service&comp=properties").send().is_status(200);
    with("c", "c").request("PUT", "/fresh?restype=container").send().is_status(201);
    with("c", "r").get("/fresh?restype=container").send().is_status(200);
    with("c", "w").request("PUT", "/fresh?restype=container&comp=metadata").send().is_status(200);
    with("c", "l").get("/fresh?restype=container&comp=list").send().is_status(200);
    with("c", "d").request("DELETE", "/fresh?restype=container").send().is_status(202);
    assert_eq!(content(&with("o", "r"), "/box/a"), b"x");
    with("sc", "r").get("/box/a").send().is_error(403, "AuthorizationResourceTypeMismatch");
    with("o", "w").get("/box/a").send().is_error(403, "AuthorizationPermissionMismatch");
    block_blob(&with("o", "c"), "/box/new", "x").send().is_status(201);
    block_blob(&with("o", "c"), "/box/new", "x").send().is_error(403, "UnauthorizedBlobOverwrite");
    with("o", "d").request("DELETE", "/box/new").send().is_status(202);
    with("sco", "rwdlac").get("/box?restype=container&comp=acl").send().is_error(403, "AuthorizationFailure");
    let of_queues = owner.with_sas(&Sas::account("sco", "rwdlacup").with("ss", "q").token());
    of_queues.get("/box/a").send().is_error(403, "AuthorizationServiceMismatch");
    let newer = Sas::account("o", "r").with("ss", "bqt").with("sv", "2021-06-08").token();
    assert_eq!(content(&owner.with_sas(&newer), "/box/a"), b"x");
}

#[test]
fn s2_tokens_reach_the_root_container() {
    let server = serve_container();
    let owner = server.blobs();
    make_container(&owner, "$root");
    put(&owner, "/page.html", "root");
    let blob = owner.with_sas(&Sas::blob("$root", "page.html", "r").token());
    assert_eq!(content(&blob, "/page.html"), b"root");
    assert_eq!(content(&blob, "/$root/page.html"), b"root");
    let container = owner.with_sas(&Sas::container("$root", "rl").token());
    assert_eq!(content(&container, "/page.html"), b"root");
    assert_eq!(container.get("/$root?restype=container&comp=list").send().elements("Name"), ["page.html"]);
}
