//! Order, `$top` and continuation (D6, Q1–Q5, Q7, Q9, Q10).

use super::serve_table;
use larimar_testkit::http::{Batch, Client, Response};
use larimar_testkit::serde_json;

/// Inserts rows `r0000`… into a partition by transactions.
fn fill(client: &Client, partition: &str, count: usize) {
    let rows: Vec<usize> = (0..count).collect();
    for chunk in rows.chunks(100) {
        let batch = chunk.iter().fold(Batch::new(), |batch, row| {
            batch.insert(client, "tab", partition, &format!("r{row:04}"), &format!(r#""N":{row}"#))
        });
        assert_eq!(batch.send(client).statuses(), vec![204; chunk.len()]);
    }
}

/// All pages of a query.
fn pages(client: &Client, options: &[(&str, &str)]) -> Vec<Response> {
    let mut pages: Vec<Response> = Vec::new();
    for _ in 0..200 {
        let mut request = client.get("/tab()");
        for (name, value) in options {
            request = request.query(name, value);
        }
        if let Some(last) = pages.last() {
            let partition = last.header("x-ms-continuation-NextPartitionKey");
            let row = last.header("x-ms-continuation-NextRowKey");
            let Some(partition) = partition else { return pages };
            request = request.query("NextPartitionKey", partition);
            if let Some(row) = row {
                request = request.query("NextRowKey", row);
            }
        }
        let reply = request.send();
        reply.is_status(200);
        pages.push(reply);
    }
    panic!("the pages do not end");
}

fn keys(pages: &[Response]) -> Vec<(String, String)> {
    let entities = pages.iter().flat_map(Response::values);
    let text = |value: &serde_json::Value| value.as_str().expect("a key").to_owned();
    entities.map(|entity| (text(&entity["PartitionKey"]), text(&entity["RowKey"]))).collect()
}

#[test]
fn d6_answers_come_in_the_order_of_both_keys() {
    let server = serve_table();
    let client = server.client();
    for (partition, row) in
        [("b", "1"), ("a", "2"), ("a", "10"), ("B", "1"), ("\u{e000}", "1"), ("😀", "1"), ("", "1"), ("a", "")]
    {
        client.insert("tab", partition, row, "");
    }
    let expected =
        [("", "1"), ("B", "1"), ("a", ""), ("a", "10"), ("a", "2"), ("b", "1"), ("😀", "1"), ("\u{e000}", "1")];
    let expected: Vec<_> = expected.iter().map(|(p, r)| ((*p).to_owned(), (*r).to_owned())).collect();
    assert_eq!(keys(&pages(&client, &[])), expected);
    assert_eq!(keys(&pages(&client, &[("$top", "1")])), expected);
    assert_eq!(keys(&pages(&client, &[("$top", "3"), ("$filter", "PartitionKey gt 'A'")])), expected[1..]);
}

#[test]
fn q9_a_page_has_a_thousand_entities_at_most() {
    let server = serve_table();
    let client = server.client();
    for partition in ["a", "b", "c"] {
        fill(&client, partition, 850);
    }
    let all = pages(&client, &[]);
    assert_eq!(all.iter().map(|page| page.values().len()).collect::<Vec<_>>(), [1000, 1000, 550]);
    assert_eq!(keys(&all).len(), 2550);
    assert!(keys(&all).windows(2).all(|pair| pair[0] < pair[1]), "in order, none twice");
    let filtered = pages(&client, &[("$filter", "N ge 400 and N lt 410")]);
    assert_eq!(keys(&filtered).len(), 30);
    assert_eq!(
        pages(&client, &[("$filter", "PartitionKey eq 'b'"), ("$top", "850")]).len(),
        1,
        "no token after the last"
    );
}

#[test]
fn q9_the_token_has_the_service_s_shape_and_names_the_next_entity() {
    let server = serve_table();
    let client = server.client();
    // Keys whose base64 would need more than letters and digits, and one that is empty.
    let keys = ["~~~", "z", "日本", "Größe", "", "a", "😀 x"];
    for key in keys {
        client.insert("tab", key, key, "");
    }
    let mut expected = keys.to_vec();
    expected.sort_by_key(|key| key.encode_utf16().collect::<Vec<_>>());
    let all = pages(&client, &[("$top", "1")]);
    assert_eq!(all.iter().flat_map(|page| page.column("RowKey")).collect::<Vec<_>>(), expected);
    for (page, next) in all.iter().zip(&expected[1..]) {
        for name in ["x-ms-continuation-NextPartitionKey", "x-ms-continuation-NextRowKey"] {
            let token = page.header(name).expect("a token");
            let mut parts = token.splitn(3, '!');
            assert_eq!(parts.next(), Some("1"), "{token} before {next}");
            let length: usize = parts.next().and_then(|length| length.parse().ok()).expect("a length");
            assert_eq!(parts.next().map(str::len), Some(length), "{token} before {next}");
            assert!(token.is_ascii() && !token.contains(['+', '/', '=', ' ']), "{token} before {next}");
        }
    }
}

#[test]
fn q7_top_at_and_past_its_limits() {
    let server = serve_table();
    let client = server.client();
    fill(&client, "p", 5);
    let top = |value: &str| client.get("/tab()").query("$top", value).send();
    let zero = top("0");
    assert_eq!((zero.status, zero.values().len()), (200, 0));
    assert_eq!(zero.header("x-ms-continuation-NextPartitionKey"), None);
    assert_eq!(top("3").values().len(), 3);
    assert!(top("3").header("x-ms-continuation-NextPartitionKey").is_some());
    let exact = top("5");
    assert_eq!((exact.values().len(), exact.header("x-ms-continuation-NextPartitionKey")), (5, None));
    top("1000").is_status(200);
    for value in ["1001", "-1", "x", "1.5", "99999999999999999999"] {
        let reply = top(value);
        reply.is_error(400, "InvalidInput");
    }
    assert_eq!(top("1001").message(), "One of the request inputs is not valid.");
}

#[test]
fn a_token_without_its_row_key_resumes_at_the_partition() {
    let server = serve_table();
    let client = server.client();
    fill(&client, "a", 3);
    fill(&client, "b", 3);
    let first = client.get("/tab()").query("$top", "4").send();
    let partition = first.header("x-ms-continuation-NextPartitionKey").expect("a token");
    for row in [None, Some("")] {
        let request = client.get("/tab()").query("NextPartitionKey", partition);
        let request = row.map_or(request.clone(), |row| request.query("NextRowKey", row));
        assert_eq!(request.send().column("PartitionKey"), ["b", "b", "b"], "{row:?}");
    }
}

#[test]
fn a_token_that_is_none_is_refused() {
    let server = serve_table();
    let client = server.client();
    fill(&client, "a", 3);
    for token in ["1!", "1!3!a", "2!4!YQ--", "x!4!YQ--", "1!4!****", "1!99!YQ--", "1!8!////////"] {
        let reply = client.get("/tab()").query("NextPartitionKey", token).query("NextRowKey", token).send();
        assert_eq!(reply.status, 400, "{token}: {reply}");
    }
}

#[test]
fn q9_a_saved_token_works_after_a_restart() {
    let folder = tempfile::tempdir().expect("a folder");
    let launch = larimar_testkit::Launch::new(env!("CARGO_BIN_EXE_larimar"), folder.path().join("data"));
    let server = launch.start();
    let client = server.client();
    client.create_table("tab");
    fill(&client, "p", 10);
    let first = client.get("/tab()").query("$top", "4").send();
    let token = |name: &str| first.header(name).expect("a token").to_owned();
    let (partition, row) = (token("x-ms-continuation-NextPartitionKey"), token("x-ms-continuation-NextRowKey"));
    let (launch, _) = server.stop();
    let server = launch.start();
    let client = server.client();
    let rest = client.get("/tab()").query("NextPartitionKey", &partition).query("NextRowKey", &row).send();
    assert_eq!(rest.column("RowKey"), ["r0004", "r0005", "r0006", "r0007", "r0008", "r0009"]);
}

#[test]
fn q1_to_q5_cost_follows_the_ranges_of_the_plan() {
    let server = serve_table();
    let client = server.client();
    fill(&client, "a", 300);
    fill(&client, "b", 300);
    let read = || -> u64 {
        let request = b"GET /metrics HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n";
        let reply = larimar_testkit::http::exchange(server.admin_address(), request).expect("metrics");
        let lines = reply.text().lines().filter(|line| line.contains("rows_read") && !line.starts_with('#'));
        lines.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok()).sum::<f64>() as u64
    };
    for (filter, found, rows_max) in [
        ("PartitionKey eq 'a' and RowKey eq 'r0007'", 1, 2),
        ("PartitionKey eq 'a' and RowKey ge 'r0010' and RowKey lt 'r0020'", 10, 11),
        ("PartitionKey eq 'a' and (RowKey eq 'r0000' or RowKey eq 'r0299')", 2, 4),
        ("(PartitionKey eq 'a' and RowKey eq 'r0001') or (PartitionKey eq 'b' and RowKey eq 'r0299')", 2, 4),
        ("PartitionKey eq 'a' and N eq 5", 1, 301),
        ("PartitionKey eq 'a' and PartitionKey eq 'b'", 0, 0),
    ] {
        let before = read();
        assert_eq!(client.get("/tab()").query("$filter", filter).send().values().len(), found, "{filter}");
        assert!(read() - before <= rows_max, "{filter} read {} rows", read() - before);
    }
    let before = read();
    assert_eq!(
        client.get("/tab()").query("$filter", "PartitionKey eq 'b'").query("$top", "3").send().values().len(),
        3
    );
    assert!(read() - before <= 4, "q10: the first n rows cost n rows, not {}", read() - before);
}

#[test]
fn q9_a_page_ends_before_its_answer_is_too_large() {
    let server = serve_table();
    let client = server.client();
    let filler = format!(r#""V":"{}""#, "x".repeat(30_000));
    for chunk in 0..4 {
        let batch = (0..60)
            .fold(Batch::new(), |batch, row| batch.insert(&client, "tab", "p", &format!("{chunk}{row:02}"), &filler));
        assert_eq!(batch.send(&client).statuses(), [204; 60]);
    }
    let all = pages(&client, &[]);
    assert!(all.len() > 1, "7 MB do not come in one page");
    assert!(all.iter().all(|page| page.body.len() <= 5 << 20), "a page is too large");
    assert_eq!(keys(&all).len(), 240);
}
