//! Tables: create, list, find, delete (D7), in every shape of answer.

use super::{serve, serve_table};

#[test]
fn d7_create_echoes_the_table_and_tells_where_it_is() {
    let server = serve();
    let client = server.client();
    let reply = client.post("/Tables", r#"{"TableName":"MyTable"}"#).send();
    reply.is_status(201);
    let base = client.base();
    assert_eq!(
        reply.text(),
        format!(r#"{{"odata.metadata":"{base}/$metadata#Tables/@Element","TableName":"MyTable"}}"#)
    );
    assert_eq!(reply.header("Location"), Some(&*format!("{base}/Tables('MyTable')")));
    let content_type = "application/json;odata=minimalmetadata;streaming=true;charset=utf-8";
    assert_eq!(reply.header("Content-Type"), Some(content_type));
    assert_eq!(reply.header("Preference-Applied"), None);
    assert_eq!(reply.header("ETag"), None);
}

#[test]
fn create_answers_in_each_level_of_metadata() {
    let server = serve();
    let client = server.client();
    let base = client.base();
    let create = |name: &str, level: &str| {
        let body = format!(r#"{{"TableName":"{name}"}}"#);
        client.post("/Tables", body).accept(&format!("application/json;odata={level}")).send()
    };
    assert_eq!(create("none", "nometadata").text(), r#"{"TableName":"none"}"#);
    let full = format!(
        r#"{{"odata.metadata":"{base}/$metadata#Tables/@Element","odata.type":"devstoreaccount1.Tables","odata.id":"{base}/Tables('full')","odata.editLink":"Tables('full')","TableName":"full"}}"#
    );
    assert_eq!(create("full", "fullmetadata").text(), full);
}

#[test]
fn create_without_an_echo_when_asked() {
    let server = serve();
    let client = server.client();
    let create = |name: &str| client.post("/Tables", format!(r#"{{"TableName":"{name}"}}"#));
    let reply = create("quiet").header("Prefer", "return-no-content").send();
    reply.is_status(204);
    let place = format!("{}/Tables('quiet')", client.base());
    assert_eq!(reply.header("Location"), Some(&*place));
    assert_eq!(reply.header("DataServiceId"), Some(&*place));
    assert_eq!(reply.header("Preference-Applied"), Some("return-no-content"));
    assert_eq!(reply.body, b"");
    let reply = create("loud").header("Prefer", "return-content").send();
    reply.is_status(201);
    assert_eq!(reply.header("Preference-Applied"), Some("return-content"));
}

#[test]
fn d7_names_are_taken_whatever_their_case_and_keep_their_spelling() {
    let server = serve();
    let client = server.client();
    client.create_table("MixedCase");
    for name in ["MixedCase", "mixedcase", "MIXEDCASE"] {
        let reply = client.post("/Tables", format!(r#"{{"TableName":"{name}"}}"#)).send();
        reply.is_error(409, "TableAlreadyExists");
        assert_eq!(reply.message(), "The table specified already exists.");
    }
    assert_eq!(client.get("/Tables").send().column("TableName"), ["MixedCase"]);
    client.insert("MIXEDcase", "p", "r", "");
    client.get("/mixedcase(PartitionKey='p',RowKey='r')").send().is_status(200);
    client.delete("/Tables('mixedCASE')").send().is_status(204);
    assert_eq!(
        client.get("/Tables()").send().text(),
        format!(r#"{{"odata.metadata":"{}/$metadata#Tables","value":[]}}"#, client.base())
    );
}

#[test]
fn tables_are_listed_in_each_level_of_metadata() {
    let server = serve_table();
    let client = server.client();
    let base = client.base();
    let list = |level: &str| client.get("/Tables").accept(&format!("application/json;odata={level}")).send();
    assert_eq!(list("nometadata").text(), r#"{"value":[{"TableName":"tab"}]}"#);
    let minimal = format!(r#"{{"odata.metadata":"{base}/$metadata#Tables","value":[{{"TableName":"tab"}}]}}"#);
    assert_eq!(list("minimalmetadata").text(), minimal);
    let full = format!(
        r#"{{"odata.metadata":"{base}/$metadata#Tables","value":[{{"odata.type":"devstoreaccount1.Tables","odata.id":"{base}/Tables('tab')","odata.editLink":"Tables('tab')","TableName":"tab"}}]}}"#
    );
    assert_eq!(list("fullmetadata").text(), full);
}

#[test]
fn one_table_is_found_by_its_name() {
    let server = serve();
    let client = server.client();
    client.create_table("alpha");
    let reply = client.get("/Tables('alpha')").send();
    reply.is_status(200);
    assert_eq!(reply.json()["TableName"], "alpha");
    let missing = client.get("/Tables('beta')").send();
    assert_eq!(missing.status, 404, "{missing}");
}

#[test]
fn tables_are_filtered_and_paged() {
    let server = serve();
    let client = server.client();
    for name in ["abc", "abd", "abe", "xyz", "Abf"] {
        client.create_table(name);
    }
    let filtered = |filter: &str| client.get("/Tables").query("$filter", filter).send().column("TableName");
    assert_eq!(filtered("TableName eq 'abd'"), ["abd"]);
    assert_eq!(filtered("TableName ge 'abd' and TableName lt 'abf'"), ["abd", "abe"]);
    assert_eq!(filtered("TableName eq 'none'"), Vec::<String>::new());
    let mut found = Vec::new();
    let mut next = String::new();
    for _ in 0..10 {
        let request = client.get("/Tables").query("$top", "2");
        let request = if next.is_empty() { request } else { request.query("NextTableName", &next) };
        let reply = request.send();
        reply.is_status(200);
        assert!(reply.values().len() <= 2);
        found.extend(reply.column("TableName"));
        match reply.header("x-ms-continuation-NextTableName") {
            Some(token) => next = token.to_owned(),
            None => break,
        }
    }
    assert_eq!(found.len(), 5);
    let names: std::collections::BTreeSet<_> = found.iter().map(String::as_str).collect();
    assert_eq!(names, ["abc", "abd", "abe", "Abf", "xyz"].into_iter().collect());
}

#[test]
fn a_deleted_table_is_gone_and_its_name_free() {
    let server = serve_table();
    let client = server.client();
    client.insert("tab", "p", "r", "");
    let reply = client.delete("/Tables('tab')").without("If-Match").send();
    reply.is_status(204);
    assert_eq!(reply.body, b"");
    let reply = client.delete("/Tables('tab')").send();
    reply.is_error(404, "ResourceNotFound");
    assert_eq!(reply.message(), "The specified resource does not exist.");
    let reply = client.get("/tab()").send();
    reply.is_error(404, "TableNotFound");
    assert_eq!(reply.message(), "The table specified does not exist.");
    client.post("/tab", r#"{"PartitionKey":"p","RowKey":"r"}"#).send().is_error(404, "TableNotFound");
    client.get("/tab(PartitionKey='p',RowKey='r')").send().is_error(404, "TableNotFound");
    client.create_table("tab");
    assert_eq!(client.get("/tab()").send().values().len(), 0);
}

#[test]
fn a_table_whose_name_begins_with_anothers_is_another() {
    let server = serve();
    let client = server.client();
    for name in ["abc", "abcd", "abcde"] {
        client.create_table(name);
        client.insert(name, "p", "r", "");
    }
    client.delete("/Tables('abcd')").send().is_status(204);
    assert_eq!(client.get("/Tables").send().column("TableName"), ["abc", "abcde"]);
    for name in ["abc", "abcde"] {
        client.get(&format!("/{name}(PartitionKey='p',RowKey='r')")).send().is_status(200);
    }
}

#[test]
fn bad_creations_are_refused() {
    let server = serve();
    let client = server.client();
    for body in ["", "{", "[]", "{}", r#"{"TableName":5}"#, r#"{"TableName":null}"#, r#"{"tablename":"abc"}"#] {
        let reply = client.post("/Tables", body).send();
        assert_eq!(reply.status, 400, "{body}: {reply}");
        assert!(!reply.code().is_empty(), "{body}: {reply}");
    }
}
