//! Tests of reading entities, as tables of JSON and outcome.

use super::*;
use larimar_model::Value;
use proptest::prelude::*;

fn properties(json: &str) -> Result<Vec<(String, Value)>, (ErrorCode, String)> {
    let entity = parse_new(json.as_bytes()).map_err(|error| (error.code, error.message.into_owned()))?;
    Ok(entity.body().properties().map(|(name, value)| (name.to_owned(), value.to_value())).collect())
}

fn one(members: &str) -> Result<Value, ErrorCode> {
    let json = format!(r#"{{"PartitionKey":"p","RowKey":"r",{members}}}"#);
    let mut all = properties(&json).map_err(|error| error.0)?;
    assert_eq!(all.len(), 1, "{json}");
    Ok(all.remove(0).1)
}

#[test]
fn d3_every_type_is_read_in_each_of_its_forms() {
    let time = |text| Value::DateTime(Timestamp::parse(text).expect("a time"));
    for (members, value) in [
        (r#""a":"x""#, Value::String("x".into())),
        (r#""a":"x","a@odata.type":"Edm.String""#, Value::String("x".into())),
        (r#""a":"\ud83d\ude00\u0000""#, Value::String("\u{1F600}\0".into())),
        (r#""a":true"#, Value::Boolean(true)),
        (r#""a@odata.type":"Edm.Boolean","a":"false""#, Value::Boolean(false)),
        (r#""a":-5"#, Value::Int32(-5)),
        (r#""a":"7","a@odata.type":"Edm.Int32""#, Value::Int32(7)),
        (r#""a@odata.type":"Edm.Int64","a":"-9223372036854775808""#, Value::Int64(i64::MIN)),
        (r#""a@odata.type":"Edm.Int64","a":5"#, Value::Int64(5)),
        (r#""a":5.0"#, Value::Double(5.0)),
        (r#""a":1e3"#, Value::Double(1000.0)),
        (r#""a@odata.type":"Edm.Double","a":5"#, Value::Double(5.0)),
        (r#""a@odata.type":"Edm.Double","a":"-Infinity""#, Value::Double(f64::NEG_INFINITY)),
        (r#""a@odata.type":"Edm.Double","a":"2.5""#, Value::Double(2.5)),
        (r#""a@odata.type":"Edm.DateTime","a":"2008-07-10T00:00:00""#, time("2008-07-10")),
        (r#""a@odata.type":"Edm.DateTime","a":"9999-12-31T23:59:59.9999999Z""#, Value::DateTime(Timestamp::MAX)),
        (
            r#""a@odata.type":"Edm.Guid","a":"C9DA6455-213d-42c9-9a79-3e9149a57833""#,
            Value::Guid(Guid::parse("c9da6455-213d-42c9-9a79-3e9149a57833").expect("a guid")),
        ),
        (r#""a@odata.type":"Edm.Binary","a":"AQID""#, Value::Binary(vec![1, 2, 3])),
        (r#""a@odata.type":"Edm.Binary","a":"""#, Value::Binary(vec![])),
    ] {
        assert_eq!(one(members), Ok(value), "{members}");
    }
    assert!(matches!(one(r#""a@odata.type":"Edm.Double","a":"NaN""#), Ok(Value::Double(value)) if value.is_nan()));
}

#[test]
fn values_that_do_not_fit_their_type_are_refused() {
    for members in [
        r#""a":4294967296"#,
        r#""a":99999999999999999999999"#,
        r#""a":[1]"#,
        r#""a":{}"#,
        r#""a":1e999"#,
        r#""a@odata.type":"Edm.Int32","a":"x""#,
        r#""a@odata.type":"Edm.Int32","a":2147483648"#,
        r#""a@odata.type":"Edm.Int32","a":1.5"#,
        r#""a@odata.type":"Edm.Int64","a":"9223372036854775808""#,
        r#""a@odata.type":"Edm.Boolean","a":"yes""#,
        r#""a@odata.type":"Edm.Boolean","a":1"#,
        r#""a@odata.type":"Edm.Double","a":"x""#,
        r#""a@odata.type":"Edm.Double","a":"1e999""#,
        r#""a@odata.type":"Edm.Double","a":"infinity""#,
        r#""a@odata.type":"Edm.DateTime","a":"""#,
        r#""a@odata.type":"Edm.DateTime","a":5"#,
        r#""a@odata.type":"Edm.Guid","a":"x""#,
        r#""a@odata.type":"Edm.Binary","a":"*""#,
        r#""a@odata.type":"Edm.Decimal","a":"1""#,
        r#""a@odata.type":"Edm.String","a":1"#,
        r#""a":"\ud800""#,
    ] {
        assert_eq!(one(members), Err(ErrorCode::InvalidInput), "{members}");
    }
}

#[test]
fn d2_system_members_and_nulls_are_left_out() {
    let json = r#"{"odata.etag":"W/\"x\"","odata.metadata":"u","PartitionKey":"p","RowKey":"r","RowKey@odata.type":"Edm.String",
        "Timestamp":"nonsense","Timestamp@odata.type":"Edm.DateTime","timestamp":1,"gone":null,"gone2@odata.type":"Edm.Int64","gone2":null}"#;
    assert_eq!(properties(json), Ok(vec![("timestamp".to_owned(), Value::Int32(1))]));
}

#[test]
fn keys_must_be_strings_and_follow_their_rules() {
    for (json, code) in [
        (r#"{"RowKey":"r"}"#, ErrorCode::PropertiesNeedValue),
        (r#"{"PartitionKey":null,"RowKey":"r"}"#, ErrorCode::PropertiesNeedValue),
        (r#"{"PartitionKey":5,"RowKey":"r"}"#, ErrorCode::InvalidInput),
        (r#"{"PartitionKey":"p","PartitionKey@odata.type":"Edm.Int32","RowKey":"r"}"#, ErrorCode::InvalidInput),
        (r#"{"PartitionKey":"a/b","RowKey":"r"}"#, ErrorCode::OutOfRangeInput),
        (r#"{"PartitionKey":"p","RowKey":"a","RowKey":"b"}"#, ErrorCode::DuplicatePropertiesSpecified),
        (r#"{"PartitionKey":"p","RowKey":"r","a":1,"a":2}"#, ErrorCode::DuplicatePropertiesSpecified),
        (r#"{"PartitionKey":"p","RowKey":"r","a-b":1}"#, ErrorCode::PropertyNameInvalid),
        ("", ErrorCode::InvalidInput),
        ("[]", ErrorCode::InvalidInput),
        ("{", ErrorCode::InvalidInput),
        (r#"{"PartitionKey":"p","RowKey":"r"} x"#, ErrorCode::InvalidInput),
    ] {
        assert_eq!(properties(json).map_err(|error| error.0), Err(code), "{json}");
    }
    let (_, message) = properties(r#"{"PartitionKey":"p","RowKey":"a#b"}"#).expect_err("a forbidden character");
    assert_eq!(message, "The 'RowKey' parameter of value 'a#b' is out of range.");
    let (code, message) =
        properties(r#"{"PartitionKey":"p","RowKey":"r","d@odata.type":"Edm.DateTime","d":"0001-01-01T00:00:00Z"}"#)
            .expect_err("too early");
    assert_eq!(
        (code, message.as_str()),
        (ErrorCode::OutOfRangeInput, "The 'd' parameter of value '01/01/0001 00:00:00' is out of range.")
    );
}

#[test]
fn deep_nesting_is_refused_without_harm() {
    let json = format!(r#"{{"PartitionKey":"p","RowKey":"r","a":{}1{}}}"#, "[".repeat(100_000), "]".repeat(100_000));
    assert_eq!(properties(&json).map_err(|error| error.0), Err(ErrorCode::InvalidInput));
}

#[test]
fn an_update_may_repeat_its_keys_but_not_contradict_them() {
    let key = || EntityKey { partition: PartitionKey::new("p").expect("a key"), row: RowKey::new("r").expect("a key") };
    for json in [r#"{"a":1}"#, r#"{"PartitionKey":"p","RowKey":"r","a":1}"#, r#"{"PartitionKey":null,"a":1}"#] {
        assert!(parse_existing(json.as_bytes(), key()).is_ok(), "{json}");
    }
    assert_eq!(parse_existing(br#"{"RowKey":"x"}"#, key()).map_err(|e| e.code), Err(ErrorCode::InvalidInput));
}

proptest! {
    #[test]
    fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = parse_new(&bytes);
    }

    #[test]
    fn any_member_is_read_or_refused(value in "\\PC{0,30}", edm in prop::sample::select(vec!["Int32", "Int64", "Double", "DateTime", "Guid", "Binary", "Boolean"])) {
        let value = serde_json::to_string(&value).expect("JSON");
        let json = format!(r#"{{"PartitionKey":"p","RowKey":"r","a@odata.type":"Edm.{edm}","a":{value}}}"#);
        let _ = parse_new(json.as_bytes());
    }
}
