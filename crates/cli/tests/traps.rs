//! The known traps: where another emulator is or was known to differ from the real service, one test each.
//! Numbers are those of its issue tracker. What is tested elsewhere in depth is here in one line.

use larimar_testkit::TemporaryServer;
use larimar_testkit::http::{Batch, Client, Response, Sas, entity, entity_path};
use larimar_testkit::serde_json::{self, json};

fn serve() -> TemporaryServer {
    let server = TemporaryServer::start(env!("CARGO_BIN_EXE_larimar"), &["--durability", "async"]);
    server.client().create_table("tab");
    server
}

fn find(client: &Client, filter: &str) -> Vec<String> {
    let reply = client.get("/tab()").query("$filter", filter).send();
    assert_eq!(reply.status, 200, "{filter}: {reply}");
    reply.column("RowKey")
}

fn count(client: &Client) -> usize {
    client.get("/tab()").send().values().len()
}

fn insert(client: &Client, members: &str) -> Response {
    client.post("/tab", entity("p", "r", members)).send()
}

const PATH: &str = "/tab(PartitionKey='p',RowKey='r')";

#[test]
fn filters_compare_values_by_their_type() {
    let server = serve();
    let client = server.client();
    client.insert("tab", "p", "r", r#""V":"123""#);
    assert_eq!(find(&client, "V eq 123L"), Vec::<String>::new());
    assert_eq!(find(&client, "V eq '123'"), ["r"]);
    assert_eq!(find(&client, "V ne 123L"), ["r"]);
}

#[test]
fn n1599_a_literal_may_stand_on_the_left() {
    let server = serve();
    let client = server.client();
    client.insert("tab", "p", "r", r#""V":5"#);
    assert_eq!(find(&client, "'p' eq PartitionKey and 4 lt V"), ["r"]);
}

#[test]
fn n1185_a_filter_must_be_true_or_false() {
    let server = serve();
    let reply = server.client().get("/tab()").query("$filter", "1").send();
    reply.is_error(400, "InvalidInput");
    assert_eq!(reply.message(), "The $filter expression must evaluate to a single boolean value.");
}

#[test]
fn n1215_a_batch_over_several_partitions_is_refused() {
    let server = serve();
    let client = server.client();
    let batch = Batch::new().insert(&client, "tab", "p", "r", "").insert(&client, "tab", "q", "r", "");
    batch.send(&client).is_error(
        400,
        "CommandsInBatchActOnDifferentPartitions",
        "1:All commands in a batch must operate on same entity group.",
    );
    assert_eq!(count(&client), 0);
}

#[test]
fn n728_reads_and_writes_do_not_mix_in_a_batch() {
    let server = serve();
    let client = server.client();
    let batch = Batch::new().insert(&client, "tab", "p", "r", "").operation(&client, "GET", PATH, &[], "");
    let reply = batch.request(&client).send();
    assert!(reply.status == 400 || reply.text().contains("HTTP/1.1 400"), "{reply}");
    assert_eq!(count(&client), 0);
}

#[test]
fn n1754_a_row_twice_in_a_batch_is_a_bad_request_with_its_index() {
    let server = serve();
    let client = server.client();
    let batch = Batch::new().insert(&client, "tab", "p", "r", "").upsert(&client, "tab", "p", "r", "");
    batch.send(&client).is_error(400, "InvalidDuplicateRow", "1:");
}

#[test]
fn n791_n1227_a_failed_operation_keeps_its_own_status_and_index() {
    let server = serve();
    let client = server.client();
    client.insert("tab", "p", "r", "");
    let batch = Batch::new().insert(&client, "tab", "p", "a", "").insert(&client, "tab", "p", "r", "");
    batch.send(&client).is_error(409, "EntityAlreadyExists", "1:The specified entity already exists.");
}

#[test]
fn n1216_n1228_a_failed_batch_leaves_nothing_behind() {
    let server = serve();
    let client = server.client();
    client.insert("tab", "p", "kept", r#""V":1"#);
    let batch = Batch::new()
        .insert(&client, "tab", "p", "new", "")
        .upsert(&client, "tab", "p", "kept", r#""V":2"#)
        .delete(&client, "tab", "p", "missing", "*");
    batch.send(&client).is_error(404, "ResourceNotFound", "2:");
    assert_eq!(count(&client), 1);
    assert_eq!(client.get(&entity_path("tab", "p", "kept")).send().json()["V"], 1);
}

#[test]
fn if_match_counts_inside_a_batch() {
    let server = serve();
    let client = server.client();
    let stale = client.insert("tab", "p", "r", r#""V":1"#);
    client.put(PATH, r#"{"V":2}"#).send().is_status(204);
    for method in ["PUT", "MERGE"] {
        let body = entity("p", "r", r#""V":3"#);
        let batch = Batch::new().operation(&client, method, PATH, &[&format!("If-Match: {stale}")], &body);
        assert_eq!(batch.send(&client).statuses(), [412]);
    }
    assert_eq!(Batch::new().delete(&client, "tab", "p", "r", &stale).send(&client).statuses(), [412]);
    assert_eq!(client.get(PATH).send().json()["V"], 2);
}

#[test]
fn more_than_a_hundred_operations_are_refused_with_index_99() {
    let server = serve();
    let client = server.client();
    let batch = (0..101).fold(Batch::new(), |batch, row| batch.insert(&client, "tab", "p", &row.to_string(), ""));
    batch.send(&client).is_error(400, "InvalidInput", "99:The batch request operation exceeds the maximum 100 changes");
}

#[test]
fn more_than_4_mib_are_refused() {
    let server = serve();
    let client = server.client();
    let filler = format!(r#""V":"{}","W":"{}""#, "x".repeat(30_000), "y".repeat(30_000));
    let batch = (0..80).fold(Batch::new(), |batch, row| batch.insert(&client, "tab", "p", &row.to_string(), &filler));
    batch.request(&client).send().is_error(413, "RequestBodyTooLarge");
    assert_eq!(count(&client), 0);
}

#[test]
fn n2558_integers_past_their_range_are_refused() {
    let server = serve();
    let client = server.client();
    for value in ["9223372036854775808", "18446744073709551615", "-9223372036854775809"] {
        let reply = insert(&client, &format!(r#""V@odata.type":"Edm.Int64","V":"{value}""#));
        reply.is_error(400, "InvalidInput");
    }
}

#[test]
fn n1757_datetimes_before_1601_are_refused() {
    let server = serve();
    let reply = insert(&server.client(), r#""V@odata.type":"Edm.DateTime","V":"0001-01-01T00:00:00Z""#);
    reply.is_error(400, "OutOfRangeInput");
}

#[test]
fn microseconds_and_ticks_of_a_datetime_are_kept_and_compared() {
    let server = serve();
    let client = server.client();
    client.insert("tab", "p", "r", r#""V@odata.type":"Edm.DateTime","V":"2020-01-01T00:00:00.1234567Z""#);
    assert_eq!(client.get(PATH).send().json()["V"], "2020-01-01T00:00:00.1234567Z");
    assert_eq!(find(&client, "V eq datetime'2020-01-01T00:00:00.1234567Z'"), ["r"]);
    assert_eq!(find(&client, "V gt datetime'2020-01-01T00:00:00.123456Z'"), ["r"]);
    assert_eq!(find(&client, "V lt datetime'2020-01-01T00:00:00.123457Z'"), ["r"]);
}

#[test]
fn n1366_a_whole_double_stays_a_double() {
    let server = serve();
    let client = server.client();
    client.insert("tab", "p", "r", r#""V@odata.type":"Edm.Double","V":1,"I":1"#);
    let text = client.get(PATH).send().text().to_owned();
    assert!(text.contains(r#""V":1.0,"I":1}"#), "{text}");
}

#[test]
fn n1259_annotated_strings_are_booleans_and_integers() {
    let server = serve();
    let client = server.client();
    client.insert("tab", "p", "r", r#""B@odata.type":"Edm.Boolean","B":"true","I@odata.type":"Edm.Int32","I":"7""#);
    let found = client.get(PATH).send().json();
    assert_eq!((&found["B"], &found["I"]), (&json!(true), &json!(7)));
}

#[test]
fn n1229_n2013_a_wrong_etag_is_a_conflict_and_a_malformed_one_a_bad_request() {
    let server = serve();
    let client = server.client();
    client.insert("tab", "p", "r", "");
    client.put(PATH, "{}").if_match("W/\"wrong\"").send().is_error(412, "UpdateConditionNotSatisfied");
    client.put(PATH, "{}").if_match("wrong").send().is_error(400, "InvalidInput");
}

#[test]
fn n1286_etags_never_repeat() {
    let server = serve();
    let client = server.client();
    let mut seen = std::collections::BTreeSet::from([client.insert("tab", "p", "r", "")]);
    for _ in 0..200 {
        let reply = client.put(PATH, "{}").send();
        assert!(seen.insert(reply.header("ETag").expect("an etag").to_owned()));
    }
}

#[test]
fn n743_n688_n1579_the_etag_has_escaped_colons_and_comes_with_reads() {
    let server = serve();
    let client = server.client();
    let etag = client.insert("tab", "p", "r", "");
    assert!(
        etag.starts_with("W/\"datetime'20") && etag.matches("%3A").count() == 2 && etag.ends_with("Z'\""),
        "{etag}"
    );
    let reply = client.get(PATH).send();
    assert_eq!(reply.header("ETag"), Some(&*etag));
    assert_eq!(reply.json()["odata.etag"], etag);
}

#[test]
fn n1162_the_timestamp_is_not_annotated_at_minimal_metadata() {
    let server = serve();
    let client = server.client();
    client.insert("tab", "p", "r", "");
    assert_eq!(client.get(PATH).send().json().get("Timestamp@odata.type"), None);
}

#[test]
fn links_have_no_query_string() {
    let server = serve();
    let client = server.client();
    let request = client.post("/tab", entity("p", "r", "")).query("$format", "application/json;odata=minimalmetadata");
    let reply = request.header("Prefer", "return-no-content").send();
    for name in ["Location", "DataServiceId"] {
        assert_eq!(reply.header(name), Some(&*format!("{}{PATH}", client.base())));
    }
    let signed = client.with_sas(&Sas::table("tab", "a").token());
    let reply = signed.post("/tab", entity("p", "s", "")).send();
    assert!(reply.header("Location").is_some_and(|place| !place.contains('?')), "{reply}");
}

#[test]
fn n950_no_preference_is_applied_without_prefer() {
    let server = serve();
    let reply = insert(&server.client(), "");
    assert_eq!((reply.status, reply.header("Preference-Applied")), (201, None));
}

#[test]
fn no_accept_is_answered_with_json() {
    let server = serve();
    let reply = server.client().get("/tab()").without("Accept").send();
    reply.is_status(200);
    assert!(reply.json()["value"].is_array());
}

#[test]
fn n1573_n1880_empty_options_are_ignored() {
    let server = serve();
    let client = server.client();
    client.insert("tab", "p", "r", r#""V":1"#);
    let reply = client.get("/tab()?$filter=&$select=").send();
    assert_eq!(reply.values()[0]["V"], 1);
}

#[test]
fn n806_n1214_n2009_keys_keep_their_characters() {
    let server = serve();
    let client = server.client();
    for key in [
        "a b",
        "a+b",
        "100%",
        "50%25",
        "it's",
        "''",
        "日本語",
        "é€",
        "😀",
        "a&b",
        "a=b",
        "a;b,c",
        "<x>",
        "\"",
        "~!@$^*()",
    ] {
        client.insert("tab", key, key, "");
        let reply = client.get(&entity_path("tab", key, key)).send();
        assert_eq!((reply.status, &reply.json()["RowKey"]), (200, &json!(key)));
        let filter = format!("PartitionKey eq '{0}' and RowKey eq '{0}'", key.replace('\'', "''"));
        assert_eq!(find(&client, &filter), [key]);
        client.delete(&entity_path("tab", key, key)).send().is_status(204);
    }
}

#[test]
fn n150_n1371_forbidden_characters_in_keys_are_out_of_range() {
    let server = serve();
    let client = server.client();
    for key in ["a/b", "a\\b", "a#b", "a?b", "a\u{1}b", "a\u{9f}b"] {
        client.post("/tab", entity(key, "r", "")).send().is_error(400, "OutOfRangeInput");
        client.post("/tab", entity("p", key, "")).send().is_error(400, "OutOfRangeInput");
    }
    let reply = client.get("/tab(PartitionKey='a%2Fb',RowKey='r')").send();
    reply.is_error(400, "InvalidInput");
    assert_eq!(reply.message(), "Bad Request - Error in query syntax.");
    assert_eq!(count(&client), 0);
}

#[test]
fn n1379_no_table_is_named_tables() {
    let server = serve();
    for name in ["tables", "Tables"] {
        let reply = server.client().post("/Tables", format!(r#"{{"TableName":"{name}"}}"#)).send();
        reply.is_error(400, "InvalidResourceName");
    }
}

#[test]
fn bad_names_have_a_code() {
    let server = serve();
    let client = server.client();
    client.post("/Tables", r#"{"TableName":"a-b"}"#).send().is_error(400, "InvalidResourceName");
    client.post("/Tables", r#"{"TableName":"ab"}"#).send().is_error(400, "OutOfRangeInput");
}

#[test]
fn deleting_a_table_leaves_tables_whose_names_begin_with_its() {
    let server = serve();
    let client = server.client();
    client.create_table("table1");
    client.create_table("tab1");
    client.insert("table1", "p", "r", "");
    client.delete("/Tables('tab')").send().is_status(204);
    client.get("/table1(PartitionKey='p',RowKey='r')").send().is_status(200);
    assert_eq!(client.get("/Tables").send().values().len(), 2);
}

#[test]
fn n1554_a_token_without_its_row_key_ends() {
    let server = serve();
    let client = server.client();
    for partition in ["a", "b", "c"] {
        client.insert("tab", partition, "r", "");
    }
    let mut seen = Vec::new();
    let mut next = String::new();
    for _ in 0..10 {
        let request = client.get("/tab()").query("$top", "1");
        let reply = if next.is_empty() { request } else { request.query("NextPartitionKey", &next) }.send();
        seen.extend(reply.column("PartitionKey"));
        match reply.header("x-ms-continuation-NextPartitionKey") {
            Some(token) => next = token.to_owned(),
            None => break,
        }
    }
    assert_eq!(seen, ["a", "b", "c"]);
}

#[test]
fn n722_paging_drops_no_row_and_survives_any_text() {
    let server = serve();
    let client = server.client();
    let keys = ["", "a", "a b", "é", "日本", "😀", "z'z", "~"];
    for partition in keys {
        for row in keys {
            client.insert("tab", partition, row, "");
        }
    }
    let (mut seen, mut token) = (0, None::<(String, String)>);
    for _ in 0..100 {
        let mut request = client.get("/tab()").query("$top", "3").query("$filter", "RowKey ne 'nothing'");
        if let Some((partition, row)) = &token {
            request = request.query("NextPartitionKey", partition).query("NextRowKey", row);
        }
        let reply = request.send();
        reply.is_status(200);
        seen += reply.values().len();
        let part = |name: &str| reply.header(name).map(str::to_owned);
        token = part("x-ms-continuation-NextPartitionKey").zip(part("x-ms-continuation-NextRowKey"));
        if token.is_none() {
            break;
        }
    }
    assert_eq!(seen, keys.len() * keys.len());
}

#[test]
fn n675_tables_are_filtered() {
    let server = serve();
    let client = server.client();
    client.create_table("other");
    let reply = client.get("/Tables").query("$filter", "TableName eq 'other'").send();
    assert_eq!(reply.column("TableName"), ["other"]);
}

#[test]
fn keys_of_1_kib_are_fine_and_longer_ones_too_large() {
    let server = serve();
    let client = server.client();
    client.post("/tab", entity(&"k".repeat(512), &"k".repeat(512), "")).send().is_status(201);
    client.post("/tab", entity(&"k".repeat(513), "r", "")).send().is_error(400, "PropertyValueTooLarge");
    client.post("/tab", entity(&"k".repeat(2048), "r", "")).send().is_error(400, "PropertyValueTooLarge");
}

#[test]
fn keys_in_the_body_must_be_those_of_the_address() {
    let server = serve();
    let client = server.client();
    assert_eq!(client.put(PATH, entity("p", "other", "")).send().status, 400);
    assert_eq!(client.merge(PATH, entity("q", "r", "")).send().status, 400);
    assert_eq!(count(&client), 0);
}

#[test]
fn a_merge_counts_the_whole_entity() {
    let server = serve();
    let client = server.client();
    let large = |prefix: &str| {
        (0..9).map(|i| format!(r#""{prefix}{i}":"{}""#, "x".repeat(32_000))).collect::<Vec<_>>().join(",")
    };
    client.insert("tab", "p", "r", &large("A"));
    client.merge(PATH, format!("{{{}}}", large("B"))).if_match("*").send().is_error(400, "EntityTooLarge");
    client.merge(PATH, format!("{{{}}}", large("A"))).if_match("*").send().is_status(204);
}

#[test]
fn the_253rd_property_is_refused() {
    let server = serve();
    let client = server.client();
    let members = |count: usize| (0..count).map(|i| format!(r#""P{i}":1"#)).collect::<Vec<_>>().join(",");
    insert(&client, &members(252)).is_status(201);
    client.put(PATH, format!("{{{}}}", members(253))).send().is_error(400, "TooManyProperties");
}

#[test]
fn strings_past_64_kib_are_refused() {
    let server = serve();
    let client = server.client();
    let text = |count: usize| format!(r#""V":"{}""#, "x".repeat(count));
    insert(&client, &text(32_769)).is_error(400, "PropertyValueTooLarge");
    insert(&client, &text(32_768)).is_status(201);
}

#[test]
fn a_sent_etag_is_not_stored() {
    let server = serve();
    let client = server.client();
    client.insert("tab", "p", "r", r#""odata.etag":"W/\"mine\"","odata.metadata":"x""#);
    let found = client.get(PATH).accept("application/json;odata=nometadata").send().json();
    let names: Vec<_> = found.as_object().map(serde_json::Map::keys).into_iter().flatten().collect();
    assert_eq!(names, ["PartitionKey", "RowKey", "Timestamp"]);
}

#[test]
fn null_is_no_value_to_compare_with() {
    let server = serve();
    let client = server.client();
    client.insert("tab", "p", "r", r#""A":1,"B":null"#);
    for filter in ["A eq null", "B ne null"] {
        client.get("/tab()").query("$filter", filter).send().is_error(400, "InvalidInput");
    }
    assert_eq!(find(&client, "B eq 1 or B ne 1"), Vec::<String>::new());
}

#[test]
fn top_zero_is_an_empty_page() {
    let server = serve();
    let client = server.client();
    client.insert("tab", "p", "r", "");
    let reply = client.get("/tab()").query("$top", "0").send();
    assert_eq!((reply.status, reply.values().len()), (200, 0));
    assert_eq!(reply.header("x-ms-continuation-NextPartitionKey"), None);
}

#[test]
fn n1359_the_table_s_name_in_a_signature_has_no_case() {
    let server = serve();
    let client = server.client();
    client.create_table("UpperCase");
    for name in ["UpperCase", "uppercase", "UPPERCASE"] {
        client.with_sas(&Sas::table(name, "r").token()).get("/UpperCase()").send().is_status(200);
    }
}

#[test]
fn ranges_of_a_signature_are_enforced() {
    let server = serve();
    let client = server.client();
    client.insert("tab", "a", "1", "");
    client.insert("tab", "b", "1", "");
    let limited = client.with_sas(&Sas::table("tab", "ra").with("spk", "b").with("epk", "b").token());
    assert_eq!(limited.get("/tab()").send().column("PartitionKey"), ["b"]);
    limited.get(&entity_path("tab", "a", "1")).send().is_error(404, "ResourceNotFound");
    limited.post("/tab", entity("c", "1", "")).send().is_error(403, "AuthorizationFailure");
}

#[test]
fn n958_n961_properties_stats_and_cors_are_there() {
    let server = serve();
    let client = server.client();
    client.get("/?restype=service&comp=properties").accept("application/xml").send().is_status(200);
    client.secondary().get("/?restype=service&comp=stats").accept("application/xml").send().is_status(200);
    let anonymous = client.anonymous();
    let preflight = anonymous.request("OPTIONS", "/tab").header("Origin", "http://x.test");
    preflight.header("Access-Control-Request-Method", "GET").send().is_error(403, "CorsPreflightFailure");
}

#[test]
fn invalid_cors_rules_are_refused() {
    let server = serve();
    let rule = "<CorsRule><AllowedMethods>BREW</AllowedMethods><AllowedOrigins>*</AllowedOrigins><AllowedHeaders/><ExposedHeaders/><MaxAgeInSeconds>1</MaxAgeInSeconds></CorsRule>";
    let body = format!("<StorageServiceProperties><Cors>{rule}</Cors></StorageServiceProperties>");
    let reply = server.client().request("PUT", "/?restype=service&comp=properties").xml(body).send();
    assert_eq!(reply.status, 400, "{reply}");
}

#[test]
fn pages_end_after_a_thousand_entities() {
    let server = serve();
    let client = server.client();
    for chunk in 0..11 {
        let batch = (0..100)
            .fold(Batch::new(), |batch, row| batch.insert(&client, "tab", "p", &format!("{chunk:02}{row:02}"), ""));
        assert_eq!(batch.send(&client).statuses(), [204; 100]);
    }
    let reply = client.get("/tab()").send();
    assert_eq!(reply.values().len(), 1000);
    assert!(reply.header("x-ms-continuation-NextRowKey").is_some());
}
