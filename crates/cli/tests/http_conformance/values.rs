//! Property values: every type in and out (D3), and what is refused.

use super::serve_table;
use larimar_testkit::http::{Client, entity};
use larimar_testkit::serde_json;

/// Inserts one member and returns what a read at minimal metadata says of it: annotation and value.
fn round_trip(client: &Client, members: &str) -> (Option<String>, String) {
    let reply = client.put("/tab(PartitionKey='p',RowKey='r')", format!("{{{members}}}")).send();
    assert_eq!(reply.status, 204, "{members}: {reply}");
    let reply = client.get("/tab(PartitionKey='p',RowKey='r')").send();
    let text = reply.text();
    let annotation = reply.json()["V@odata.type"].as_str().map(str::to_owned);
    let start = text.rfind("\"V\":").expect("the value is there") + 4;
    (annotation, text[start..text.len() - 1].to_owned())
}

#[test]
fn d3_every_type_comes_back_as_it_was_sent() {
    let server = serve_table();
    let client = server.client();
    let typed = |edm: &str, value: &str| format!(r#""V@odata.type":"Edm.{edm}","V":{value}"#);
    for (members, annotation, value) in [
        (r#""V":"text""#.to_owned(), None, r#""text""#),
        (typed("String", r#""5""#), None, r#""5""#),
        (r#""V":"""#.to_owned(), None, r#""""#),
        (r#""V":"日本 😀 \u00e9""#.to_owned(), None, r#""日本 😀 é""#),
        (r#""V":true"#.to_owned(), None, "true"),
        (typed("Boolean", r#""false""#), None, "false"),
        (r#""V":-2147483648"#.to_owned(), None, "-2147483648"),
        (typed("Int32", "2147483647"), None, "2147483647"),
        (typed("Int32", r#""7""#), None, "7"),
        (typed("Int64", r#""9223372036854775807""#), Some("Edm.Int64"), r#""9223372036854775807""#),
        (typed("Int64", r#""-9223372036854775808""#), Some("Edm.Int64"), r#""-9223372036854775808""#),
        (r#""V":3.5"#.to_owned(), None, "3.5"),
        (r#""V":3.0"#.to_owned(), None, "3.0"),
        (typed("Double", "5"), None, "5.0"),
        (typed("Double", r#""NaN""#), Some("Edm.Double"), r#""NaN""#),
        (typed("Double", r#""Infinity""#), Some("Edm.Double"), r#""Infinity""#),
        (typed("Double", r#""-Infinity""#), Some("Edm.Double"), r#""-Infinity""#),
        (typed("DateTime", r#""1973-10-04T00:00:00Z""#), Some("Edm.DateTime"), r#""1973-10-04T00:00:00Z""#),
        (
            typed("DateTime", r#""2020-01-01T12:30:00.1234567Z""#),
            Some("Edm.DateTime"),
            r#""2020-01-01T12:30:00.1234567Z""#,
        ),
        (typed("DateTime", r#""2020-01-01T12:30:00.120000Z""#), Some("Edm.DateTime"), r#""2020-01-01T12:30:00.12Z""#),
        (typed("DateTime", r#""2008-07-10T00:00:00""#), Some("Edm.DateTime"), r#""2008-07-10T00:00:00Z""#),
        (typed("DateTime", r#""2008-07-10T01:00:00+01:00""#), Some("Edm.DateTime"), r#""2008-07-10T00:00:00Z""#),
        (typed("DateTime", r#""1601-01-01T00:00:00Z""#), Some("Edm.DateTime"), r#""1601-01-01T00:00:00Z""#),
        (
            typed("DateTime", r#""9999-12-31T23:59:59.9999999Z""#),
            Some("Edm.DateTime"),
            r#""9999-12-31T23:59:59.9999999Z""#,
        ),
        (
            typed("Guid", r#""C9DA6455-213D-42C9-9A79-3E9149A57833""#),
            Some("Edm.Guid"),
            r#""c9da6455-213d-42c9-9a79-3e9149a57833""#,
        ),
        (typed("Binary", r#""AAECAwQ=""#), Some("Edm.Binary"), r#""AAECAwQ=""#),
        (typed("Binary", r#""""#), Some("Edm.Binary"), r#""""#),
    ] {
        let (found, text) = round_trip(&client, &members);
        assert_eq!((found.as_deref(), text.as_str()), (annotation, value), "{members}");
    }
}

#[test]
fn doubles_always_look_like_doubles() {
    let server = serve_table();
    let client = server.client();
    for (sent, shown) in
        [("1.5e3", "1500.0"), ("-0.0", "-0.0"), ("1e-7", ""), ("1.7976931348623157e308", ""), ("5e-324", "")]
    {
        let (_, text) = round_trip(&client, &format!(r#""V":{sent}"#));
        assert!(text.contains(['.', 'e', 'E']), "{sent} became {text}");
        assert_eq!(text.parse::<f64>().ok(), sent.parse::<f64>().ok(), "{sent} became {text}");
        if !shown.is_empty() {
            assert_eq!(text, shown);
        }
    }
}

#[test]
fn values_that_do_not_fit_their_type_are_refused() {
    let server = serve_table();
    let client = server.client();
    for (edm, value) in [
        ("Boolean", r#""yes""#),
        ("Int32", r#""x""#),
        ("Int32", "2147483648"),
        ("Int32", "1.5"),
        ("Int64", r#""x""#),
        ("Int64", r#""9223372036854775808""#),
        ("Int64", r#""18446744073709551615""#),
        ("Int64", "true"),
        ("Double", r#""x""#),
        ("Double", "true"),
        ("DateTime", r#""""#),
        ("DateTime", r#""yesterday""#),
        ("DateTime", "5"),
        ("Guid", r#""x""#),
        ("Guid", "5"),
        ("Binary", r#""!!!""#),
        ("Binary", "5"),
        ("Nonsense", r#""x""#),
        ("String", "5"),
        ("String", "true"),
    ] {
        let body = entity("p", "r", &format!(r#""V@odata.type":"Edm.{edm}","V":{value}"#));
        let reply = client.post("/tab", body).send();
        assert_eq!(reply.status, 400, "Edm.{edm} {value}: {reply}");
        assert!(!reply.code().is_empty(), "{reply}");
    }
    for value in ["[1]", "{}", "1e999", "12345678901234567890"] {
        let reply = client.post("/tab", entity("p", "r", &format!(r#""V":{value}"#))).send();
        reply.is_error(400, "InvalidInput");
    }
    assert_eq!(client.get("/tab()").send().values().len(), 0, "nothing was stored");
}

#[test]
fn datetimes_before_1601_are_out_of_range() {
    let server = serve_table();
    let client = server.client();
    for (value, shown) in
        [("0001-01-01T00:00:00Z", "01/01/0001 00:00:00"), ("1600-12-31T23:59:59Z", "12/31/1600 23:59:59")]
    {
        let members = format!(r#""When@odata.type":"Edm.DateTime","When":"{value}""#);
        let reply = client.post("/tab", entity("p", "r", &members)).send();
        reply.is_error(400, "OutOfRangeInput");
        assert_eq!(reply.message(), format!("The 'When' parameter of value '{shown}' is out of range."));
    }
}

#[test]
fn members_of_the_protocol_are_not_stored() {
    let server = serve_table();
    let client = server.client();
    let members = r#""odata.etag":"W/\"x\"","odata.metadata":"m","odata.type":"a.b","odata.id":"i","odata.editLink":"e","PartitionKey@odata.type":"Edm.String","ETag":"mine","etag":"too""#;
    client.insert("tab", "p", "r", members);
    let found =
        client.get("/tab(PartitionKey='p',RowKey='r')").accept("application/json;odata=nometadata").send().json();
    let names: Vec<_> = found.as_object().expect("an object").keys().cloned().collect();
    let mut expected = vec!["PartitionKey", "RowKey", "Timestamp", "ETag", "etag"];
    expected.sort_unstable();
    let mut names: Vec<&str> = names.iter().map(String::as_str).collect();
    names.sort_unstable();
    assert_eq!(names, expected);
}

#[test]
fn keys_must_be_there_and_be_strings() {
    let server = serve_table();
    let client = server.client();
    for body in [
        r#"{"PartitionKey":"p"}"#,
        r#"{"RowKey":"r"}"#,
        "{}",
        r#"{"PartitionKey":"p","RowKey":null}"#,
        r#"{"partitionkey":"p","rowkey":"r"}"#,
    ] {
        client.post("/tab", body).send().is_error(400, "PropertiesNeedValue");
    }
    for body in [r#"{"PartitionKey":5,"RowKey":"r"}"#, r#"{"PartitionKey":"p","RowKey":true}"#] {
        let reply = client.post("/tab", body).send();
        assert_eq!(reply.status, 400, "{body}: {reply}");
    }
    let contradicting = client.put("/tab(PartitionKey='p',RowKey='r')", entity("p", "other", "")).send();
    assert_eq!(contradicting.status, 400, "{contradicting}");
}

#[test]
fn a_property_may_have_another_type_on_another_entity() {
    let server = serve_table();
    let client = server.client();
    client.insert("tab", "p", "1", r#""V":5"#);
    client.insert("tab", "p", "2", r#""V":"five""#);
    client.insert("tab", "p", "3", r#""V@odata.type":"Edm.Int64","V":"5""#);
    let found: Vec<_> = client.get("/tab()").send().values().into_iter().map(|entity| entity["V"].clone()).collect();
    assert_eq!(found, [serde_json::json!(5), serde_json::json!("five"), serde_json::json!("5")]);
}
