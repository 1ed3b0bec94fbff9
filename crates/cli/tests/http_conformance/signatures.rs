//! Shared access signatures (S2, S3): permissions, times, ranges, policies, and every refusal.

use super::serve_table;
use larimar_testkit::http::{Batch, Client, KEY, Response, Sas, entity, entity_path};

fn with(client: &Client, sas: &Sas) -> Client {
    client.with_sas(&sas.token())
}

#[test]
fn s2_a_signature_for_a_table_does_not_show_which_others_exist() {
    let server = serve_table();
    let client = server.client();
    client.create_table("other");
    let guest = with(&client, &Sas::table("tab", "raud"));
    for path in ["Tables", "Tables('x')", "$batch", "()"] {
        for table in ["other", "missing"] {
            let separator = if path == "()" { "" } else { "/" };
            let reply = guest.get(&format!("/{table}{separator}{path}")).send();
            assert_eq!(reply.status, 403, "{table} {path} {reply}");
        }
    }
}

/// What each permission is needed for.
fn operations(client: &Client) -> Vec<(&'static str, Response)> {
    let path = entity_path("tab", "p", "r");
    vec![
        ("a", client.post("/tab", entity("p", "new", "")).send()),
        ("r", client.get(&path).send()),
        ("r", client.get("/tab()").send()),
        ("u", client.put(&path, "{}").if_match("*").send()),
        ("u", client.merge(&path, "{}").if_match("*").send()),
        ("au", client.put(&path, "{}").send()),
        ("au", client.merge(&path, "{}").send()),
        ("d", client.delete(&path).send()),
    ]
}

#[test]
fn s2_each_permission_allows_its_operations_and_no_other() {
    for permissions in ["r", "a", "u", "d", "au", "raud"] {
        let server = serve_table();
        let client = server.client();
        client.insert("tab", "p", "r", "");
        for (needed, reply) in operations(&with(&client, &Sas::table("tab", permissions))) {
            if needed.chars().all(|letter| permissions.contains(letter)) {
                assert!(reply.status < 300, "{permissions} for {needed}: {reply}");
            } else {
                reply.is_error(403, "AuthorizationPermissionMismatch");
            }
        }
    }
}

#[test]
fn s2_a_table_s_signature_is_for_that_table_s_entities() {
    let server = serve_table();
    let client = server.client();
    client.create_table("other");
    let signed = with(&client, &Sas::table("tab", "raud"));
    signed.get("/tab()").send().is_status(200);
    signed.get("/TAB()").send().is_status(200);
    with(&client, &Sas::table("TAB", "raud")).get("/tab()").send().is_status(200);
    for reply in [
        signed.get("/other()").send(),
        signed.get("/Tables").send(),
        signed.post("/Tables", r#"{"TableName":"fresh"}"#).send(),
        signed.request("DELETE", "/Tables('tab')").send(),
        signed.get("/tab?comp=acl").send(),
        signed.request("PUT", "/tab?comp=acl").xml("").send(),
        signed.get("/?restype=service&comp=properties").send(),
    ] {
        assert_eq!(reply.status, 403, "{reply}");
    }
    assert_eq!(client.get("/Tables").send().values().len(), 2);
}

#[test]
fn s2_times_addresses_and_protocols_are_checked() {
    let server = serve_table();
    let client = server.client();
    let sas = || Sas::table("tab", "r");
    for (sas, code) in [
        (sas().with("se", "2020-01-01T00:00:00Z"), "AuthenticationFailed"),
        (sas().with("st", "2099-01-01T00:00:00Z"), "AuthenticationFailed"),
        (sas().with("se", "whenever"), "AuthenticationFailed"),
        (sas().without("se"), "AuthenticationFailed"),
        (sas().without("sp"), "AuthenticationFailed"),
        (sas().without("sv"), "AuthenticationFailed"),
        (sas().with("sip", "10.0.0.1"), "AuthorizationSourceIPMismatch"),
        (sas().with("sip", "10.0.0.1-10.0.0.9"), "AuthorizationSourceIPMismatch"),
        (sas().with("spr", "https"), "AuthorizationProtocolMismatch"),
    ] {
        with(&client, &sas).get("/tab()").send().is_error(403, code);
    }
    for sas in [
        sas().with("st", "2020-01-01"),
        sas().with("se", "2099-01-01T00:00Z"),
        sas().with("se", "2099-01-01T00:00:00.1234567Z"),
        sas().with("sip", "127.0.0.1"),
        sas().with("sip", "127.0.0.0-127.0.0.255"),
        sas().with("spr", "https,http"),
        sas().with("sv", "2015-04-05"),
        sas().with("sv", "2013-08-15"),
        sas().with("sv", "2030-01-01"),
    ] {
        let reply = with(&client, &sas).get("/tab()").without("x-ms-version").send();
        assert_eq!(reply.status, 200, "{sas:?}: {reply}");
    }
}

#[test]
fn s2_a_signature_that_was_changed_is_refused() {
    let server = serve_table();
    let client = server.client();
    let token = Sas::table("tab", "r").token();
    for changed in [
        token.replace("sp=r", "sp=raud"),
        token.replace("tn=tab", "tn=other"),
        token.replace("sig=", "sig=A"),
        token.split("&sig=").next().unwrap_or_default().to_owned(),
        format!("{token}&spk=a"),
        Sas::table("tab", "r").token_signed_with("d3Jvbmc="),
    ] {
        let reply = client.with_sas(&changed).get("/tab()").send();
        assert!([401, 403].contains(&reply.status), "{changed}: {reply}");
    }
}

#[test]
fn s3_a_range_of_keys_bounds_reads_and_writes() {
    let server = serve_table();
    let client = server.client();
    for partition in ["a", "b", "c", "d"] {
        for row in ["1", "2", "3"] {
            client.insert("tab", partition, row, "");
        }
    }
    let sas = Sas::table("tab", "raud").with("spk", "b").with("srk", "2").with("epk", "c").with("erk", "2");
    let limited = with(&client, &sas);
    let keys = |reply: &Response| -> Vec<String> {
        reply.values().iter().map(|e| format!("{}{}", e["PartitionKey"], e["RowKey"]).replace('"', "")).collect()
    };
    assert_eq!(keys(&limited.get("/tab()").send()), ["b2", "b3", "c1", "c2"]);
    assert_eq!(keys(&limited.get("/tab()").query("$filter", "PartitionKey eq 'a'").send()), Vec::<String>::new());
    assert_eq!(keys(&limited.get("/tab()").query("$filter", "RowKey eq '1'").send()), ["c1"]);
    limited.get(&entity_path("tab", "b", "2")).send().is_status(200);
    limited.put(&entity_path("tab", "c", "2"), "{}").send().is_status(204);
    for (partition, row) in [("b", "1"), ("c", "3"), ("a", "2"), ("d", "1")] {
        let path = entity_path("tab", partition, row);
        // A row that may not be read is one that is not there.
        limited.get(&path).send().is_error(404, "ResourceNotFound");
        for reply in [
            limited.put(&path, "{}").send(),
            limited.merge(&path, "{}").if_match("*").send(),
            limited.delete(&path).send(),
            limited.post("/tab", entity(partition, row, "")).send(),
        ] {
            reply.is_error(403, "AuthorizationFailure");
            assert_eq!(reply.message(), "This request is not authorized to perform this operation.");
        }
    }
    assert_eq!(client.get("/tab()").send().values().len(), 12);
}

#[test]
fn s3_ranges_of_partitions_alone() {
    let server = serve_table();
    let client = server.client();
    for partition in ["a", "b", "c"] {
        client.insert("tab", partition, "r", "");
    }
    let find = |sas: Sas| with(&client, &sas).get("/tab()").send().column("PartitionKey");
    let sas = || Sas::table("tab", "r");
    assert_eq!(find(sas().with("spk", "b")), ["b", "c"]);
    assert_eq!(find(sas().with("epk", "b")), ["a", "b"]);
    assert_eq!(find(sas().with("spk", "b").with("epk", "b")), ["b"]);
    for bad in [sas().with("srk", "1"), sas().with("erk", "1")] {
        assert_eq!(with(&client, &bad).get("/tab()").send().status, 403);
    }
}

#[test]
fn s3_each_operation_of_a_transaction_is_checked() {
    let server = serve_table();
    let client = server.client();
    let send = |sas: &Sas, row: &str| {
        let limited = with(&client, sas);
        Batch::new()
            .insert(&limited, "tab", "p", "a", "")
            .insert(&limited, "tab", "p", row, "")
            .request(&limited)
            .send()
    };
    let ranged = Sas::table("tab", "a").with("spk", "p").with("srk", "a").with("epk", "p").with("erk", "m");
    let outside = send(&ranged, "z");
    assert!(outside.status == 403 || outside.text().contains("AuthorizationFailure"), "{outside}");
    let reading = send(&Sas::table("tab", "r"), "b");
    assert!(reading.status == 403 || reading.text().contains("AuthorizationPermissionMismatch"), "{reading}");
    assert_eq!(client.get("/tab()").send().values().len(), 0);
    assert_eq!(send(&ranged, "b").status, 202);
    assert_eq!(client.get("/tab()").send().values().len(), 2);
}

#[test]
fn s4_stored_policies_are_used_changed_and_revoked() {
    let server = serve_table();
    let client = server.client();
    client.insert("tab", "p", "r", "");
    let set = |inside: &str| {
        let body = format!("<SignedIdentifiers>{inside}</SignedIdentifiers>");
        client.request("PUT", "/tab?comp=acl").xml(body).send().is_status(204);
    };
    let policy = |permission: &str, expiry: &str| {
        format!(
            "<SignedIdentifier><Id>mine</Id><AccessPolicy><Expiry>{expiry}</Expiry><Permission>{permission}</Permission></AccessPolicy></SignedIdentifier>"
        )
    };
    let signed = with(&client, &Sas::policy("tab", "mine"));
    signed.get("/tab()").send().is_error(403, "AuthenticationFailed");
    set(&policy("r", "2099-01-01T00:00:00Z"));
    signed.get("/tab()").send().is_status(200);
    signed.delete(&entity_path("tab", "p", "r")).send().is_error(403, "AuthorizationPermissionMismatch");
    set(&policy("rd", "2099-01-01T00:00:00Z"));
    signed.delete(&entity_path("tab", "p", "r")).send().is_status(204);
    set(&policy("r", "2020-01-01T00:00:00Z"));
    signed.get("/tab()").send().is_error(403, "AuthenticationFailed");
    set(&policy("r", "2099-01-01T00:00:00Z"));
    let both = Sas::policy("tab", "mine").with("sp", "r");
    with(&client, &both).get("/tab()").send().is_error(403, "AuthenticationFailed");
    set("");
    signed.get("/tab()").send().is_error(403, "AuthenticationFailed");
    set("<SignedIdentifier><Id>mine</Id><AccessPolicy><Permission>r</Permission></AccessPolicy></SignedIdentifier>");
    let expiring = Sas::policy("tab", "mine").with("se", "2099-01-01T00:00:00Z");
    with(&client, &expiring).get("/tab()").send().is_status(200);
}

#[test]
fn s2_an_account_s_signature_follows_services_types_and_permissions() {
    let server = serve_table();
    let client = server.client();
    client.insert("tab", "p", "r", "");
    let get = |sas: Sas, path: &str| with(&client, &sas).get(path).send();
    get(Sas::account("o", "r"), "/tab()").is_status(200);
    get(Sas::account("c", "l"), "/Tables").is_status(200);
    get(Sas::account("s", "r"), "/?restype=service&comp=properties").is_status(200);
    get(Sas::account("sco", "rwdlacu").with("sv", "2020-12-06"), "/tab()").is_status(200);
    get(Sas::account("o", "r").with("ss", "bq"), "/tab()").is_error(403, "AuthorizationServiceMismatch");
    get(Sas::account("c", "r"), "/tab()").is_error(403, "AuthorizationResourceTypeMismatch");
    get(Sas::account("o", "a"), "/tab()").is_error(403, "AuthorizationPermissionMismatch");
    let all = with(&client, &Sas::account("sco", "rwdlacu"));
    all.post("/Tables", r#"{"TableName":"made"}"#).send().is_status(201);
    all.request("DELETE", "/Tables('made')").send().is_status(204);
    for (needed, reply) in operations(&all) {
        assert!(reply.status < 300, "{needed}: {reply}");
    }
    let acl = all.get("/tab?comp=acl").send();
    assert_eq!(acl.status, 403, "{acl}");
    let wrong = client.with_sas(&Sas::account("o", "r").token_signed_with("d3Jvbmc="));
    wrong.get("/tab()").send().is_error(403, "AuthenticationFailed");
    assert_eq!(KEY.len(), 88);
}
