//! Who may call (S1) and the stored policies of a table (D8, S4).

use super::{serve, serve_table};
use larimar_testkit::http::{ACCOUNT, Client, KEY};
use larimar_testkit::{Launch, TemporaryServer};

const OTHER_KEY: &str = "b3RoZXIga2V5";

fn acl(client: &Client) -> String {
    let reply = client.get("/tab?comp=acl").accept("application/xml").send();
    reply.is_status(200);
    assert_eq!(reply.header("Content-Type"), Some("application/xml"));
    let text = reply.text().strip_prefix('\u{feff}').expect("a byte order mark");
    text.strip_prefix(r#"<?xml version="1.0" encoding="utf-8"?>"#).expect("a declaration").to_owned()
}

#[test]
fn s1_both_schemes_and_both_keys_sign() {
    let folder = tempfile::tempdir().expect("a folder");
    let launch = Launch::new(env!("CARGO_BIN_EXE_larimar"), folder.path().join("data"));
    let accounts = format!("one:{OTHER_KEY}:{KEY};{ACCOUNT}:{KEY}");
    let server = launch.environment("AZURITE_ACCOUNTS", &accounts).start();
    let client = server.client();
    for signer in [client.of_account("one", OTHER_KEY), client.of_account("one", KEY), client.of_account(ACCOUNT, KEY)]
    {
        signer.get("/Tables").send().is_status(200);
        signer.lite().get("/Tables").send().is_status(200);
        signer.get("/?restype=service&comp=properties").accept("application/xml").send().is_status(200);
    }
    client.of_account(ACCOUNT, OTHER_KEY).get("/Tables").send().is_error(403, "AuthenticationFailed");
    client.of_account("one", "d3Jvbmc=").lite().get("/Tables").send().is_error(403, "AuthenticationFailed");
    client.of_account("unknown", KEY).get("/Tables").send().is_error(404, "ResourceNotFound");
}

#[test]
fn d1_accounts_do_not_see_each_other() {
    let folder = tempfile::tempdir().expect("a folder");
    let launch = Launch::new(env!("CARGO_BIN_EXE_larimar"), folder.path().join("data"));
    let server = launch.environment("AZURITE_ACCOUNTS", &format!("one:{KEY};two:{KEY}")).start();
    let (one, two) = (server.client().of_account("one", KEY), server.client().of_account("two", KEY));
    one.create_table("shared");
    two.create_table("shared");
    one.insert("shared", "p", "r", "");
    assert_eq!(two.get("/shared()").send().values().len(), 0);
    two.delete("/Tables('shared')").send().is_status(204);
    assert_eq!(one.get("/shared()").send().values().len(), 1);
}

#[test]
fn s1_requests_without_or_with_bad_credentials_are_refused() {
    let server = serve_table();
    let client = server.client();
    let anonymous = client.get("/Tables").unsigned().send();
    assert!([401, 403, 404].contains(&anonymous.status), "{anonymous}");
    assert!(anonymous.header("x-ms-error-code").is_some(), "{anonymous}");
    for header in ["", "SharedKey", "SharedKey x", "Basic YTpi", "SharedKey devstoreaccount1", "nonsense nonsense"] {
        let reply = client.get("/Tables").unsigned().header("Authorization", header).send();
        assert!((400..=403).contains(&reply.status), "{header:?}: {reply}");
    }
    for signature in ["AAAA", "", "not base64!", "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="] {
        let header = format!("SharedKey {ACCOUNT}:{signature}");
        let reply = client.get("/Tables").unsigned().header("Authorization", header).send();
        assert!(reply.status == 403 || signature.is_empty() && reply.status == 400, "{signature:?}: {reply}");
    }
    let reply = client.of_account(ACCOUNT, OTHER_KEY).get("/Tables").send();
    reply.is_error(403, "AuthenticationFailed");
    assert_eq!(
        reply.message(),
        "Server failed to authenticate the request. Make sure the value of Authorization header is formed correctly including the signature."
    );
    assert_eq!(reply.header("x-ms-error-code"), Some("AuthenticationFailed"));
}

#[test]
fn s1_the_date_must_be_there_and_fresh() {
    let server = serve_table();
    let client = server.client();
    client
        .get("/Tables")
        .header("x-ms-date", "Mon, 01 Jan 2018 00:00:00 GMT")
        .send()
        .is_error(403, "AuthenticationFailed");
    client
        .get("/Tables")
        .header("x-ms-date", "Fri, 01 Jan 2100 00:00:00 GMT")
        .send()
        .is_error(403, "AuthenticationFailed");
    for request in [client.get("/Tables").without("x-ms-date"), client.get("/Tables").header("x-ms-date", "today")] {
        let reply = request.send();
        assert!([400, 403].contains(&reply.status), "{reply}");
    }
}

#[test]
fn d8_policies_are_stored_and_come_back_with_seven_digits() {
    let server = serve_table();
    let client = server.client();
    assert_eq!(acl(&client), "<SignedIdentifiers />");
    let body = r#"<?xml version="1.0" encoding="utf-8"?><SignedIdentifiers><SignedIdentifier><Id>testid</Id><AccessPolicy><Permission>r</Permission><Expiry>2021-06-08T03:10:09Z</Expiry><Start>2021-06-08T02:05:09.0000000Z</Start></AccessPolicy></SignedIdentifier><SignedIdentifier><Id>bare</Id></SignedIdentifier></SignedIdentifiers>"#;
    let reply = client.request("PUT", "/tab?comp=acl").xml(body).send();
    reply.is_status(204);
    assert_eq!(reply.body, b"");
    assert_eq!(
        acl(&client),
        "<SignedIdentifiers><SignedIdentifier><Id>testid</Id><AccessPolicy><Start>2021-06-08T02:05:09.0000000Z</Start><Expiry>2021-06-08T03:10:09.0000000Z</Expiry><Permission>r</Permission></AccessPolicy></SignedIdentifier><SignedIdentifier><Id>bare</Id></SignedIdentifier></SignedIdentifiers>"
    );
    client.request("PUT", "/tab?comp=acl").xml("").send().is_status(204);
    assert_eq!(acl(&client), "<SignedIdentifiers />");
}

#[test]
fn d8_bad_policies_are_refused_and_change_nothing() {
    let server = serve_table();
    let client = server.client();
    let policy =
        |inside: &str| format!("<SignedIdentifiers><SignedIdentifier>{inside}</SignedIdentifier></SignedIdentifiers>");
    client.request("PUT", "/tab?comp=acl").xml(policy("<Id>kept</Id>")).send().is_status(204);
    for body in [
        "<SignedIdentifiers>".to_owned(),
        "nonsense".to_owned(),
        "<Other/>".to_owned(),
        policy(&format!("<Id>{}</Id>", "x".repeat(65))),
        policy("<Id>a</Id><AccessPolicy><Permission>x</Permission></AccessPolicy>"),
        policy("<Id>a</Id><AccessPolicy><Permission>rr</Permission></AccessPolicy>"),
        policy("<Id>a</Id><AccessPolicy><Start>yesterday</Start></AccessPolicy>"),
        policy("<AccessPolicy><Permission>r</Permission></AccessPolicy>"),
    ] {
        let reply = client.request("PUT", "/tab?comp=acl").xml(body.clone()).send();
        reply.is_error(400, "InvalidXmlDocument");
        assert_eq!(reply.header("x-ms-error-code"), Some("InvalidXmlDocument"), "{body}");
    }
    assert!(acl(&client).contains("kept"));
    let missing = client.get("/missing?comp=acl").accept("application/xml").send();
    assert_eq!(missing.status, 404, "{missing}");
}

#[test]
fn policies_survive_a_restart_and_go_with_their_table() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = Launch::new(env!("CARGO_BIN_EXE_larimar"), folder.path().join("data")).start();
    let client = server.client();
    client.create_table("tab");
    let body = "<SignedIdentifiers><SignedIdentifier><Id>kept</Id></SignedIdentifier></SignedIdentifiers>";
    client.request("PUT", "/tab?comp=acl").xml(body).send().is_status(204);
    let server = server.kill().start();
    let client = server.client();
    assert_eq!(acl(&client), body);
    client.delete("/Tables('tab')").send().is_status(204);
    client.create_table("tab");
    assert_eq!(acl(&client), "<SignedIdentifiers />");
}

#[test]
fn the_secondary_reads_and_does_not_write() {
    let server = serve_table();
    let client = server.client();
    client.insert("tab", "p", "r", "");
    let secondary = client.secondary();
    secondary.get("/tab()").send().is_status(200);
    let write = secondary.post("/tab", r#"{"PartitionKey":"p","RowKey":"s"}"#).send();
    assert_eq!(write.status, 403, "{write}");
    assert_eq!(client.get("/tab()").send().values().len(), 1);
}

#[test]
fn host_style_addresses_name_the_account() {
    let server = TemporaryServer::start(env!("CARGO_BIN_EXE_larimar"), &["--host-suffixes", "table.example.test"]);
    let client = server.client();
    client.create_table("abc");
    let host = format!("{ACCOUNT}.table.example.test");
    let reply = client.get("").target("/Tables").header("Host", &*host).send();
    reply.is_status(200);
    assert_eq!(
        reply.text(),
        format!(r#"{{"odata.metadata":"http://{host}/$metadata#Tables","value":[{{"TableName":"abc"}}]}}"#)
    );
}

#[test]
fn an_unknown_account_is_no_account() {
    let server = serve();
    let client = server.client().of_account("nobody", KEY);
    client.get("/Tables").send().is_error(404, "ResourceNotFound");
}
