//! Entities one at a time: the six writes (M1–M6), their conditions (M7), the point read (Q1) and their headers.

use super::serve_table;
use larimar_testkit::http::{Client, Response, entity, entity_path};
use larimar_testkit::serde_json;

const PATH: &str = "/tab(PartitionKey='p',RowKey='r')";

fn read(client: &Client) -> serde_json::Value {
    let reply = client.get(PATH).accept("application/json;odata=nometadata").send();
    reply.is_status(200);
    reply.json()
}

#[track_caller]
fn is_etag(text: Option<&str>) -> String {
    let text = text.expect("an etag");
    let inside = text.strip_prefix("W/\"datetime'").and_then(|rest| rest.strip_suffix("'\"")).expect("the etag's form");
    assert!(inside.ends_with('Z') && inside.matches("%3A").count() == 2 && !inside.contains(':'), "{text}");
    assert!(!inside.contains('.') || !inside.ends_with("0Z"), "the fraction keeps trailing zeros: {text}");
    text.to_owned()
}

#[test]
fn m1_insert_echoes_the_entity_with_its_etag_and_place() {
    let server = serve_table();
    let client = server.client();
    let reply = client.post("/tab", entity("p", "r", r#""Name":"x""#)).send();
    reply.is_status(201);
    let etag = is_etag(reply.header("ETag"));
    let base = client.base();
    assert_eq!(reply.header("Location"), Some(&*format!("{base}/tab(PartitionKey='p',RowKey='r')")));
    assert_eq!(reply.header("DataServiceId"), None);
    assert_eq!(reply.header("Preference-Applied"), None);
    let timestamp = etag.replace("%3A", ":").replace("W/\"datetime'", "").replace("'\"", "");
    let etag_text = serde_json::Value::from(etag).to_string();
    let expected = format!(
        r#"{{"odata.metadata":"{base}/$metadata#tab/@Element","odata.etag":{etag_text},"PartitionKey":"p","RowKey":"r","Timestamp":"{timestamp}","Name":"x"}}"#
    );
    assert_eq!(reply.text(), expected);
    let read = client.get(PATH).send();
    assert_eq!(read.text(), expected);
    assert_eq!(read.header("ETag"), reply.header("ETag"));
}

#[test]
fn m1_insert_follows_prefer() {
    let server = serve_table();
    let client = server.client();
    let insert = |row: &str, prefer: &str| client.post("/tab", entity("p", row, "")).header("Prefer", prefer).send();
    let quiet = insert("quiet", "return-no-content");
    quiet.is_status(204);
    is_etag(quiet.header("ETag"));
    let place = format!("{}/tab(PartitionKey='p',RowKey='quiet')", client.base());
    assert_eq!(quiet.header("Location"), Some(&*place));
    assert_eq!(quiet.header("DataServiceId"), Some(&*place));
    assert_eq!(quiet.header("Preference-Applied"), Some("return-no-content"));
    assert_eq!(quiet.body, b"");
    let loud = insert("loud", "return-content");
    loud.is_status(201);
    assert_eq!(loud.header("Preference-Applied"), Some("return-content"));
    let again = insert("loud", "return-no-content");
    again.is_error(409, "EntityAlreadyExists");
    assert_eq!(again.header("Preference-Applied"), Some("return-no-content"), "also on a failed insert");
}

#[test]
fn m1_a_second_insert_is_refused_and_changes_nothing() {
    let server = serve_table();
    let client = server.client();
    client.insert("tab", "p", "r", r#""Name":"first""#);
    let reply = client.post("/tab()", entity("p", "r", r#""Name":"second""#)).send();
    reply.is_error(409, "EntityAlreadyExists");
    assert_eq!(reply.message(), "The specified entity already exists.");
    assert_eq!(read(&client)["Name"], "first");
}

#[test]
fn m2_replace_drops_what_it_does_not_name() {
    let server = serve_table();
    let client = server.client();
    let first = client.insert("tab", "p", "r", r#""A":1,"B":2"#);
    let reply = client.put(PATH, entity("p", "r", r#""B":3"#)).if_match("*").send();
    reply.is_status(204);
    assert_eq!(reply.body, b"");
    assert_ne!(is_etag(reply.header("ETag")), first);
    let found = read(&client);
    assert_eq!((found.get("A"), &found["B"]), (None, &3.into()));
}

#[test]
fn m3_merge_keeps_what_it_does_not_name() {
    let server = serve_table();
    let client = server.client();
    client.insert("tab", "p", "r", r#""A":1,"B":2"#);
    for (number, method) in ["MERGE", "PATCH"].into_iter().enumerate() {
        let body = format!(r#"{{"B":{number},"C":"new"}}"#);
        let reply = client.request(method, PATH).json(body).if_match("*").send();
        reply.is_status(204);
        is_etag(reply.header("ETag"));
        let found = read(&client);
        assert_eq!((&found["A"], &found["B"], &found["C"]), (&1.into(), &number.into(), &"new".into()));
    }
}

#[test]
fn null_leaves_the_old_value_in_a_merge_and_drops_it_in_a_replace() {
    let server = serve_table();
    let client = server.client();
    client.insert("tab", "p", "r", r#""A":1,"B":null,"C@odata.type":"Edm.Int64","C":null"#);
    assert_eq!((read(&client).get("B"), read(&client).get("C")), (None, None));
    client.merge(PATH, r#"{"A":null}"#).if_match("*").send().is_status(204);
    assert_eq!(read(&client)["A"], 1);
    client.put(PATH, r#"{"A":null}"#).if_match("*").send().is_status(204);
    assert_eq!(read(&client).get("A"), None);
}

#[test]
fn m4_insert_or_replace_does_both() {
    let server = serve_table();
    let client = server.client();
    client.put(PATH, r#"{"A":1}"#).send().is_status(204);
    assert_eq!(read(&client)["A"], 1);
    client.put(PATH, r#"{"B":2}"#).send().is_status(204);
    assert_eq!((read(&client).get("A"), &read(&client)["B"]), (None, &2.into()));
}

#[test]
fn m5_insert_or_merge_does_both() {
    let server = serve_table();
    let client = server.client();
    client.merge(PATH, r#"{"A":1}"#).send().is_status(204);
    client.request("PATCH", PATH).json(r#"{"B":2}"#).send().is_status(204);
    assert_eq!((&read(&client)["A"], &read(&client)["B"]), (&1.into(), &2.into()));
}

#[test]
fn m6_delete_removes_and_needs_a_condition() {
    let server = serve_table();
    let client = server.client();
    client.insert("tab", "p", "r", "");
    let bare = client.request("DELETE", PATH).send();
    assert_eq!(bare.status, 400, "{bare}");
    let reply = client.delete(PATH).send();
    reply.is_status(204);
    assert_eq!(reply.header("ETag"), None);
    client.delete(PATH).send().is_error(404, "ResourceNotFound");
    client.get(PATH).send().is_error(404, "ResourceNotFound");
}

#[test]
fn m7_etags_guard_replace_merge_and_delete() {
    let server = serve_table();
    let client = server.client();
    let stale = client.insert("tab", "p", "r", r#""A":0"#);
    let mut current = stale.clone();
    for (method, body) in [("PUT", r#"{"A":1}"#), ("MERGE", r#"{"A":2}"#), ("PATCH", r#"{"A":3}"#)] {
        let write = |etag: &str| client.request(method, PATH).json(body).if_match(etag).send();
        if current != stale {
            let reply = write(&stale);
            reply.is_error(412, "UpdateConditionNotSatisfied");
            assert_eq!(reply.message(), "The update condition specified in the request was not satisfied.");
        }
        let reply = write(&current);
        reply.is_status(204);
        current = is_etag(reply.header("ETag"));
        assert_eq!(client.get(PATH).send().header("ETag"), Some(&*current));
    }
    client.request("DELETE", PATH).if_match(&stale).send().is_error(412, "UpdateConditionNotSatisfied");
    client.request("DELETE", PATH).if_match(&current).send().is_status(204);
    for method in ["PUT", "MERGE", "PATCH"] {
        for etag in ["*", &current] {
            let reply = client.request(method, PATH).json("{}").if_match(etag).send();
            reply.is_error(404, "ResourceNotFound");
        }
    }
}

#[test]
fn m7_every_write_changes_the_etag_even_without_a_change() {
    let server = serve_table();
    let client = server.client();
    let mut seen = std::collections::BTreeSet::from([client.insert("tab", "p", "r", "")]);
    for _ in 0..50 {
        let reply = client.put(PATH, "{}").send();
        assert!(seen.insert(is_etag(reply.header("ETag"))), "an etag came back");
    }
    client.delete(PATH).send().is_status(204);
    assert!(seen.insert(client.insert("tab", "p", "r", "")), "an etag came back after a delete");
}

#[test]
fn d2_a_client_cannot_set_the_timestamp() {
    let server = serve_table();
    let client = server.client();
    client.insert("tab", "p", "r", r#""Timestamp":"1999-01-01T00:00:00Z","timestamp":"mine""#);
    for write in [
        client.put(PATH, r#"{"Timestamp@odata.type":"Edm.DateTime","Timestamp":"1999-01-01T00:00:00Z"}"#),
        client.merge(PATH, r#"{"Timestamp":"not even a time"}"#),
        client.merge(PATH, r#"{"Timestamp":7}"#),
    ] {
        assert_ne!(read(&client)["Timestamp"], "1999-01-01T00:00:00Z");
        write.send().is_status(204);
    }
    let timestamp = read(&client)["Timestamp"].as_str().expect("a timestamp").to_owned();
    let etag = client.get(PATH).send().header("ETag").expect("an etag").replace("%3A", ":");
    assert_eq!(etag, format!("W/\"datetime'{timestamp}'\""));
}

#[test]
fn round_trips_of_a_whole_answer_are_accepted() {
    let server = serve_table();
    let client = server.client();
    client.insert("tab", "p", "r", r#""N@odata.type":"Edm.Int64","N":"5""#);
    for level in ["minimalmetadata", "fullmetadata"] {
        let body = client.get(PATH).accept(&format!("application/json;odata={level}")).send().body;
        client.put(PATH, body).if_match("*").send().is_status(204);
        let found = client.get(PATH).send().json();
        assert_eq!((&found["N"], &found["N@odata.type"]), (&"5".into(), &"Edm.Int64".into()));
        assert_eq!(found.as_object().map(|members| members.len()), Some(7), "{found}");
    }
}

#[test]
fn keys_in_the_address_are_read_as_clients_write_them() {
    let server = serve_table();
    let client = server.client();
    for key in ["", "it's", "''", "a b", "100%", "a+b", "a&b=c", "日本", "😀", "é", "a,b", "(x)", "\"q\"", "@:;$!*~"]
    {
        client.insert("tab", key, key, "");
        let reply = client.get(&entity_path("tab", key, key)).send();
        reply.is_status(200);
        assert_eq!(reply.json()["PartitionKey"], key);
        client.put(&entity_path("tab", key, key), "{}").if_match("*").send().is_status(204);
    }
    client.insert("tab", "p q", "it's", "");
    let spellings = [
        "/tab(PartitionKey='p%20q',RowKey='it''s')",
        "/tab(PartitionKey='p%20q',RowKey='it%27%27s')",
        "/tab(PartitionKey=%27p%20q%27,RowKey=%27it%27%27s%27)",
        "/tab(PartitionKey='p%20q',%20RowKey='it''s')",
        "/tab(RowKey='it''s',PartitionKey='p%20q')",
        "/tab%28PartitionKey='p%20q',RowKey='it''s'%29",
    ];
    for path in spellings {
        client.get(path).send().is_status(200);
    }
    let place = |reply: &Response| reply.header("Location").map(str::to_owned);
    let reply = client.post("/tab", entity("p@", "a\"'b", "")).send();
    assert_eq!(place(&reply), Some(format!("{}/tab(PartitionKey='p%40',RowKey='a%22''b')", client.base())));
}

#[test]
fn malformed_keys_in_the_address_are_refused() {
    let server = serve_table();
    let client = server.client();
    for path in [
        "/tab(PartitionKey='p')",
        "/tab(RowKey='r')",
        "/tab('p')",
        "/tab(PartitionKey='p',RowKey='r',Other='x')",
        "/tab(PartitionKey='p',PartitionKey='r')",
        "/tab(PartitionKey='p,RowKey='r')",
        "/tab(PartitionKey=p,RowKey=r)",
        "/tab(PartitionKey='p',RowKey='r'",
        "/tab(PartitionKey='p',RowKey='r')x",
        "/tab(PartitionKey='p',RowKey='%zz')",
        "/tab(partitionkey='p',rowkey='r')",
    ] {
        let reply = client.get(path).send();
        assert_eq!(reply.status, 400, "{path}: {reply}");
    }
    let reply = client.get("/tab('p')").send();
    reply.is_error(400, "InvalidInput");
    let text = "The number of keys specified in the URI does not match number of key properties for the resource";
    assert!(reply.message().starts_with(text), "{reply}");
}
