//! Every limit of the data model, at the limit and one past it, with its own code (D1–D5).

use super::{serve, serve_table};
use larimar_testkit::http::{Client, Response, entity, entity_path};

fn insert(client: &Client, partition: &str, row: &str, members: &str) -> Response {
    let reply = client.post("/tab", entity(partition, row, members)).header("Prefer", "return-no-content").send();
    if reply.status == 204 {
        client.delete(&entity_path("tab", partition, row)).send().is_status(204);
    }
    reply
}

#[test]
fn d1_table_names_at_and_past_their_limits() {
    let server = serve();
    let client = server.client();
    let create = |name: &str| client.post("/Tables", format!(r#"{{"TableName":"{name}"}}"#)).send();
    for name in ["abc", &"a".repeat(63), "A1b2C3", "Z99"] {
        create(name).is_status(201);
    }
    for name in ["", "ab", &"a".repeat(64)] {
        let reply = create(name);
        reply.is_error(400, "OutOfRangeInput");
        assert_eq!(reply.message(), "The specified resource name length is not within the permissible limits.");
    }
    for name in ["1abc", "a-b", "a_b", "a b", "äbc", "abc!", "tab.le"] {
        let reply = create(name);
        reply.is_error(400, "InvalidResourceName");
        assert_eq!(reply.message(), "The specifed resource name contains invalid characters.");
    }
    for name in ["tables", "Tables", "TABLES"] {
        create(name).is_error(400, "InvalidResourceName");
    }
}

#[test]
fn d5_keys_of_512_utf16_units_and_one_more() {
    let server = serve_table();
    let client = server.client();
    for (longest, too_long) in
        [("k".repeat(512), "k".repeat(513)), ("日".repeat(512), "日".repeat(513)), ("😀".repeat(256), "😀".repeat(257))]
    {
        insert(&client, &longest, &longest, "").is_status(204);
        insert(&client, &too_long, "r", "").is_error(400, "PropertyValueTooLarge");
        insert(&client, "p", &too_long, "").is_error(400, "PropertyValueTooLarge");
        let reply = client.put(&entity_path("tab", "p", &too_long), "{}").send();
        assert_eq!(reply.status, 400, "{reply}");
    }
}

#[test]
fn d5_forbidden_characters_in_keys() {
    let server = serve_table();
    let client = server.client();
    for key in ["a/b", "a\\b", "a#b", "a?b", "a\tb", "a\u{0}b", "a\u{1f}b", "a\u{7f}b", "a\u{9f}b"] {
        let reply = insert(&client, key, "r", "");
        reply.is_error(400, "OutOfRangeInput");
        let shown = format!("The 'PartitionKey' parameter of value '{key}' is out of range.");
        let shown: String = shown.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        assert_eq!(reply.message(), shown);
        insert(&client, "p", key, "").is_error(400, "OutOfRangeInput");
        let reply = client.put(&entity_path("tab", "p", key), "{}").send();
        assert_eq!(reply.status, 400, "{key:?}: {reply}");
    }
    for key in ["%2F", "%5C"] {
        let reply = client.get(&format!("/tab(PartitionKey='{key}',RowKey='r')")).send();
        reply.is_error(400, "InvalidInput");
        assert_eq!(reply.message(), "Bad Request - Error in query syntax.");
    }
    let reply = client.get("/tab(PartitionKey='a%23b',RowKey='r')").send();
    reply.is_error(400, "OutOfRangeInput");
    assert_eq!(reply.message(), "One of the request inputs is out of range.");
}

#[test]
fn d3_property_names_at_and_past_their_limits() {
    let server = serve_table();
    let client = server.client();
    for name in ["a", "_x", "Größe", "日本", "a1_", &"n".repeat(255)] {
        insert(&client, "p", "r", &format!(r#""{name}":1"#)).is_status(204);
    }
    insert(&client, "p", "r", &format!(r#""{}":1"#, "n".repeat(256))).is_error(400, "PropertyNameTooLong");
    for name in ["1a", "a-b", "a b", "a.b", "", "a@b", "a'b"] {
        insert(&client, "p", "r", &format!(r#""{name}":1"#)).is_error(400, "PropertyNameInvalid");
    }
}

#[test]
fn d3_252_properties_and_one_more() {
    let server = serve_table();
    let client = server.client();
    let members = |count: usize| (0..count).map(|i| format!(r#""P{i}":{i}"#)).collect::<Vec<_>>().join(",");
    insert(&client, "p", "r", &members(252)).is_status(204);
    insert(&client, "p", "r", &members(253)).is_error(400, "TooManyProperties");
    client.insert("tab", "p", "r", &members(252));
    let path = entity_path("tab", "p", "r");
    client.merge(&path, r#"{"P0":"again"}"#).if_match("*").send().is_status(204);
    client.merge(&path, r#"{"New":1}"#).if_match("*").send().is_error(400, "TooManyProperties");
    assert_eq!(client.get(&path).send().json()["P0"], "again");
}

#[test]
fn d3_a_property_given_twice() {
    let server = serve_table();
    let client = server.client();
    insert(&client, "p", "r", r#""A":1,"A":2"#).is_error(400, "DuplicatePropertiesSpecified");
    insert(&client, "p", "r", r#""A":1,"a":2"#).is_status(204);
}

#[test]
fn d5_string_and_binary_values_of_64_kib_and_one_more() {
    let server = serve_table();
    let client = server.client();
    let text = |count: usize| format!(r#""V":"{}""#, "x".repeat(count));
    insert(&client, "p", "r", &text(32 * 1024)).is_status(204);
    insert(&client, "p", "r", &text(32 * 1024 + 1)).is_error(400, "PropertyValueTooLarge");
    let astral = |count: usize| format!(r#""V":"{}""#, "😀".repeat(count));
    insert(&client, "p", "r", &astral(16 * 1024)).is_status(204);
    insert(&client, "p", "r", &astral(16 * 1024 + 1)).is_error(400, "PropertyValueTooLarge");
    // 65,535 bytes are 87,380 characters of base64; one byte more is AA==, two more are AAA=.
    let binary = |end: &str| format!(r#""V@odata.type":"Edm.Binary","V":"{}{end}""#, "A".repeat(87_380));
    insert(&client, "p", "r", &binary("AA==")).is_status(204);
    insert(&client, "p", "r", &binary("AAA=")).is_error(400, "PropertyValueTooLarge");
}

/// Members of an entity with keys `p` and `r` whose size, as the service counts, is 1 MiB and `more`.
fn sized(more: usize) -> String {
    // 4 + 2·(1 + 1), then 8 + 2·2 + 4 + 2·chars for each string of a two-letter name.
    let total = 1024 * 1024 + more - 8;
    let each = 16 + 2 * 32_768;
    let full = total / each;
    let last = (total - full * each - 16) / 2;
    let names = (0..full).map(|i| format!(r#""{}{}":"{}""#, 'A', (b'a' + i as u8) as char, "x".repeat(32_768)));
    names.chain([format!(r#""Bb":"{}""#, "x".repeat(last))]).collect::<Vec<_>>().join(",")
}

#[test]
fn d5_an_entity_of_1_mib_and_a_little_more() {
    let server = serve_table();
    let client = server.client();
    insert(&client, "p", "r", &sized(0)).is_status(204);
    insert(&client, "p", "r", &sized(2)).is_error(400, "EntityTooLarge");
    client.insert("tab", "p", "r", &sized(0));
    let path = entity_path("tab", "p", "r");
    let reply = client.merge(&path, r#"{"Cc":1}"#).if_match("*").send();
    reply.is_error(400, "EntityTooLarge");
    assert_eq!(client.get(&path).send().json().get("Cc"), None);
}

#[test]
fn a_body_past_4_mib_is_refused_before_it_is_read() {
    let server = serve_table();
    let client = server.client();
    let body = entity("p", "r", &format!(r#""V":"{}""#, "x".repeat(4 * 1024 * 1024)));
    client.post("/tab", body).send().is_error(413, "RequestBodyTooLarge");
    client.get("/Tables").send().is_status(200);
}

#[test]
fn d5_five_stored_policies_and_one_more() {
    let server = serve_table();
    let client = server.client();
    let body = |count: usize| {
        let one = |i| {
            format!(
                "<SignedIdentifier><Id>id{i}</Id><AccessPolicy><Permission>r</Permission></AccessPolicy></SignedIdentifier>"
            )
        };
        format!("<SignedIdentifiers>{}</SignedIdentifiers>", (0..count).map(one).collect::<String>())
    };
    client.request("PUT", "/tab?comp=acl").xml(body(5)).send().is_status(204);
    let reply = client.request("PUT", "/tab?comp=acl").xml(body(6)).send();
    reply.is_error(400, "InvalidXmlDocument");
    let kept = client.get("/tab?comp=acl").accept("application/xml").send();
    assert_eq!(kept.text().matches("<SignedIdentifier>").count(), 5);
}
