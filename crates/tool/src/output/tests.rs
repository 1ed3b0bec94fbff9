//! Tests of the output: tables, CSV, and data that contains control characters.

use super::*;
use larimar_client::DynamicEntity;
use std::sync::{Arc, Mutex};

/// A writer whose text can be read afterwards.
#[derive(Clone, Default)]
struct Sink(Arc<Mutex<Vec<u8>>>);

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().expect("no panic").extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

fn printed<R: Record>(format: Format, width: Option<usize>, records: &[R]) -> (String, Vec<String>) {
    let sink = Sink::default();
    let mut output = Output::new(format, width, width.is_some(), Box::new(sink.clone()));
    for record in records {
        output.write(record).expect("written");
    }
    let hidden = output.finish().expect("written");
    let bytes = sink.0.lock().expect("no panic").clone();
    (String::from_utf8(bytes).expect("text"), hidden)
}

fn people() -> Vec<DynamicEntity> {
    vec![
        DynamicEntity::new("Sales", "1").with("Name", "Don").with("Age", 7),
        DynamicEntity::new("Marketing", "2").with("Name", "Zoë").with("Age", 41).with("Email", "z@x"),
    ]
}

#[test]
fn a_table_is_aligned_with_numbers_on_the_right() {
    let (text, hidden) = printed(Format::Table, Some(80), &people());
    let expected = "\
PartitionKey  RowKey  Age  Name  Email
Sales         1         7  Don
Marketing     2        41  Zoë   z@x
";
    assert_eq!((text.as_str(), hidden), (expected, vec![]));
}

#[test]
fn a_narrow_terminal_cuts_wide_columns_and_then_leaves_out_the_last() {
    let long = DynamicEntity::new("a-partition-key-of-some-length", "a-row-key-of-some-length-too")
        .with("A", "x".repeat(50))
        .with("B", 1)
        .with("C", "y".repeat(50));
    let (text, hidden) = printed(Format::Table, Some(60), std::slice::from_ref(&long));
    assert!(text.lines().all(|line| layout::width(line) <= 60), "{text}");
    assert!(text.contains('…') && hidden.is_empty(), "{text}");
    let (text, hidden) = printed(Format::Table, Some(20), &[long]);
    assert!(text.lines().all(|line| layout::width(line) <= 20), "{text}");
    assert_eq!(hidden, ["A", "B", "C"]);
}

#[test]
fn data_cannot_send_commands_to_a_terminal() {
    let evil = DynamicEntity::new("p", "r").with("A", "\u{1b}[2J\u{9b}31m\u{202e}x\ny\u{7f}").with("B", "日本");
    for format in [Format::Table, Format::Csv, Format::Json] {
        let (text, _) = printed(format, Some(200), std::slice::from_ref(&evil));
        let is_safe = |character: char| !character.is_control() || character == '\n';
        assert!(text.chars().all(is_safe), "{text:?}");
        assert_eq!(text.lines().count(), if format == Format::Json { 1 } else { 2 }, "{text:?}");
    }
    let (table, _) = printed(Format::Table, Some(200), &[evil]);
    assert!(table.contains("\\u{1b}[2J\\u{9b}31m\\u{202e}x\\ny\\u{7f}"), "{table}");
}

#[test]
fn csv_has_a_header_and_quotes_what_needs_it() {
    let records = [DynamicEntity::new("p", "1").with("A", "x,\"y\"\nz"), DynamicEntity::new("p", "2").with("B", 1)];
    let (text, _) = printed(Format::Csv, None, &records);
    assert_eq!(text, "PartitionKey,RowKey,A,B\np,1,\"x,\"\"y\"\"\nz\",\np,2,,1\n");
}

#[test]
fn columns_that_come_late_are_reported() {
    let mut records = vec![DynamicEntity::new("p", "1"); HELD_ROWS_MAX];
    records.push(DynamicEntity::new("p", "2").with("Late", 1));
    for format in [Format::Csv, Format::Table] {
        let (text, hidden) = printed(format, None, &records);
        assert_eq!((text.lines().count(), hidden), (HELD_ROWS_MAX + 2, vec!["Late".to_owned()]));
    }
    let (_, hidden) = printed(Format::Json, None, &records);
    assert!(hidden.is_empty());
}

#[test]
fn an_empty_answer_prints_nothing_but_the_header_of_csv() {
    let none: [DynamicEntity; 0] = [];
    assert_eq!(printed(Format::Table, Some(80), &none).0, "");
    assert_eq!(printed(Format::Json, None, &none).0, "");
    let sink = Sink::default();
    let output = Output::new(Format::Csv, None, false, Box::new(sink.clone())).with_columns(["Name"]);
    assert!(output.finish().expect("written").is_empty());
    assert_eq!(sink.0.lock().expect("no panic").as_slice(), b"Name\n");
}
