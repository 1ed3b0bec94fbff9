//! Tests of writing entities: recorded shapes at each level, and what is written reads back.

use super::*;
use crate::table::entity_json;
use larimar_model::{Entity, EntityBody, Guid, Timestamp, Value};

const SENT: &str = r#"{"PartitionKey":"p@","RowKey":"r'\"","s":"x\ny","i":5,"l@odata.type":"Edm.Int64","l":"7","d":3.0,"n@odata.type":"Edm.Double","n":"NaN","b":true,"t@odata.type":"Edm.DateTime","t":"1973-10-04T00:00:00Z","g@odata.type":"Edm.Guid","g":"c9da6455-213d-42c9-9a79-3e9149a57833","y@odata.type":"Edm.Binary","y":"YmluYXJ5"}"#;

fn entity() -> Entity {
    entity_json::parse_new(SENT.as_bytes()).expect("an entity")
}

fn row(entity: &Entity) -> Row<'_> {
    let version = Timestamp::parse("2022-05-06T00:31:05.0707164Z").expect("a time");
    Row { partition: entity.key.partition.as_str(), row: entity.key.row.as_str(), version, body: entity.body() }
}

fn single(level: MetadataLevel, select: &Select) -> String {
    let entity = entity();
    let mut out = Vec::new();
    let writer = EntityWriter { base: "http://127.0.0.1:10002/acct", account: "acct", table: "T1x", level, select };
    writer.write_single(&mut out, &row(&entity));
    String::from_utf8(out).expect("text")
}

#[test]
fn without_metadata_there_are_only_values() {
    assert_eq!(
        single(MetadataLevel::None, &Select::All),
        r#"{"PartitionKey":"p@","RowKey":"r'\"","Timestamp":"2022-05-06T00:31:05.0707164Z","s":"x\ny","i":5,"l":"7","d":3.0,"n":"NaN","b":true,"t":"1973-10-04T00:00:00Z","g":"c9da6455-213d-42c9-9a79-3e9149a57833","y":"YmluYXJ5"}"#
    );
}

#[test]
fn minimal_metadata_has_the_etag_and_the_types_that_json_hides() {
    assert_eq!(
        single(MetadataLevel::Minimal, &Select::All),
        r#"{"odata.metadata":"http://127.0.0.1:10002/acct/$metadata#T1x/@Element","odata.etag":"W/\"datetime'2022-05-06T00%3A31%3A05.0707164Z'\"","PartitionKey":"p@","RowKey":"r'\"","Timestamp":"2022-05-06T00:31:05.0707164Z","s":"x\ny","i":5,"l@odata.type":"Edm.Int64","l":"7","d":3.0,"n@odata.type":"Edm.Double","n":"NaN","b":true,"t@odata.type":"Edm.DateTime","t":"1973-10-04T00:00:00Z","g@odata.type":"Edm.Guid","g":"c9da6455-213d-42c9-9a79-3e9149a57833","y@odata.type":"Edm.Binary","y":"YmluYXJ5"}"#
    );
}

#[test]
fn full_metadata_adds_links_and_the_type_of_timestamp() {
    let names = Select::Names(vec!["Timestamp".to_owned(), "i".to_owned()]);
    assert_eq!(
        single(MetadataLevel::Full, &names),
        r#"{"odata.metadata":"http://127.0.0.1:10002/acct/$metadata#T1x/@Element&$select=Timestamp,i","odata.type":"acct.T1x","odata.id":"http://127.0.0.1:10002/acct/T1x(PartitionKey='p%40',RowKey='r''%22')","odata.etag":"W/\"datetime'2022-05-06T00%3A31%3A05.0707164Z'\"","odata.editLink":"T1x(PartitionKey='p%40',RowKey='r''%22')","Timestamp@odata.type":"Edm.DateTime","Timestamp":"2022-05-06T00:31:05.0707164Z","i":5}"#
    );
}

#[test]
fn q8_a_selected_property_that_is_missing_is_null() {
    let names = Select::Names(vec!["Missing".to_owned(), "b".to_owned()]);
    assert_eq!(single(MetadataLevel::None, &names), r#"{"Missing":null,"b":true}"#);
}

#[test]
fn a_page_has_commas_between_its_entities() {
    let (entity, select) = (entity(), Select::Names(vec!["i".to_owned()]));
    let writer = EntityWriter { base: "b", account: "a", table: "T1x", level: MetadataLevel::None, select: &select };
    for (count, text) in [(0, r#"{"value":[]}"#), (2, r#"{"value":[{"i":5},{"i":5}]}"#)] {
        let mut out = Vec::new();
        writer.write_page_start(&mut out);
        (0..count).for_each(|_| writer.write_item(&mut out, &row(&entity)));
        writer.write_page_end(&mut out);
        assert_eq!(String::from_utf8(out).as_deref(), Ok(text));
    }
}

#[test]
fn what_is_written_reads_back_the_same() {
    let sent = entity();
    let read = entity_json::parse_new(single(MetadataLevel::Full, &Select::All).as_bytes()).expect("an entity");
    // NaN is equal to nothing, so the bodies are compared as bytes.
    assert_eq!((read.key.clone(), read.body().as_bytes()), (sent.key.clone(), sent.body().as_bytes()));
    let value = EntityBody::from_trusted(read.body().as_bytes()).get("g").map(ValueRef::to_value);
    assert_eq!(value, Some(Value::Guid(Guid::parse("c9da6455-213d-42c9-9a79-3e9149a57833").expect("a guid"))));
}

mod sizes {
    use super::*;
    use proptest::prelude::*;

    fn value() -> impl Strategy<Value = Value> {
        prop_oneof![
            "[\\x00-\u{24f}]{0,40}".prop_map(Value::String),
            prop::collection::vec(any::<u8>(), 0..40).prop_map(Value::Binary),
            any::<bool>().prop_map(Value::Boolean),
            any::<i32>().prop_map(Value::Int32),
            any::<i64>().prop_map(Value::Int64),
            any::<f64>().prop_map(Value::Double),
            (1601..9999u16).prop_map(|year| {
                let text = format!("{year:04}-12-31T23:59:59.9999999Z");
                Value::DateTime(Timestamp::parse(&text).expect("a time"))
            }),
            any::<u128>().prop_map(|bits| Value::Guid(Guid(bits.to_be_bytes()))),
        ]
    }

    proptest! {
        #[test]
        fn q9_an_entity_is_never_longer_than_its_size_was_told(
            partition in "[ -~\u{a1}-\u{24f}]{0,30}",
            row in "[ -~\u{4e00}-\u{4e10}]{0,30}",
            properties in prop::collection::btree_map("[a-zA-Z_\u{c0}-\u{d6}]{1,12}", value(), 0..8),
            base in "[a-z:/.\"]{0,20}",
        ) {
            let mut body = larimar_model::BodyBuilder::new();
            for (name, value) in &properties {
                body.push(name, value.as_ref()).expect("names and values are within their limits");
            }
            let body = body.into_bytes();
            let version = Timestamp::parse("2022-11-26T10:31:05.1234567Z").expect("a time");
            let row = Row { partition: &partition, row: &row, version, body: EntityBody::from_trusted(&body) };
            let names = Select::Names(properties.keys().cloned().chain(["Missing".to_owned()]).collect());
            for level in [MetadataLevel::None, MetadataLevel::Minimal, MetadataLevel::Full] {
                for select in [&Select::All, &names] {
                    let writer = EntityWriter { base: &base, account: "acct", table: "T1x", level, select };
                    let mut out = Vec::new();
                    writer.write_single(&mut out, &row);
                    let told = writer.single_bytes_max(&row);
                    prop_assert!(out.len() <= told, "{} of {told}", out.len());
                    let around = 1000 + properties.len() * 150 + properties.keys().map(String::len).sum::<usize>() * 3;
                    prop_assert!(told <= out.len() + around || select != &Select::All, "{told} for {}", out.len());
                }
            }
            let link = Link { table: "T1x", partition: &partition, row: row.row };
            prop_assert_eq!(link.bytes(), link.to_string().len());
        }
    }
}
