//! Answers that recordings of the service and its own tests show, where they surprise.

use super::{serve, serve_table};
use larimar_testkit::http::{Batch, Sas, entity, entity_path};

#[test]
fn s2_a_read_outside_the_range_of_a_token_finds_nothing() {
    let server = serve_table();
    let owner = server.client();
    for row in ["01", "02"] {
        owner.insert("tab", "p", row, "");
    }
    let ranged = |permissions: &str| {
        let range = [("spk", "p"), ("srk", "01"), ("epk", "p"), ("erk", "01")];
        let sas = Sas::table("tab", permissions);
        owner.with_sas(&range.iter().fold(sas, |sas, (name, value)| sas.with(name, value)).token())
    };
    ranged("r").get(&entity_path("tab", "p", "01")).send().is_status(200);
    ranged("r").get(&entity_path("tab", "p", "02")).send().is_error(404, "ResourceNotFound");
    ranged("a").get(&entity_path("tab", "p", "02")).send().is_error(403, "AuthorizationPermissionMismatch");
    let delete = ranged("d").delete(&entity_path("tab", "p", "02")).if_match("*").send();
    delete.is_error(403, "AuthorizationFailure");
    let insert = ranged("a").post("/tab", entity("p", "03", "")).send();
    insert.is_error(403, "AuthorizationFailure");
}

#[test]
fn what_lies_below_a_table_is_the_table() {
    let server = serve_table();
    let client = server.client();
    let create = r#"{"TableName":"tab"}"#;
    let refused = client.post("/tab/Tables", create).send();
    refused.is_error(400, "PropertiesNeedValue");
    assert_eq!(refused.message(), "The values are not specified for all properties in the entity.");
    let refused = client.delete("/tab/Tables('tab')").send();
    refused.is_error(400, "InvalidInput");
    assert_eq!(
        refused.message(),
        "The number of keys specified in the URI does not match number of key properties for the resource \
         'devstoreaccount1.tab'."
    );
    client.get("/tab/Tables").send().is_error(501, "NotImplemented");
    let batch = Batch::new().insert(&client, "tab", "p", "r", "").body();
    let multipart = |path: &str| client.post(path, batch.clone()).header("Content-Type", "multipart/mixed; boundary=b");
    multipart("/tab/$batch").send().is_error(415, "MediaTypeNotSupported");
    for request in [
        client.post("/missing/Tables", create),
        client.delete("/missing/Tables('tab')"),
        client.get("/missing/Tables"),
        multipart("/missing/$batch"),
    ] {
        request.send().is_error(404, "TableNotFound");
    }
    client.get("/tab/?restype=service&comp=properties").send().is_error(400, "InvalidUri");
    client.get("/tab/other").send().is_error(400, "InvalidUri");
    client.post("/a%2F%2F", create).send().is_error(400, "InvalidResourceName");
}

#[test]
fn q6_filters_whose_types_do_not_fit_are_refused() {
    let server = serve_table();
    let client = server.client();
    client.insert("tab", "p", "r", r#""Flag":true"#);
    for (filter, message) in [
        (
            "(PartitionKey ) and (RowKey ge 'x')",
            "A binary operator with incompatible types was detected. Found operand types 'Edm.String' and 'Edm.Boolean' \
             for operator kind 'And'.",
        ),
        (
            "Timestamp ge '2020-01-01'",
            "A binary operator with incompatible types was detected. Found operand types 'Edm.DateTime' and \
             'Edm.String' for operator kind 'GreaterThanOrEqual'.",
        ),
        (
            "not RowKey",
            "A unary operator with an incompatible type was detected. Found operand type 'Edm.String' for operator kind \
             'Not'.",
        ),
        ("PartitionKey", "The $filter expression must evaluate to a single boolean value."),
    ] {
        let refused = client.get("/tab()").query("$filter", filter).send();
        refused.is_error(400, "InvalidInput");
        assert_eq!(refused.message(), message, "{filter}");
    }
    let found = client.get("/tab()").query("$filter", "Flag and PartitionKey eq 'p'").send();
    assert_eq!(found.column("RowKey"), ["r"]);
}

#[test]
fn d7_names_of_tables_are_filtered_without_case() {
    let server = serve();
    let client = server.client();
    for table in ["AAx", "aay", "Ab", "Aaz"].map(|name| format!("{name}Table")) {
        client.create_table(&table);
    }
    let names = |filter: &str| client.get("/Tables").query("$filter", filter).send().column("TableName");
    assert_eq!(names("TableName ge 'aa' and TableName lt 'ab'"), ["AAxTable", "aayTable", "AazTable"]);
    assert_eq!(names("TableName eq 'AAYTABLE'"), ["aayTable"]);
    // A token comes only if another table matches.
    let page = |filter: &str, top: &str| client.get("/Tables").query("$filter", filter).query("$top", top).send();
    let prefix = "TableName ge 'aa' and TableName lt 'ab'";
    let last = page(prefix, "3");
    assert_eq!((last.values().len(), last.header("x-ms-continuation-NextTableName")), (3, None), "{last}");
    let first = page(prefix, "2");
    let token = first.header("x-ms-continuation-NextTableName").expect("a token").to_owned();
    let rest = client.get("/Tables").query("$filter", prefix).query("NextTableName", &token).send();
    assert_eq!(rest.column("TableName"), ["AazTable"]);
}

#[test]
fn d5_the_size_of_the_entity_comes_before_that_of_a_property() {
    let server = serve_table();
    let client = server.client();
    let insert =
        |chars: usize| client.post("/tab", entity("p", "r", &format!(r#""A":"{}""#, "x".repeat(chars)))).send();
    insert(1 << 19).is_error(400, "EntityTooLarge");
    insert(1 << 16).is_error(400, "PropertyValueTooLarge");
    let replace = client.put(&entity_path("tab", "p", "r"), format!(r#"{{"A":"{}"}}"#, "x".repeat(1 << 20))).send();
    replace.is_error(400, "EntityTooLarge");
}

#[test]
fn a_batch_with_one_query_is_a_read() {
    let server = serve_table();
    let client = server.client();
    client.insert("tab", "p", "r", "");
    let secondary = client.secondary();
    let query = |row: &str| {
        let target = format!("{}{}", secondary.base(), entity_path("tab", "p", row));
        let body = format!(
            "--b\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\nGET {target} HTTP/1.1\r\n\
             Accept: application/json;odata=minimalmetadata\r\n\r\n\r\n--b--\r\n"
        );
        Batch::raw(&secondary, body).header("Content-Type", "multipart/mixed; boundary=b").send()
    };
    let found = query("r");
    found.is_status(202);
    assert!(found.text().contains("HTTP/1.1 200"), "{found}");
    let missing = query("none");
    assert!(missing.text().contains("\"value\":\"0:The specified resource does not exist."), "{missing}");
    let write = Batch::new().insert(&client, "tab", "p", "x", "").request(&secondary).send();
    write.is_error(403, "InsufficientAccountPermissions");
}

#[test]
fn s2_tables_are_listed_with_a_token_for_containers() {
    let server = serve_table();
    let owner = server.client();
    let with = |types: &str| owner.with_sas(&Sas::account(types, "rl").token()).get("/Tables").send();
    with("c").is_status(200);
    for types in ["s", "so", "o"] {
        with(types).is_error(403, "AuthorizationResourceTypeMismatch");
    }
}

#[test]
fn d3_values_and_keys_are_read_as_clients_write_them() {
    let server = serve_table();
    let client = server.client();
    for (row, text, value) in [("1", "True", true), ("2", "FALSE", false), ("3", "true", true)] {
        client.insert("tab", "p", row, &format!(r#""B":"{text}","B@odata.type":"Edm.Boolean""#));
        assert_eq!(client.get(&entity_path("tab", "p", row)).send().json()["B"], value, "{text}");
    }
    client.insert("tab", "p", "zero", r#""D":"-0.0","D@odata.type":"Edm.Double","E":-0.0"#);
    let zero = client.get(&entity_path("tab", "p", "zero")).send();
    assert!(zero.text().contains("\"D\":-0.0") && zero.text().contains("\"E\":-0.0"), "{zero}");
    let typed = r#"{"PartitionKey":"p","PartitionKey@odata.type":"Edm.Guid","RowKey":"1","RowKey@odata.type":"Edm.String","C":1}"#;
    for method in ["PUT", "MERGE", "PATCH"] {
        let path = entity_path("tab", "p", "1");
        client.request(method, &path).json(typed).send().is_status(204);
        client.request(method, &path).json(typed).if_match("*").send().is_status(204);
    }
    for body in [r#"{"PartitionKey":1,"RowKey":"r"}"#, r#"{"PartitionKey":"p","RowKey":true}"#] {
        let refused = client.post("/tab", body).send();
        refused.is_error(400, "InvalidInput");
        assert_eq!(refused.message(), "One of the request inputs is not valid.", "{body}");
    }
}

#[test]
fn the_schema_is_served() {
    let server = serve_table();
    let schema = server.client().get("/$metadata").accept("application/xml").send();
    schema.is_status(200);
    assert_eq!(schema.header("Content-Type"), Some("application/xml"));
    for name in ["PartitionKey", "RowKey", "Timestamp", "TableName"] {
        assert!(schema.text().contains(&format!("<Property Name=\"{name}\"")), "{schema}");
    }
    server.client().anonymous().get("/$metadata").send().is_error(401, "NoAuthenticationInformation");
    let errors = server.client().request("HEAD", "/missing?comp=acl").send();
    assert_eq!((errors.status, errors.header("Content-Type")), (404, None), "{errors}");
}
