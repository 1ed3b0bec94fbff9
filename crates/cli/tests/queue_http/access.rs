//! Who may do what: keys, tokens for a queue, tokens for the account, stored policies.

use super::{message, put, serve_queue};
use larimar_testkit::http::Sas;

#[test]
fn s1_a_wrong_key_and_no_key_are_refused() {
    let server = serve_queue();
    let client = server.queues();
    client.lite().get("/jobs/messages").send().is_status(200);
    let wrong = client.of_account("devstoreaccount1", "d3Jvbmc=").get("/jobs/messages").send();
    wrong.is_error(403, "AuthenticationFailed");
    client.anonymous().get("/jobs/messages").send().is_error(401, "NoAuthenticationInformation");
    let unknown = client.of_account("nobody", "d3Jvbmc=").get("/jobs/messages").send();
    unknown.is_error(404, "ResourceNotFound");
}

#[test]
fn s1_requests_without_credentials_are_refused_as_their_version_is() {
    let server = serve_queue();
    let stranger = server.queues().anonymous();
    for (method, path) in [
        ("GET", "/jobs/messages"),
        ("PUT", "/new"),
        ("DELETE", "/jobs"),
        ("GET", "/jobs?comp=metadata"),
        ("GET", "/?comp=list"),
        ("PUT", "/?restype=service&comp=properties"),
    ] {
        let with = |version: &str| stranger.request(method, path).header("x-ms-version", version).send();
        with("2019-12-12").is_error(401, "NoAuthenticationInformation");
        with("2019-07-07").is_error(404, "ResourceNotFound");
        stranger.request(method, path).without("x-ms-version").send().is_error(404, "ResourceNotFound");
    }
}

#[test]
fn s1_a_wrong_signature_is_answered_with_what_the_server_signed() {
    let server = serve_queue();
    let client = server.queues();
    let wrong = client.of_account("devstoreaccount1", "d3Jvbmc=");
    let refused = wrong.get("/jobs/messages?peekonly=true").header("x-ms-meta-a", "x".repeat(7000)).send();
    refused.is_error(403, "AuthenticationFailed");
    let detail = refused.element("AuthenticationErrorDetail").expect("a detail").to_owned();
    assert!(detail.contains("GET\\n\\n") && detail.contains("x-ms-date:"), "{refused}");
    assert!(detail.len() < 5000 && !detail.contains('\n'), "{refused}");
    let forged = Sas::queue("jobs", "r").token_signed_with("d3Jvbmc=");
    let refused = client.with_sas(&forged).get("/jobs?comp=metadata").send();
    refused.is_error(403, "AuthenticationFailed");
    let detail = refused.element("AuthenticationErrorDetail").expect("a detail").to_owned();
    assert!(detail.contains("/queue/devstoreaccount1/jobs\\n"), "{refused}");
    let good = Sas::queue("jobs", "r").token();
    let signature = good.split('&').find_map(|pair| pair.strip_prefix("sig=")).expect("a signature");
    assert!(!refused.text().contains(signature), "the right signature is a secret");
    let table = server.client().of_account("devstoreaccount1", "d3Jvbmc=").get("/Tables").send();
    table.is_error(403, "AuthenticationFailed");
    let detail = table.json()["odata.error"]["innererror"]["message"].as_str().unwrap_or_default().to_owned();
    assert!(detail.contains("/devstoreaccount1/devstoreaccount1/Tables"), "{table}");
}

#[test]
fn s2_a_token_for_a_queue_allows_what_it_names() {
    let server = serve_queue();
    let owner = server.queues();
    owner.request("PUT", "/other").send().is_status(201);
    let with = |permissions: &str| owner.with_sas(&Sas::queue("jobs", permissions).token());
    let post = |client: &larimar_testkit::http::Client, queue: &str| {
        client.request("POST", &format!("/{queue}/messages")).body(message("x")).send()
    };
    post(&with("a"), "jobs").is_status(201);
    post(&with("rup"), "jobs").is_error(403, "AuthorizationPermissionMismatch");
    with("r").get("/jobs/messages?peekonly=true").send().is_status(200);
    with("a").get("/jobs/messages?peekonly=true").send().is_error(403, "AuthorizationPermissionMismatch");
    with("p").get("/jobs/messages").send().is_status(200);
    with("r").get("/jobs?comp=metadata").send().is_status(200);
    // The signature covers the queue's name.
    post(&with("a"), "other").is_error(403, "AuthenticationFailed");
    with("raup").request("DELETE", "/jobs").send().is_error(403, "AuthorizationFailure");
    let expired = Sas::queue("jobs", "r").with("se", "2020-01-01T00:00:00Z").token();
    owner.with_sas(&expired).get("/jobs?comp=metadata").send().is_error(403, "AuthenticationFailed");
}

#[test]
fn s2_a_token_for_the_account_tells_services_and_kinds_apart() {
    let server = serve_queue();
    let owner = server.queues();
    let with =
        |types: &str, permissions: &str| owner.with_sas(&Sas::account(types, permissions).with("ss", "q").token());
    with("s", "l").get("/?comp=list").send().is_status(200);
    with("c", "l").get("/?comp=list").send().is_error(403, "AuthorizationResourceTypeMismatch");
    with("c", "c").request("PUT", "/fresh").send().is_status(201);
    with("c", "d").request("DELETE", "/fresh").send().is_status(204);
    with("o", "p").get("/jobs/messages").send().is_status(200);
    let of_tables = owner.with_sas(&Sas::account("sco", "rwdlacup").token());
    of_tables.get("/?comp=list").send().is_error(403, "AuthorizationServiceMismatch");
}

#[test]
fn s4_a_stored_policy_can_be_revoked() {
    let server = serve_queue();
    let owner = server.queues();
    let list = "<SignedIdentifiers><SignedIdentifier><Id>readers</Id><AccessPolicy><Expiry>2120-01-01T00:00:00Z</Expiry>\
                <Permission>r</Permission></AccessPolicy></SignedIdentifier></SignedIdentifiers>";
    owner.request("PUT", "/jobs?comp=acl").body(list).send().is_status(204);
    let found = owner.get("/jobs?comp=acl").send();
    assert_eq!((found.element("Id"), found.element("Permission")), (Some("readers"), Some("r")), "{found}");
    put(&owner, "x", "");
    let reader = owner.with_sas(&Sas::queue_policy("jobs", "readers").token());
    reader.get("/jobs/messages?peekonly=true").send().is_status(200);
    reader.get("/jobs?comp=acl").send().is_error(403, "AuthorizationFailure");
    owner.request("PUT", "/jobs?comp=acl").body("<SignedIdentifiers/>").send().is_status(204);
    reader.get("/jobs/messages?peekonly=true").send().is_error(403, "AuthenticationFailed");
    let table_letters = list.replace("<Permission>r<", "<Permission>d<");
    let refused = owner.request("PUT", "/jobs?comp=acl").body(table_letters).send();
    assert_eq!(refused.status, 400, "{refused}");
}
