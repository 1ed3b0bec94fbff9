//! Random values for property tests. The tests of `larimar-tool` compile this file too, by its path.

use super::{Guid, Timestamp, Value};
use proptest::prelude::*;

/// Values of all types, their limits more often than chance would give them.
pub(crate) fn any_value() -> impl Strategy<Value = Value> {
    let doubles = vec![f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -0.0, 0.0, f64::MIN_POSITIVE, 1e300, 3.0];
    let time = |ticks| Value::DateTime(Timestamp::from_ticks(ticks));
    prop_oneof![
        any::<String>().prop_map(Value::String),
        prop::sample::select(vec!["", " ", "\"a\",\r\nb", "=1+1", "'x", "\u{feff}", "7"]).prop_map(Value::from),
        any::<i32>().prop_map(Value::Int32),
        any::<i64>().prop_map(Value::Int64),
        any::<f64>().prop_map(Value::Double),
        prop::sample::select(doubles).prop_map(Value::Double),
        any::<bool>().prop_map(Value::Boolean),
        (Timestamp::MIN.ticks()..=Timestamp::MAX.ticks()).prop_map(time),
        prop::sample::select(vec![Timestamp::MIN, Timestamp::MAX]).prop_map(Value::DateTime),
        any::<[u8; 16]>().prop_map(|bytes| Value::Guid(Guid::from_bytes(bytes))),
        prop::collection::vec(any::<u8>(), 0..100).prop_map(Value::Binary),
    ]
}
