//! Entity group transactions (M8): bytes of the answer, failures with their index, and what is refused.

use super::serve_table;
use larimar_testkit::http::{Batch, BatchReply, Client, entity, entity_path};

fn rows(client: &Client) -> Vec<String> {
    client.get("/tab()").send().column("RowKey")
}

#[test]
fn m8_a_transaction_of_every_operation_answers_part_by_part() {
    let server = serve_table();
    let client = server.client();
    for row in ["replace", "merge", "delete"] {
        client.insert("tab", "p", row, r#""A":1"#);
    }
    let any = "If-Match: *";
    let path = |row: &str| entity_path("tab", "p", row);
    let reply = Batch::new()
        .insert(&client, "tab", "p", "insert", r#""A":2"#)
        .operation(&client, "POST", "/tab", &[], &entity("p", "echo", r#""A":3"#))
        .operation(&client, "PUT", &path("replace"), &[any], &entity("p", "replace", r#""B":2"#))
        .operation(&client, "MERGE", &path("merge"), &[any], &entity("p", "merge", r#""B":2"#))
        .operation(&client, "PATCH", &path("patch"), &[], &entity("p", "patch", r#""B":2"#))
        .operation(&client, "PUT", &path("upsert"), &[], &entity("p", "upsert", ""))
        .delete(&client, "tab", "p", "delete", "*")
        .send(&client);
    assert_eq!(reply.statuses(), [204, 201, 204, 204, 204, 204, 204]);
    assert_eq!(rows(&client), ["echo", "insert", "merge", "patch", "replace", "upsert"]);
    let merged = client.get(&path("merge")).send().json();
    assert_eq!((&merged["A"], &merged["B"]), (&1.into(), &2.into()));
    assert_eq!(client.get(&path("replace")).send().json().get("A"), None);
    for (part, row) in [(0, "insert"), (2, "replace"), (3, "merge"), (4, "patch"), (5, "upsert")] {
        let etag = client.get(&path(row)).send().header("ETag").map(str::to_owned);
        assert_eq!(reply.parts[part].response.header("ETag").map(str::to_owned), etag, "{row}");
    }
}

#[test]
fn m8_the_bytes_of_the_answer_are_the_service_s() {
    let server = serve_table();
    let client = server.client();
    let reply = Batch::new()
        .insert(&client, "tab", "p", "a", "")
        .upsert(&client, "tab", "p", "b", "")
        .operation(&client, "POST", "/tab", &[], &entity("p", "c", ""))
        .send(&client);
    let base = client.base();
    let etag = |row: &str| client.get(&entity_path("tab", "p", row)).send().header("ETag").expect("an etag").to_owned();
    let insert = format!(
        "HTTP/1.1 204 No Content\r\nX-Content-Type-Options: nosniff\r\nCache-Control: no-cache\r\nPreference-Applied: return-no-content\r\nDataServiceVersion: 3.0;\r\nLocation: {base}/tab(PartitionKey='p',RowKey='a')\r\nDataServiceId: {base}/tab(PartitionKey='p',RowKey='a')\r\nETag: {}\r\n\r\n\r\n",
        etag("a")
    );
    assert_eq!(reply.parts[0].raw, insert);
    let upsert = format!(
        "HTTP/1.1 204 No Content\r\nX-Content-Type-Options: nosniff\r\nCache-Control: no-cache\r\nDataServiceVersion: 1.0;\r\nETag: {}\r\n\r\n\r\n",
        etag("b")
    );
    assert_eq!(reply.parts[1].raw, upsert);
    let echo = &reply.parts[2].response;
    assert_eq!(echo.status, 201);
    assert_eq!(echo.header("Location"), Some(&*format!("{base}/tab(PartitionKey='p',RowKey='c')")));
    assert_eq!(echo.json()["RowKey"], "c");
    assert!(
        reply.outer.header("Content-Type").is_some_and(|v| v.starts_with("multipart/mixed; boundary=batchresponse_"))
    );
}

#[test]
fn m8_a_failure_names_its_operation_and_leaves_nothing() {
    let server = serve_table();
    let client = server.client();
    let stale = client.insert("tab", "p", "taken", "");
    client.put(&entity_path("tab", "p", "taken"), "{}").send().is_status(204);
    let start = || Batch::new().insert(&client, "tab", "p", "a", "").insert(&client, "tab", "p", "b", "");
    let path = entity_path("tab", "p", "taken");
    let condition = format!("If-Match: {stale}");
    for (batch, status, code, message) in [
        (
            start().insert(&client, "tab", "p", "taken", ""),
            409,
            "EntityAlreadyExists",
            "2:The specified entity already exists.",
        ),
        (
            start().delete(&client, "tab", "p", "missing", "*"),
            404,
            "ResourceNotFound",
            "2:The specified resource does not exist.",
        ),
        (
            start().operation(&client, "PUT", &path, &[&condition], &entity("p", "taken", "")),
            412,
            "UpdateConditionNotSatisfied",
            "2:The update condition specified in the request was not satisfied.",
        ),
        (
            start().operation(&client, "MERGE", &path, &[&condition], &entity("p", "taken", "")),
            412,
            "UpdateConditionNotSatisfied",
            "2:",
        ),
        (start().delete(&client, "tab", "p", "taken", &stale), 412, "UpdateConditionNotSatisfied", "2:"),
        (start().upsert(&client, "tab", "q", "x", ""), 400, "CommandsInBatchActOnDifferentPartitions", "2:"),
        (
            start().upsert(&client, "tab", "p", "a", ""),
            400,
            "InvalidDuplicateRow",
            "2:The batch request contains multiple changes with same row key. An entity can appear only once in a batch request.",
        ),
        (
            start().insert(&client, "tab", "p", "c", &format!(r#""V":"{}""#, "x".repeat(32_769))),
            400,
            "PropertyValueTooLarge",
            "2:",
        ),
        (start().insert(&client, "tab", "p", "c", r#""a-b":1"#), 400, "PropertyNameInvalid", "2:"),
        (start().insert(&client, "tab", "p", "c/d", ""), 400, "OutOfRangeInput", "2:"),
        (
            Batch::new().insert(&client, "missing", "p", "a", ""),
            404,
            "TableNotFound",
            "0:The table specified does not exist.",
        ),
    ] {
        batch.send(&client).is_error(status, code, message);
        assert_eq!(rows(&client), ["taken"], "{code}: nothing was applied");
    }
}

#[test]
fn m8_a_failed_insert_still_tells_which_preference_applied() {
    let server = serve_table();
    let client = server.client();
    client.insert("tab", "p", "a", "");
    let reply = Batch::new().insert(&client, "tab", "p", "a", "").send(&client);
    assert_eq!(reply.parts[0].response.header("Preference-Applied"), Some("return-no-content"));
    assert_eq!(reply.parts[0].response.header("DataServiceVersion"), Some("3.0;"));
}

#[test]
fn m8_a_hundred_operations_and_one_more() {
    let server = serve_table();
    let client = server.client();
    let batch = |count: usize| {
        (0..count).fold(Batch::new(), |batch, row| batch.insert(&client, "tab", "p", &format!("r{row:03}"), ""))
    };
    let reply = batch(101).send(&client);
    let text = "99:The batch request operation exceeds the maximum 100 changes per change set.";
    reply.is_error(400, "InvalidInput", text);
    assert_eq!(rows(&client).len(), 0);
    assert_eq!(batch(100).send(&client).statuses(), vec![204; 100]);
    assert_eq!(rows(&client).len(), 100);
}

#[test]
fn m8_a_body_of_4_mib_and_more() {
    let server = serve_table();
    let client = server.client();
    let filler = format!(r#""V":"{}""#, "x".repeat(30_000));
    let batch = |count: usize| {
        (0..count).fold(Batch::new(), |batch, row| batch.insert(&client, "tab", "p", &format!("r{row:03}"), &filler))
    };
    assert_eq!(batch(90).send(&client).statuses(), vec![204; 90]);
    let large = format!(r#""V":"{}","W":"{}""#, "x".repeat(30_000), "y".repeat(30_000));
    let too_large =
        (0..90).fold(Batch::new(), |batch, row| batch.upsert(&client, "tab", "p", &format!("s{row:03}"), &large));
    too_large.request(&client).send().is_error(413, "RequestBodyTooLarge");
    assert_eq!(rows(&client).len(), 90);
}

#[test]
fn a_single_get_in_a_batch() {
    let server = serve_table();
    let client = server.client();
    client.insert("tab", "p", "r", r#""A":1"#);
    let get = |path: &str| {
        let part = format!(
            "--b\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\nGET {}{path} HTTP/1.1\r\nAccept: application/json;odata=minimalmetadata\r\n\r\n\r\n--b--\r\n",
            client.base()
        );
        let request = client.request("POST", "/$batch").header("Content-Type", "multipart/mixed; boundary=b");
        BatchReply::new(request.body(part).send())
    };
    let reply = get(&entity_path("tab", "p", "r"));
    assert_eq!(reply.statuses(), [200]);
    let inner = &reply.parts[0].response;
    assert_eq!(inner.json()["A"], 1);
    assert!(inner.header("ETag").is_some());
    assert_eq!(inner.header("DataServiceVersion"), Some("3.0;"));
    assert_eq!(get(&entity_path("tab", "p", "missing")).statuses(), [404]);
    let page = get("/tab()?$filter=A%20eq%201");
    assert_eq!(page.parts[0].response.values().len(), 1);
}

#[test]
fn batches_are_read_as_every_sdk_writes_them() {
    let server = serve_table();
    let client = server.client();
    let send = |content_type: &str, body: String| {
        let request = client.request("POST", "/$batch").header("Content-Type", content_type).body(body);
        BatchReply::new(request.send()).statuses()
    };
    let host = client.base();
    // The legacy node SDK: bare line feeds, charset before the boundary, lower case, no final newline.
    let node = format!(
        "--batch_1\ncontent-type: multipart/mixed;charset=\"utf-8\";boundary=changeset_1\n\n--changeset_1\ncontent-type: application/http\ncontent-transfer-encoding: binary\n\nPOST {host}/tab HTTP/1.1\nprefer: return-no-content\ncontent-id: 1\ncontent-type: application/json;odata=minimalmetadata;type=entry\n\n{}\n--changeset_1--\n--batch_1--",
        entity("p", "node", "")
    );
    assert_eq!(send("multipart/mixed; charset=\"utf-8\"; boundary=batch_1", node), [204]);
    // .NET: a quoted boundary, MERGE by tunnelling, relative addresses.
    let net = format!(
        "--batch_2\r\nContent-Type: multipart/mixed; boundary=\"changeset_2\"\r\n\r\n--changeset_2\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\nPOST /devstoreaccount1/tab(PartitionKey='p',RowKey='net') HTTP/1.1\r\nX-HTTP-Method: MERGE\r\nContent-Type: application/json\r\n\r\n{}\r\n--changeset_2--\r\n--batch_2--\r\n",
        entity("p", "net", "")
    );
    assert_eq!(send("multipart/mixed; boundary=\"batch_2\"", net), [204]);
    // Go: $format inside, other host; JavaScript: more blank lines; samples: no closing boundary.
    let go = format!(
        "--x\r\nContent-Type: multipart/mixed; boundary=y\r\n\r\n\r\n--y\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\nPOST https://elsewhere.example/devstoreaccount1/tab?%24format=application%2Fjson HTTP/1.1\r\nDataserviceversion: 3.0\r\nPrefer: return-no-content\r\nContent-Type: application/json\r\n\r\n\r\n{}\r\n--y--\r\n",
        entity("p", "go", "")
    );
    assert_eq!(send("multipart/mixed; boundary=x", go), [204]);
    assert_eq!(rows(&client), ["go", "net", "node"]);
}

#[test]
fn what_is_no_batch_is_refused() {
    let server = serve_table();
    let client = server.client();
    let good = Batch::new().insert(&client, "tab", "p", "r", "").body();
    for body in [
        String::new(),
        "nonsense".to_owned(),
        good.replace("--changeset_", "--other_"),
        good.replace("POST ", "BREW "),
        good.replace("POST http", "OPTIONS http"),
        good[..good.len() / 2].to_owned(),
        good[..good.rfind("--changeset_").expect("its closing delimiter")].to_owned(),
        good[..good.rfind("--changeset_").expect("its closing delimiter") + 20].to_owned(),
        Batch::new().body(),
    ] {
        let reply = Batch::raw(&client, body.clone()).send();
        let is_refused = reply.status == 400 || reply.status == 202 && reply.text().contains("HTTP/1.1 4");
        assert!(is_refused, "{body}\n{reply}");
    }
    let untyped = client.request("POST", "/$batch").header("Content-Type", "application/json").body(good).send();
    assert!((400..500).contains(&untyped.status), "{untyped}");
    assert_eq!(rows(&client).len(), 0);
}

#[test]
fn reads_do_not_mix_with_writes_and_a_batch_has_one_changeset() {
    let server = serve_table();
    let client = server.client();
    let mixed = Batch::new()
        .insert(&client, "tab", "p", "r", "")
        .operation(&client, "GET", &entity_path("tab", "p", "r"), &[], "")
        .request(&client)
        .send();
    assert!(mixed.status == 400 || mixed.text().contains("HTTP/1.1 400"), "{mixed}");
    let one = Batch::new().insert(&client, "tab", "p", "a", "").body();
    let other = Batch::new().insert(&client, "tab", "p", "b", "").body();
    let end = one.rfind("--batch_").expect("the closing boundary");
    let two = Batch::raw(&client, format!("{}{other}", &one[..end])).send();
    assert!(two.status == 400 || two.text().contains("HTTP/1.1 400"), "{two}");
    let nested =
        Batch::new().operation(&client, "POST", "/Tables", &[], r#"{"TableName":"inner"}"#).request(&client).send();
    assert!(nested.status == 400 || nested.text().contains("HTTP/1.1 4"), "{nested}");
    assert_eq!(rows(&client).len(), 0);
}
