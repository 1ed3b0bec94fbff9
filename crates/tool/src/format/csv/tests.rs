//! Entities through CSV and back, and files that are wrong.

use super::*;
use crate::format::samples::{any_entities, comparable};
use crate::format::{FormatError, Record, Shape};
use larimar_model::EdmType;
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::io::Cursor;

fn write(entities: &[DynamicEntity], is_formula_safe: bool) -> Vec<u8> {
    let names: BTreeSet<_> = entities.iter().flat_map(|entity| entity.properties().map(|(name, _)| name)).collect();
    let writer = CsvWriter::new(true, is_formula_safe);
    let mut out = Vec::new();
    writer.header(&mut out, names.iter().copied());
    for entity in entities {
        writer.keys(&mut out, entity);
        for name in &names {
            out.push(b',');
            match entity.value(name) {
                Some(value) => writer.value(&mut out, value),
                None => out.extend_from_slice(writer.absent()),
            }
        }
        out.extend_from_slice(b"\r\n");
    }
    out
}

fn records(csv: impl Into<Vec<u8>>, shape: Shape) -> Result<Vec<Record>, FormatError> {
    let mut reader = CsvReader::open(Box::new(Cursor::new(csv.into())), shape)?;
    std::iter::from_fn(|| reader.next().transpose()).collect()
}

fn keyed() -> Shape {
    let (partition, row) = ("{k}".parse().expect("a template"), "{#}".parse().expect("a template"));
    Shape { keys: crate::format::keys::Keys { partition, row }, ..Shape::default() }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(80))]

    #[test]
    fn every_entity_survives_csv(entities in any_entities(), is_formula_safe: bool) {
        let csv = write(&entities, is_formula_safe);
        let read = records(csv, Shape { is_formula_safe, ..Shape::default() }).expect("CSV");
        let read: Vec<_> = read.into_iter().map(|record| record.entity.expect("an entity")).collect();
        prop_assert_eq!(comparable(&read), comparable(&entities));
    }

    #[test]
    fn reading_goes_on_at_any_row(entities in any_entities(), at in 0_usize..20) {
        let csv = write(&entities, false);
        let all = records(csv.clone(), Shape::default()).expect("CSV");
        if let Some(record) = all.get(at) {
            let mut reader = CsvReader::open(Box::new(Cursor::new(csv.clone())), Shape::default()).expect("CSV");
            let rest = csv[usize::try_from(record.end.offset).expect("few bytes")..].to_vec();
            reader.restart(Box::new(Cursor::new(rest)), record.end);
            let rest: Vec<_> = std::iter::from_fn(|| reader.next().expect("CSV")).collect();
            prop_assert_eq!(format!("{rest:?}"), format!("{:?}", &all[at + 1..]));
        }
    }

    #[test]
    fn any_bytes_are_read_or_refused(bytes: Vec<u8>) {
        let csv = [b"k,a\n".to_vec(), bytes.clone()].concat();
        let _ = records(csv.clone(), keyed());
        let _ = infer(Cursor::new(csv), u64::MAX);
        let _ = records(bytes, keyed());
    }
}

#[test]
fn what_storage_explorer_writes_is_read() {
    let csv = "PartitionKey,RowKey,Timestamp,Age,Age@type,Name,Name@type\n\
               p,r1,2024-01-02T03:04:05.678Z,5,Edm.Int64,,Edm.String\n\
               p,r2,2024-01-02T03:04:05.678Z,,,\"a,b\",Edm.String\n";
    let read = records(csv, Shape::default()).expect("CSV");
    let entities: Vec<_> = read.into_iter().map(|record| record.entity.expect("an entity")).collect();
    let expected = [
        DynamicEntity::new("p", "r1").with("Age", 5_i64).with("Name", ""),
        DynamicEntity::new("p", "r2").with("Name", "a,b"),
    ];
    assert_eq!(entities, expected);
}

#[test]
fn marks_line_ends_and_quotes_of_spreadsheets_are_read() {
    for csv in ["\u{feff}k,a\r\nx,\"1\r\n2\"\r\n\r\ny,\"\"\"q\"\"\"", "k,a\nx,\"1\r\n2\"\ny,\"\"\"q\"\"\"\n"] {
        let read = records(csv, keyed()).expect("CSV");
        let rows: Vec<_> =
            read.iter().map(|record| (record.line, record.entity.as_ref().expect("an entity"))).collect();
        assert_eq!(rows[0].1.value("a"), Some(&Value::from("1\r\n2")));
        assert_eq!(rows[1].1.value("a"), Some(&Value::from("\"q\"")));
        assert_eq!(rows[0].0, 2);
        assert_eq!(rows[1].0, if csv.contains("\r\n\r\n") { 5 } else { 4 });
        assert_eq!(rows[1].1.row_key, "2");
    }
}

#[test]
fn wrong_rows_are_named_by_their_lines() {
    let mut shape = keyed();
    shape.types.insert("n".to_owned(), Some(EdmType::Int32));
    shape.types.insert("gone".to_owned(), None);
    let csv = b"k,n,gone\r\na,1,x\r\nb,one,x\r\nc,2\r\nd/e,2,x\r\n,2,x\r\nf,\xff,x\r\ng,3,x\r\n";
    let read = records(csv, shape).expect("CSV");
    let reasons: Vec<_> = read
        .iter()
        .map(|record| (record.line, record.entity.as_ref().err().map_or("", |refused| refused.reason.as_str())))
        .collect();
    assert_eq!(
        reasons,
        [
            (2, ""),
            (3, "expected Edm.Int32 in 'n', found 'one'"),
            (4, "expected 3 columns, found 2"),
            (5, "PartitionKey 'd/e': expected no '/', '\\', '#', '?' or control character"),
            (6, "expected a value in 'k', which the key needs"),
            (7, "expected UTF-8"),
            (8, ""),
        ]
    );
    let entity = read[0].entity.as_ref().expect("an entity");
    assert_eq!(entity.properties().map(|(name, _)| name).collect::<Vec<_>>(), ["k", "n"]);
}

#[test]
fn files_that_cannot_be_read_say_why() {
    let refused = |csv: &[u8]| records(csv, keyed()).map(drop).expect_err("refused").to_string();
    assert!(refused(b"").contains("found an empty file"));
    assert!(refused(b"a,b\n1,2\n").contains("expected a column 'k'"));
    assert!(refused(b"k,a,a\n").contains("line 1: expected each column once, found 'a' again"));
    assert!(refused(b"k,a b,a-b\n").contains("would both be the property 'a_b'"));
    assert!(refused(b"\xff\xfek\0").contains("UTF-16"));
    assert!(refused(format!("k{}\n", ",x".repeat(5000)).as_bytes()).contains("at most 4096 columns"));
}

/// Without end, as a file of many gigabytes.
struct Endless;

impl std::io::Read for Endless {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        buffer.fill(b'x');
        Ok(buffer.len())
    }
}

#[test]
fn a_record_without_end_is_refused_by_its_line() {
    let input = std::io::Read::chain(Cursor::new(b"k,a\nx,1\ny,\"".to_vec()), Endless);
    let mut reader = CsvReader::open(Box::new(input), keyed()).expect("a header");
    assert!(reader.next().expect("a row").is_some());
    let refused = reader.next().map(drop).expect_err("refused").to_string();
    assert_eq!(refused, "line 3: expected a record of at most 16 MiB: perhaps a quote is not closed");
}

#[test]
fn formulas_are_written_as_texts() {
    let entity = DynamicEntity::new("=p", "-r").with("A", "=1+1").with("B", -1).with("C", "'x").with("D", "plain");
    let csv = String::from_utf8(write(&[entity], true)).expect("UTF-8");
    assert_eq!(csv.lines().nth(1), Some("'=p,'-r,,'=1+1,Edm.String,-1,Edm.Int32,''x,Edm.String,plain,Edm.String"));
}

#[test]
fn a_quote_that_is_not_closed_does_not_swallow_the_rest() {
    for csv in ["k,a\n1,\"open\n2,x\n", "k,a\r\n1,\"open\r\n", "k,\"a\nb\n"] {
        let refused = records(csv, keyed()).expect_err("refused").to_string();
        assert!(refused.contains("expected a closing quote"), "{csv:?}: {refused}");
    }
    for csv in ["k,a\n1,\"two\nlines\"\n", "k,a\n1,\"x\n\"", "k,a\n1,x", "k,a\n1,x\r\n\r\n", "k,a\n"] {
        assert!(records(csv, keyed()).is_ok(), "{csv:?}");
    }
}

#[test]
fn other_separators_are_named() {
    for (csv, word) in [("k;a\n1;2\n", "semicolons"), ("k\ta\n", "tabs")] {
        let refused = records(csv, keyed()).expect_err("refused").to_string();
        assert!(refused.contains(word), "{refused}");
    }
    let refused = records("a;b,c\n", keyed()).expect_err("refused").to_string();
    assert!(!refused.contains("semicolons"), "{refused}");
}
