//! Entities through Parquet and back, and files that are wrong.

use super::*;
use crate::format::samples::{any_entities, comparable};
use crate::format::{FormatError, Record, Shape};
use larimar_client::{DynamicEntity, Timestamp, Value};
use proptest::prelude::*;
use std::fs::File;
use std::io::Seek as _;

/// Writes row groups of these sizes.
fn write(entities: &[DynamicEntity], group_rows: usize) -> File {
    let mut spool = Spool::new().expect("a spool");
    for rows in entities.chunks(group_rows) {
        let mut group = RowGroup::default();
        rows.iter().for_each(|entity| group.push(entity));
        spool.push(group.encode().expect("a row group")).expect("a disk");
    }
    let mut file = tempfile::tempfile().expect("a file");
    spool.finish(&mut file).expect("a file");
    file.rewind().expect("a file");
    file
}

fn records(file: File, shape: Shape, from: u64) -> Result<Vec<Record>, FormatError> {
    let mut reader = ParquetReader::open(file, shape, from)?;
    std::iter::from_fn(|| reader.next().transpose()).collect()
}

fn entities(file: File) -> Vec<DynamicEntity> {
    let records = records(file, Shape::default(), 0).expect("Parquet");
    records.into_iter().map(|record| record.entity.expect("an entity")).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn every_entity_survives_parquet(written in any_entities(), group_rows in 1_usize..8) {
        prop_assert_eq!(comparable(&entities(write(&written, group_rows))), comparable(&written));
    }

    #[test]
    fn reading_goes_on_at_any_row(written in any_entities(), group_rows in 1_usize..8, from in 0_u64..20) {
        let all = records(write(&written, group_rows), Shape::default(), 0).expect("Parquet");
        let rest = records(write(&written, group_rows), Shape::default(), from).expect("Parquet");
        let from = usize::try_from(from).expect("few rows").min(all.len());
        prop_assert_eq!(format!("{rest:?}"), format!("{:?}", &all[from..]));
    }
}

fn schema(file: &File) -> Vec<String> {
    use ::parquet::file::reader::FileReader as _;
    let file = file.try_clone().expect("a file");
    let reader = ::parquet::file::serialized_reader::SerializedFileReader::new(file).expect("Parquet");
    reader.metadata().file_metadata().schema_descr().columns().iter().map(|column| column.name().to_owned()).collect()
}

#[test]
fn columns_are_named_by_their_types_only_where_types_are_mixed() {
    let day: Timestamp = "2024-01-02".parse().expect("a time");
    let rows = [
        DynamicEntity::new("p", "1").with("A", 1).with("B", 1).with("C", day),
        DynamicEntity::new("p", "2").with("B", "x").with("C", day),
    ];
    let file = write(&rows, 1);
    assert_eq!(schema(&file), ["PartitionKey", "RowKey", "Timestamp", "A", "B@String", "B@Int32", "C"]);
    assert_eq!(comparable(&entities(file)), comparable(&rows));

    let rows = [rows[0].clone(), DynamicEntity::new("p", "2").with("C", Timestamp::MAX)];
    let file = write(&rows, 1);
    assert_eq!(schema(&file), ["PartitionKey", "RowKey", "Timestamp", "A", "B", "C", "C@ticks"]);
    assert_eq!(entities(file)[1].value("C"), Some(&Value::DateTime(Timestamp::MAX)));
}

#[test]
fn a_table_without_rows_is_a_file_without_rows() {
    let file = write(&[], 1);
    assert_eq!(schema(&file), ["PartitionKey", "RowKey", "Timestamp"]);
    assert!(entities(file).is_empty());
}

#[test]
fn what_is_not_parquet_is_refused() {
    let mut file = tempfile::tempfile().expect("a file");
    std::io::Write::write_all(&mut file, b"PartitionKey,RowKey\n").expect("a disk");
    assert!(records(file, Shape::default(), 0).is_err());
    let keys = crate::format::keys::Keys { partition: "{nope}".parse().expect("a template"), ..Default::default() };
    let refused = records(write(&[], 1), Shape { keys, ..Shape::default() }, 0).expect_err("refused").to_string();
    assert!(refused.contains("expected a column 'nope'"), "{refused}");
}

#[test]
fn pages_are_bounded_over_all_columns() {
    let rows = [DynamicEntity::new("p", "1").with("A", "x".repeat(30_000)).with("B", "y".repeat(30_000))];
    let open = |others: usize| {
        let reader = ParquetReader::open(write(&rows, 1), Shape::default(), 0).expect("Parquet");
        reader.held.store(others, std::sync::atomic::Ordering::Relaxed);
        reader
    };
    let mut reader = open(0);
    assert!(reader.next().expect("a row").is_some());
    let held = reader.held.load(std::sync::atomic::Ordering::Relaxed);
    assert!((60_000..100_000).contains(&held), "{held}");
    // Room for one of the columns, not for both.
    let mut reader = open(pages::PAGES_BYTES_MAX - 50_000);
    let refused = reader.next().expect_err("refused").to_string();
    assert!(refused.contains("column 'B': expected pages that have at most 1024 MiB together"), "{refused}");
}

/// A file with one column of texts in this encoding, in pages of this version.
fn encoded(encoding: ::parquet::basic::Encoding, version: WriterVersion) -> File {
    use ::parquet::data_type::{ByteArray, ByteArrayType};
    let schema = "message schema { required binary PartitionKey (STRING); optional binary RowKey (STRING); }";
    let schema = Arc::new(::parquet::schema::parser::parse_message_type(schema).expect("a schema"));
    let properties = WriterProperties::builder().set_dictionary_enabled(false).set_encoding(encoding);
    let properties = Arc::new(properties.set_writer_version(version).build());
    let mut file = tempfile::tempfile().expect("a file");
    let out = file.try_clone().expect("a file");
    let mut writer = ::parquet::file::writer::SerializedFileWriter::new(out, schema, properties).expect("a writer");
    let mut group = writer.next_row_group().expect("a row group");
    let keys: Vec<ByteArray> = (0..1_000).map(|row| ByteArray::from(format!("key {row:05}").as_str())).collect();
    for levels in [None, Some(vec![1; 1_000])] {
        let mut column = group.next_column().expect("a column").expect("a column");
        column.typed::<ByteArrayType>().write_batch(&keys, levels.as_deref(), None).expect("written");
        column.close().expect("closed");
    }
    group.close().expect("closed");
    writer.close().expect("closed");
    file.rewind().expect("a file");
    file
}

#[test]
fn delta_encodings_are_read() {
    use ::parquet::basic::Encoding;
    for encoding in [Encoding::PLAIN, Encoding::DELTA_LENGTH_BYTE_ARRAY, Encoding::DELTA_BYTE_ARRAY] {
        for version in [WriterVersion::PARQUET_1_0, WriterVersion::PARQUET_2_0] {
            let rows = entities(encoded(encoding, version));
            let keys = rows.iter().map(|row| (row.partition_key.clone(), row.row_key.clone()));
            assert!(keys.eq((0..1_000).map(|row| (format!("key {row:05}"), format!("key {row:05}")))), "{encoding}");
        }
    }
}
