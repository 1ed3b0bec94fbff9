//! The three levels of metadata, `$format`, `$select`, and the headers that every answer has.

use super::serve_table;
use larimar_testkit::http::{Client, Response};
use larimar_testkit::serde_json;

const MEMBERS: &str = concat!(
    r#""S":"x","I":1,"D":2.0,"B":true,"L@odata.type":"Edm.Int64","L":"3","#,
    r#""W@odata.type":"Edm.DateTime","W":"2020-01-02T03:04:05Z","#,
    r#""G@odata.type":"Edm.Guid","G":"c9da6455-213d-42c9-9a79-3e9149a57833","#,
    r#""Y@odata.type":"Edm.Binary","Y":"AAE=","N@odata.type":"Edm.Double","N":"NaN""#
);
const PATH: &str = "/tab(PartitionKey='p',RowKey='r')";

fn get(client: &Client, path: &str, level: &str) -> Response {
    let reply = client.get(path).accept(&format!("application/json;odata={level}")).send();
    reply.is_status(200);
    assert_eq!(
        reply.header("Content-Type"),
        Some(&*format!("application/json;odata={level};streaming=true;charset=utf-8"))
    );
    reply
}

/// The parts that differ from run to run: etag as a JSON string, and timestamp.
fn moment(client: &Client) -> (String, String) {
    let etag = client.get(PATH).send().header("ETag").expect("an etag").to_owned();
    let timestamp = etag.replace("%3A", ":").replace("W/\"datetime'", "").replace("'\"", "");
    (serde_json::Value::from(etag).to_string(), timestamp)
}

const TYPED: &str = concat!(
    r#""S":"x","I":1,"D":2.0,"B":true,"L@odata.type":"Edm.Int64","L":"3","#,
    r#""W@odata.type":"Edm.DateTime","W":"2020-01-02T03:04:05Z","#,
    r#""G@odata.type":"Edm.Guid","G":"c9da6455-213d-42c9-9a79-3e9149a57833","#,
    r#""Y@odata.type":"Edm.Binary","Y":"AAE=","N@odata.type":"Edm.Double","N":"NaN""#
);
const UNTYPED: &str = concat!(
    r#""S":"x","I":1,"D":2.0,"B":true,"L":"3","W":"2020-01-02T03:04:05Z","#,
    r#""G":"c9da6455-213d-42c9-9a79-3e9149a57833","Y":"AAE=","N":"NaN""#
);

#[test]
fn an_entity_at_each_level() {
    let server = serve_table();
    let client = server.client();
    client.insert("tab", "p", "r", MEMBERS);
    let (etag, timestamp) = moment(&client);
    let base = client.base();
    let keys = r#""PartitionKey":"p","RowKey":"r""#;
    assert_eq!(get(&client, PATH, "nometadata").text(), format!(r#"{{{keys},"Timestamp":"{timestamp}",{UNTYPED}}}"#));
    assert_eq!(
        get(&client, PATH, "minimalmetadata").text(),
        format!(
            r#"{{"odata.metadata":"{base}/$metadata#tab/@Element","odata.etag":{etag},{keys},"Timestamp":"{timestamp}",{TYPED}}}"#
        )
    );
    assert_eq!(
        get(&client, PATH, "fullmetadata").text(),
        format!(
            r#"{{"odata.metadata":"{base}/$metadata#tab/@Element","odata.type":"devstoreaccount1.tab","odata.id":"{base}{PATH}","odata.etag":{etag},"odata.editLink":"{}",{keys},"Timestamp@odata.type":"Edm.DateTime","Timestamp":"{timestamp}",{TYPED}}}"#,
            &PATH[1..]
        )
    );
}

#[test]
fn a_page_at_each_level() {
    let server = serve_table();
    let client = server.client();
    client.insert("tab", "p", "r", r#""A":1"#);
    let (etag, timestamp) = moment(&client);
    let base = client.base();
    let plain = format!(r#""PartitionKey":"p","RowKey":"r","Timestamp":"{timestamp}","A":1"#);
    assert_eq!(get(&client, "/tab()", "nometadata").text(), format!(r#"{{"value":[{{{plain}}}]}}"#));
    assert_eq!(
        get(&client, "/tab()", "minimalmetadata").text(),
        format!(r#"{{"odata.metadata":"{base}/$metadata#tab","value":[{{"odata.etag":{etag},{plain}}}]}}"#)
    );
    let full = get(&client, "/tab", "fullmetadata");
    let full = full.text();
    let start = format!(
        r#"{{"odata.metadata":"{base}/$metadata#tab","value":[{{"odata.type":"devstoreaccount1.tab","odata.id":"{base}{PATH}","odata.etag":{etag},"odata.editLink":"{}","#,
        &PATH[1..]
    );
    assert!(full.starts_with(&start), "{full}");
    assert_eq!(
        get(&client, "/tab()?$filter=A%20eq%209", "minimalmetadata").text(),
        format!(r#"{{"odata.metadata":"{base}/$metadata#tab","value":[]}}"#)
    );
}

#[test]
fn format_overrides_accept() {
    let server = serve_table();
    let client = server.client();
    client.insert("tab", "p", "r", "");
    for (format, level) in [
        ("application/json;odata=nometadata", "nometadata"),
        ("application/json;odata=fullmetadata", "fullmetadata"),
        ("application/json; odata=minimalmetadata", "minimalmetadata"),
        ("application/json", "minimalmetadata"),
    ] {
        for name in ["$format", "%24format"] {
            let path = format!("{PATH}?{name}={}", larimar_testkit::http::encode(format));
            let reply = client.get(&path).accept("application/json;odata=nometadata").send();
            let expected = format!("application/json;odata={level};streaming=true;charset=utf-8");
            assert_eq!(reply.header("Content-Type"), Some(&*expected), "{format}");
        }
    }
}

#[test]
fn accept_is_read_leniently() {
    let server = serve_table();
    let client = server.client();
    for (accept, level) in [
        ("application/json", "minimalmetadata"),
        ("application/json; odata=nometadata", "nometadata"),
        ("application/json;odata=fullmetadata;streaming=true;charset=utf-8", "fullmetadata"),
        ("application/json;odata=nometadata;q=0.9", "nometadata"),
        ("*/*", "minimalmetadata"),
    ] {
        let reply = client.get("/tab()").accept(accept).send();
        let expected = format!("application/json;odata={level};streaming=true;charset=utf-8");
        assert_eq!(reply.header("Content-Type"), Some(&*expected), "{accept}");
    }
    client.get("/tab()").without("Accept").send().is_status(200);
}

#[test]
fn atom_is_refused_with_its_code() {
    let server = serve_table();
    let client = server.client();
    let reply = client.get("/tab()").accept("application/atom+xml").send();
    assert_eq!(reply.status, 415, "{reply}");
    assert!(reply.text().contains("AtomFormatNotSupported"), "{reply}");
    let request = client.request("POST", "/tab").header("Content-Type", "application/atom+xml");
    let reply = request.body("<entry/>").send();
    assert_eq!(reply.status, 415, "{reply}");
}

#[test]
fn q8_select_returns_what_is_named_and_null_for_what_is_missing() {
    let server = serve_table();
    let client = server.client();
    client.insert("tab", "p", "1", r#""A":1,"B":"x","L@odata.type":"Edm.Int64","L":"3""#);
    client.insert("tab", "p", "2", r#""A":2"#);
    let select = |path: &str, names: &str| client.get(path).query("$select", names).send();
    let reply = select("/tab()", "A,B");
    let metadata = reply.json()["odata.metadata"].as_str().expect("a link").to_owned();
    assert_eq!(metadata, format!("{}/$metadata#tab&$select=A,B", client.base()));
    let values = reply.values();
    let names = |i: usize| values[i].as_object().expect("an object").keys().cloned().collect::<Vec<_>>();
    assert_eq!(
        (names(0), names(1)),
        (vec!["A".into(), "B".into(), "odata.etag".into()], vec!["A".into(), "B".into(), "odata.etag".into()])
    );
    assert_eq!((&values[0]["B"], &values[1]["B"]), (&"x".into(), &serde_json::Value::Null));
    let reply = select("/tab(PartitionKey='p',RowKey='1')", " RowKey , L ");
    assert!(reply.text().contains("/$metadata#tab/@Element&$select="), "{reply}");
    assert!(reply.text().ends_with(r#""RowKey":"1","L@odata.type":"Edm.Int64","L":"3"}"#), "{reply}");
    let plain = client.get("/tab()").query("$select", "A").accept("application/json;odata=nometadata").send();
    assert_eq!(plain.text(), r#"{"value":[{"A":1},{"A":2}]}"#);
    assert_eq!(select("/tab()", "").values()[0]["A"], 1, "an empty $select is ignored");
    let missing = client.get("/tab()").query("$select", "Z").accept("application/json;odata=nometadata").send();
    assert_eq!(missing.text(), r#"{"value":[{"Z":null},{"Z":null}]}"#);
}

#[test]
fn every_answer_has_the_service_s_headers() {
    let server = serve_table();
    let client = server.client();
    client.insert("tab", "p", "r", "");
    for request in [client.get(PATH), client.get("/tab()"), client.get("/Tables"), client.put(PATH, "{}")] {
        let reply = request.header("x-ms-client-request-id", "my-id").send();
        assert_eq!(reply.header("Cache-Control"), Some("no-cache"));
        assert_eq!(reply.header("X-Content-Type-Options"), Some("nosniff"));
        assert_eq!(reply.header("x-ms-version"), Some("2019-02-02"));
        assert_eq!(reply.header("x-ms-client-request-id"), Some("my-id"));
        assert!(reply.header("Server").is_some_and(|value| value.contains("Windows-Azure-Table/1.0")), "{reply}");
        assert!(reply.header("Date").is_some_and(|value| value.ends_with(" GMT")), "{reply}");
        let id = reply.header("x-ms-request-id").expect("a request id");
        assert_eq!((id.len(), id.matches('-').count()), (36, 4), "{id}");
    }
    let xml = client.get("/tab?comp=acl").accept("application/xml").send();
    assert_eq!((xml.header("Cache-Control"), xml.header("X-Content-Type-Options")), (None, None), "recorded for XML");
    let ids: std::collections::BTreeSet<String> =
        (0..20).map(|_| client.get(PATH).send().header("x-ms-request-id").unwrap_or_default().to_owned()).collect();
    assert_eq!(ids.len(), 20, "request ids differ");
    assert_eq!(client.get(PATH).send().header("x-ms-client-request-id"), None);
}

#[test]
fn an_error_has_the_service_s_body() {
    let server = serve_table();
    let reply = server.client().get(PATH).send();
    reply.is_error(404, "ResourceNotFound");
    let id = reply.header("x-ms-request-id").expect("a request id");
    let start = format!(
        r#"{{"odata.error":{{"code":"ResourceNotFound","message":{{"lang":"en-US","value":"The specified resource does not exist.\nRequestId:{id}\nTime:"#
    );
    let time = reply.text().strip_prefix(&start).and_then(|rest| rest.strip_suffix("\"}}}")).expect("the body's form");
    assert_eq!(time.len(), "2022-05-06T00:37:28.4347400Z".len(), "{time}");
    let content_type = "application/json;odata=minimalmetadata;streaming=true;charset=utf-8";
    assert_eq!(reply.header("Content-Type"), Some(content_type));
}
