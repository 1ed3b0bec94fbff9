//! Entities through JSON lines and back, and files that are wrong.

use super::*;
use crate::format::samples::{any_entities, comparable};
use proptest::prelude::*;
use std::io::Cursor;

fn records(json: impl Into<Vec<u8>>) -> Result<Vec<Record>, FormatError> {
    let mut reader = JsonReader::open(Box::new(Cursor::new(json.into())), Shape::default())?;
    std::iter::from_fn(|| reader.next().transpose()).collect()
}

fn entities(json: impl Into<Vec<u8>>) -> Vec<DynamicEntity> {
    records(json).expect("JSON").into_iter().map(|record| record.entity.expect("an entity")).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(80))]

    #[test]
    fn every_entity_survives_json(written in any_entities(), form in 0..4) {
        let mut lines = Vec::new();
        written.iter().for_each(|entity| write_line(&mut lines, entity));
        let lines = String::from_utf8(lines).expect("UTF-8");
        let array = lines.trim_end().replace('\n', ",\r\n ");
        let json = match form {
            0 => lines,
            1 => format!("[{array}]"),
            2 => format!("{{\"odata.metadata\":\"x\", \"value\" : [{array}]}}\n"),
            _ => format!("\u{feff}\r\n{}", lines.replace('\n', "\r\n\n")),
        };
        prop_assert_eq!(comparable(&entities(json)), comparable(&written));
    }

    #[test]
    fn any_text_is_read_or_refused(text: String) {
        let _ = records(text.clone());
        let _ = records(format!("[{text}"));
    }
}

#[test]
fn types_stand_before_or_after_their_values_and_null_is_absent() {
    let json =
        r#"{"PartitionKey":"p","RowKey":"r","A@odata.type":"Edm.Int64","A":"5","B":"5","B@type":"Edm.Int64","C":null,
"#
        .replace('\n', "")
            + r#""D":5000000000,"odata.etag":"x","Timestamp":"2024-01-02T03:04:05Z"}"#;
    let expected = DynamicEntity::new("p", "r").with("A", 5_i64).with("B", 5_i64).with("D", 5_000_000_000_i64);
    assert_eq!(entities(json), [expected]);
}

#[test]
fn wrong_lines_are_named_and_the_rest_is_read() {
    let good = r#"{"PartitionKey":"p","RowKey":"r"}"#;
    let json = format!(
        "{good}\n{{\"PartitionKey\":\n\nnull\n{{\"PartitionKey\":\"p\",\"RowKey\":\"r\",\"A\":[1]}}\n\
         {{\"PartitionKey\":\"p\",\"RowKey\":\"r\",\"A@odata.type\":\"Edm.Guid\",\"A\":\"x\"}}\n{good}"
    );
    let read = records(json).expect("JSON");
    let lines: Vec<_> = read.iter().map(|record| (record.line, record.entity.is_ok())).collect();
    assert_eq!(lines, [(1, true), (2, false), (4, false), (5, false), (6, false), (7, true)]);
    let reason = |index: usize| read[index].entity.as_ref().expect_err("refused").reason.clone();
    assert!(reason(3).contains("a text, a number, true, false or null"), "{}", reason(3));
    assert_eq!(reason(4), "expected Edm.Guid in 'A'");
}

#[test]
fn reading_goes_on_at_any_row() {
    let line = |row: usize| format!("{{\"PartitionKey\":\"p\",\"RowKey\":\"{row}\"}}");
    let lines: Vec<_> = (0..5).map(line).collect();
    for json in [lines.join("\r\n"), format!("{{\"value\":[{}]}}", lines.join(",\n"))] {
        let all = records(json.clone()).expect("JSON");
        for (at, record) in all.iter().enumerate() {
            let mut reader = JsonReader::open(Box::new(Cursor::new(json.clone())), Shape::default()).expect("JSON");
            let rest = json.as_bytes()[usize::try_from(record.end.offset).expect("few bytes")..].to_vec();
            reader.restart(Box::new(Cursor::new(rest)), record.end);
            let rest: Vec<_> = std::iter::from_fn(|| reader.next().expect("JSON")).collect();
            assert_eq!(format!("{rest:?}"), format!("{:?}", &all[at + 1..]));
        }
    }
}

#[test]
fn a_line_without_end_is_refused_and_does_not_fill_the_memory() {
    let long = std::io::Read::take(std::io::repeat(b'x'), 3 * RECORD_BYTES_MAX as u64);
    let after = Cursor::new(b"\n{\"PartitionKey\":\"p\",\"RowKey\":\"r\"}\n".to_vec());
    let mut reader = JsonReader::open(Box::new(std::io::Read::chain(long, after)), Shape::default()).expect("JSON");
    let refused = reader.next().expect("JSON").expect("a record").entity.expect_err("refused");
    assert_eq!(refused.reason, "expected a line of at most 16 MiB");
    assert!(refused.text.len() < 32 * 1024);
    assert!(reader.record.capacity() <= 2 * RECORD_BYTES_MAX);
    assert!(reader.next().expect("JSON").is_some_and(|record| record.entity.is_ok()));
}
