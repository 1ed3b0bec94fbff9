//! `$filter` (Q6): operators, literals, precedence, missing properties, types that differ, and refusals.

use super::serve_table;
use larimar_testkit::TemporaryServer;
use larimar_testkit::http::Client;

/// One property of each type; `bare` has none.
fn serve_rows() -> TemporaryServer {
    let server = serve_table();
    let client = server.client();
    let typed = |edm: &str, value: &str| format!(r#""V@odata.type":"Edm.{edm}","V":"{value}""#);
    for (row, members) in [
        ("bare", String::new()),
        ("binary", typed("Binary", "AAE=")),
        ("bool", r#""V":true"#.to_owned()),
        ("date", typed("DateTime", "2020-01-01T00:00:00.1234567Z")),
        ("double", r#""V":1.5"#.to_owned()),
        ("guid", typed("Guid", "c9da6455-213d-42c9-9a79-3e9149a57833")),
        ("int32", r#""V":5"#.to_owned()),
        ("int64", typed("Int64", "5")),
        ("string", r#""V":"it's""#.to_owned()),
    ] {
        client.insert("tab", "p", row, &members);
    }
    server
}

fn find(client: &Client, filter: &str) -> Vec<String> {
    let reply = client.get("/tab()").query("$filter", filter).send();
    assert_eq!(reply.status, 200, "{filter}: {reply}");
    reply.column("RowKey")
}

const TYPED: [&str; 8] = ["binary", "bool", "date", "double", "guid", "int32", "int64", "string"];

/// Those of the typed rows that are not these.
fn but(rows: &[&str]) -> Vec<String> {
    TYPED.iter().filter(|row| !rows.contains(row)).map(|row| (*row).to_owned()).collect()
}

#[test]
fn q6_every_literal_finds_its_type() {
    let server = serve_rows();
    let client = server.client();
    for (literal, rows) in [
        ("'it''s'", &["string"][..]),
        ("5", &["int32", "int64"]),
        ("5L", &["int64"]),
        ("1.5", &["double"]),
        ("15e-1", &["double"]),
        ("true", &["bool"]),
        ("datetime'2020-01-01T00:00:00.1234567Z'", &["date"]),
        ("guid'C9DA6455-213D-42C9-9A79-3E9149A57833'", &["guid"]),
        ("X'0001'", &["binary"]),
        ("x'0001'", &["binary"]),
        ("binary'0001'", &["binary"]),
    ] {
        assert_eq!(find(&client, &format!("V eq {literal}")), rows, "{literal}");
        assert_eq!(find(&client, &format!("{literal} eq V")), rows, "{literal} on the left");
    }
}

#[test]
fn a_value_of_another_type_counts_as_less() {
    let server = serve_rows();
    let client = server.client();
    // Against a string only the string row has an order; the others count as less than it.
    for (filter, rows) in [
        ("V eq 'it''s'", vec!["string".to_owned()]),
        ("V ne 'it''s'", but(&["string"])),
        ("V lt 'it''s'", but(&["string"])),
        ("V le 'a'", but(&["string"])),
        ("V gt 'a'", vec!["string".to_owned()]),
        ("V ge 'z'", vec![]),
    ] {
        assert_eq!(find(&client, filter), rows, "{filter}");
    }
    // The literal may be widened to the property's type, never the other way round.
    assert_eq!(find(&client, "V ge 5L"), ["int64"]);
    assert_eq!(find(&client, "V gt 1"), ["double", "int32", "int64"]);
    assert_eq!(find(&client, "V ge 1.0"), ["double"]);
    assert_eq!(find(&client, "V ne 5L"), but(&["int64"]));
}

#[test]
fn q6_every_operator_on_every_ordered_type() {
    let server = serve_table();
    let client = server.client();
    for (row, value) in [("1", 10), ("2", 20), ("3", 30)] {
        let members = format!(
            r#""I":{value},"S":"{value}","D":{value}.5,"L@odata.type":"Edm.Int64","L":"{value}","W@odata.type":"Edm.DateTime","W":"20{value}-01-01T00:00:00Z","G@odata.type":"Edm.Guid","G":"{value}000000-0000-0000-0000-000000000000","B":{}"#,
            value > 10
        );
        client.insert("tab", "p", row, &members);
    }
    for literal in [
        "I OP 20",
        "S OP '20'",
        "D OP 20.5",
        "L OP 20L",
        "W OP datetime'2020-01-01T00:00:00Z'",
        "G OP guid'20000000-0000-0000-0000-000000000000'",
        "RowKey OP '2'",
    ] {
        for (operator, rows) in [
            ("eq", &["2"][..]),
            ("ne", &["1", "3"]),
            ("lt", &["1"]),
            ("le", &["1", "2"]),
            ("gt", &["3"]),
            ("ge", &["2", "3"]),
        ] {
            let filter = literal.replace("OP", operator);
            assert_eq!(find(&client, &filter), rows, "{filter}");
        }
    }
    assert_eq!(find(&client, "B"), ["2", "3"]);
    assert_eq!(find(&client, "not B"), ["1"]);
    assert_eq!(find(&client, "B eq false"), ["1"]);
    assert_eq!(find(&client, "I"), Vec::<String>::new(), "a number is not true");
}

#[test]
fn q6_precedence_parentheses_and_not() {
    let server = serve_table();
    let client = server.client();
    for (row, a, b, c) in [("1", 1, 0, 0), ("2", 0, 1, 1), ("3", 0, 1, 0), ("4", 0, 0, 0)] {
        client.insert("tab", "p", row, &format!(r#""A":{a},"B":{b},"C":{c}"#));
    }
    for (filter, rows) in [
        ("A eq 1 or B eq 1 and C eq 1", &["1", "2"][..]),
        ("(A eq 1 or B eq 1) and C eq 1", &["2"]),
        ("not A eq 1 and B eq 1", &["2", "3"]),
        ("not (A eq 1 or B eq 1)", &["4"]),
        ("not(A eq 1)", &["2", "3", "4"]),
        ("(((A eq 1)))", &["1"]),
        ("  A   eq  1  ", &["1"]),
        ("true", &["1", "2", "3", "4"]),
        ("false", &[]),
        ("A eq 1 or true", &["1", "2", "3", "4"]),
        ("(A eq 1) and (B eq 0)", &["1"]),
    ] {
        assert_eq!(find(&client, filter), rows, "{filter}");
    }
}

#[test]
fn a_missing_property_is_unlike_everything_but_not_turns_that() {
    let server = serve_rows();
    let client = server.client();
    for filter in ["Missing eq 'x'", "Missing ne 'x'", "Missing lt 5", "Missing ge 5", "Missing", "Missing eq true"] {
        assert_eq!(find(&client, filter), Vec::<String>::new(), "{filter}");
        assert_eq!(find(&client, &format!("not ({filter})")).len(), 9, "not ({filter})");
    }
    assert_eq!(find(&client, "not (V ne 'x')"), ["bare"]);
}

#[test]
fn the_timestamp_can_be_filtered() {
    let server = serve_table();
    let client = server.client();
    client.insert("tab", "p", "1", "");
    let timestamp = client.get("/tab()").send().values()[0]["Timestamp"].as_str().expect("a time").to_owned();
    client.insert("tab", "p", "2", "");
    assert_eq!(find(&client, &format!("Timestamp eq datetime'{timestamp}'")), ["1"]);
    assert_eq!(find(&client, &format!("Timestamp gt datetime'{timestamp}'")), ["2"]);
    assert_eq!(find(&client, "Timestamp lt datetime'2000-01-01T00:00:00Z'"), Vec::<String>::new());
}

#[test]
fn an_empty_filter_is_no_filter() {
    let server = serve_rows();
    let client = server.client();
    for path in [
        "/tab()?$filter=",
        "/tab()?%24filter=",
        "/tab()?$filter=&$select=&$top=1000",
        "/tab()?$filter=V%20eq%205&$filter=",
    ] {
        let reply = client.get(path).send();
        assert!(reply.status == 200 || path.matches("filter").count() == 2, "{path}: {reply}");
    }
    assert_eq!(client.get("/tab()?$filter=").send().values().len(), 9);
    // Go writes spaces as plus signs.
    assert_eq!(client.get("/tab()?%24filter=V+eq+5L").send().column("RowKey"), ["int64"]);
}

#[test]
fn what_is_no_filter_is_refused_with_its_code() {
    let server = serve_rows();
    let client = server.client();
    let refuse = |filter: &str| client.get("/tab()").query("$filter", filter).send();
    let reply = refuse("aaa bbb ccc");
    reply.is_error(400, "InvalidInput");
    assert_eq!(reply.message(), "Syntax error at position 7 in 'aaa bbb ccc'.");
    for filter in [
        "V eq",
        "eq 5",
        "V eq 'x",
        "(V eq 5",
        "V eq 5)",
        "V eq 5 and",
        "V = 5",
        "V eq \"x\"",
        "V EQ 5",
        "V eq 5 5",
        "and",
    ] {
        refuse(filter).is_error(400, "InvalidInput");
    }
    for filter in ["1", "'x'", "5L", "1.5"] {
        let reply = refuse(filter);
        reply.is_error(400, "InvalidInput");
        assert_eq!(reply.message(), "The $filter expression must evaluate to a single boolean value.", "{filter}");
    }
    refuse("V eq null").is_error(400, "InvalidInput");
    for filter in ["V eq RowKey", "1 eq 2", "startswith(V,'a')", "substringof('a',V)", "length(V) eq 3", "V add 1 eq 2"]
    {
        refuse(filter).is_error(501, "NotImplemented");
    }
}

#[test]
fn a_filter_of_fifty_comparisons_is_accepted() {
    let server = serve_rows();
    let client = server.client();
    let filter = (0..51).map(|i| format!("V eq {i}")).collect::<Vec<_>>().join(" or ");
    assert_eq!(find(&client, &filter), ["int32", "int64"]);
    let keys = (0..300).map(|i| format!("RowKey eq 'x{i}'")).collect::<Vec<_>>().join(" or ");
    assert_eq!(find(&client, &format!("PartitionKey eq 'p' and ({keys} or RowKey eq 'guid')")), ["guid"]);
}
