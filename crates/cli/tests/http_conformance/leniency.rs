//! What clients and proxies really send: other spellings of the same request are the same request.

use super::serve_table;
use larimar_testkit::http::{Batch, BatchReply, Sas, entity, entity_path};

#[test]
fn other_spellings_of_a_path_name_the_same() {
    let server = serve_table();
    let client = server.client();
    client.insert("tab", "p", "r", "");
    for path in ["/Tables", "/Tables()", "//Tables", "/Tables/", "/tab", "/tab()", "//tab()", "/TAB()"] {
        let reply = client.get(path).send();
        assert_eq!((reply.status, reply.values().len()), (200, 1), "{path}: {reply}");
    }
    for path in ["/%24batch", "/$batch", "//$batch"] {
        let body = Batch::new().upsert(&client, "tab", "p", "r", "").body();
        let content_type = "multipart/mixed; boundary=batch_a8f3c1d2-0001-4a5b-9c6d-1234567890ab";
        let reply = client.request("POST", path).header("Content-Type", content_type).body(body).send();
        assert_eq!(BatchReply::new(reply).statuses(), [204], "{path}");
    }
    for (partition, row) in
        [(".", ".."), ("..", "."), (" lead", "trail "), ("a.b", "~"), ("%20", "%27"), ("a:b", "c;d")]
    {
        client.insert("tab", partition, row, "");
        let reply = client.get(&entity_path("tab", partition, row)).send();
        assert_eq!((reply.status, reply.json()["RowKey"].as_str()), (200, Some(row)), "{partition:?} {row:?}");
    }
}

#[test]
fn bodies_are_taken_as_clients_label_them() {
    let server = serve_table();
    let client = server.client();
    for (number, label) in [
        "application/json",
        "application/json;odata=nometadata",
        "application/json; charset=utf-8",
        "application/json;odata=minimalmetadata;streaming=true;charset=utf-8",
        "application/json;type=entry",
    ]
    .iter()
    .enumerate()
    {
        let request = client.post("/tab", entity("p", &number.to_string(), "")).header("Content-Type", *label);
        let reply = request.send();
        assert_eq!(reply.status, 201, "{label}: {reply}");
    }
    let marked = format!("\u{feff}{}", entity("p", "bom", ""));
    client.post("/tab", marked).send().is_error(400, "InvalidInput");
    let spaced = " {\r\n\t\"PartitionKey\" : \"p\" , \"RowKey\" : \"spaced\" , \"A\" : 1 }\r\n";
    client.post("/tab", spaced).send().is_status(201);
}

#[test]
fn header_names_have_no_case() {
    let server = serve_table();
    let client = server.client();
    let etag = client.insert("tab", "p", "r", "");
    let path = entity_path("tab", "p", "r");
    let reply = client.put(&path, "{}").without("If-Match").also("iF-mAtCh", &*etag).send();
    reply.is_status(204);
    client.put(&path, "{}").also("IF-MATCH", &*etag).send().is_error(412, "UpdateConditionNotSatisfied");
    let quiet = client.post("/tab", entity("p", "s", "")).also("PREFER", "return-no-content").send();
    quiet.is_status(204);
}

#[test]
fn chunked_bodies_are_read() {
    let server = serve_table();
    let client = server.client();
    let body = entity("p", "chunked", r#""A":1"#);
    let (first, second) = body.split_at(10);
    let chunked = format!("{:x}\r\n{first}\r\n{:x}\r\n{second}\r\n0\r\n\r\n", first.len(), second.len());
    let request = client.post("/tab", chunked).without("Content-Length").header("Transfer-Encoding", "chunked");
    request.send().is_status(201);
    client.get(&entity_path("tab", "p", "chunked")).send().is_status(200);
}

#[test]
fn verbose_json_and_json_before_its_time_are_refused() {
    let server = serve_table();
    let client = server.client();
    let verbose = client.get("/tab()").accept("application/json;odata=verbose").send();
    assert_eq!(verbose.status, 415, "{verbose}");
    let old = client.get("/tab()").header("x-ms-version", "2011-08-18").send();
    assert_eq!(old.status, 415, "{old}");
}

#[test]
fn a_batch_may_carry_its_signature_inside_too() {
    let server = serve_table();
    let client = server.client();
    let token = Sas::table("tab", "a").token();
    let signed = client.with_sas(&token);
    let batch = Batch::new().operation(&client, "POST", &format!("/tab?{token}"), &[], &entity("p", "r", ""));
    let reply = BatchReply::new(batch.request(&signed).send());
    assert_eq!(reply.statuses(), [201]);
    let place = reply.parts[0].response.header("Location").map(str::to_owned);
    assert_eq!(place, Some(format!("{}/tab(PartitionKey='p',RowKey='r')", client.base())));
    let unsigned = Batch::new().operation(&client, "POST", &format!("/tab?{token}"), &[], &entity("p", "s", ""));
    let anonymous = client.anonymous();
    let refused = unsigned.request(&anonymous).send();
    assert!([401, 403, 404].contains(&refused.status), "only the outer request counts: {refused}");
}

#[test]
fn content_ids_come_back_only_from_inner_headers() {
    let server = serve_table();
    let client = server.client();
    let reply = Batch::new()
        .operation(&client, "PUT", &entity_path("tab", "p", "a"), &["Content-ID: 7"], &entity("p", "a", ""))
        .upsert(&client, "tab", "p", "b", "")
        .send(&client);
    assert_eq!(reply.parts[0].response.header("Content-ID"), Some("7"));
    assert_eq!(reply.parts[1].response.header("Content-ID"), None);
}

#[test]
fn bad_conditions_inside_a_batch_are_refused_there() {
    let server = serve_table();
    let client = server.client();
    client.insert("tab", "p", "r", "");
    let path = entity_path("tab", "p", "r");
    let bad = Batch::new()
        .operation(&client, "PUT", &path, &["If-Match: foo"], &entity("p", "r", ""))
        .request(&client)
        .send();
    assert!(bad.status == 400 || bad.text().contains("HTTP/1.1 400"), "{bad}");
    let bare = Batch::new().operation(&client, "DELETE", &path, &[], "").request(&client).send();
    assert!(bare.status == 400 || bare.text().contains("HTTP/1.1 400"), "{bare}");
    client.get(&path).send().is_status(200);
}

#[test]
fn a_connection_serves_many_requests_also_after_refusals() {
    let server = serve_table();
    let client = server.client();
    let good = client.get("/Tables").to_bytes();
    let bad = client.get("/missing()").to_bytes();
    let refused = client.post("/tab", "{").to_bytes();
    let many = [&good[..], &bad, &refused, &good].concat();
    let mut stream = std::net::TcpStream::connect(client.address()).expect("the server listens");
    std::io::Write::write_all(&mut stream, &many).expect("four requests at once");
    std::io::Write::flush(&mut stream).expect("they are sent");
    stream.set_read_timeout(Some(std::time::Duration::from_secs(30))).expect("a timeout can be set");
    let mut bytes = Vec::new();
    let mut buffer = [0; 4096];
    for _ in 0..1000 {
        let count = std::io::Read::read(&mut stream, &mut buffer).expect("answers");
        bytes.extend_from_slice(&buffer[..count]);
        if count == 0 || String::from_utf8_lossy(&bytes).matches("HTTP/1.1 ").count() == 4 {
            break;
        }
    }
    let text = String::from_utf8_lossy(&bytes);
    let statuses: Vec<&str> = text.split("HTTP/1.1 ").skip(1).map(|answer| &answer[..3]).collect();
    assert_eq!(statuses, ["200", "404", "400", "200"]);
}
