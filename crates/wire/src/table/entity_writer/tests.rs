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
