//! The members of an entity in JSON, with the types that JSON shows.

use larimar_client::Value;
use serde::de::{self, Deserialize, Deserializer, MapAccess, Visitor};
use std::fmt;

/// The members of an object, all of them neither arrays nor objects; `None` for null.
pub(super) struct Members(pub(super) Vec<(String, Option<Value>)>);

struct Scalar(Option<Value>);

impl<'de> Deserialize<'de> for Members {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Object;
        impl<'de> Visitor<'de> for Object {
            type Value = Members;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members, A::Error> {
                let mut members = Vec::new();
                while let Some((name, Scalar(value))) = map.next_entry::<String, Scalar>()? {
                    members.push((name, value));
                    if members.len() > MEMBERS_MAX {
                        return Err(de::Error::custom(format!("expected at most {MEMBERS_MAX} members")));
                    }
                }
                Ok(Members(members))
            }
        }
        deserializer.deserialize_map(Object)
    }
}

impl<'de> Deserialize<'de> for Scalar {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Any;
        impl Visitor<'_> for Any {
            type Value = Scalar;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a text, a number, true, false or null, since properties hold no lists or objects")
            }

            fn visit_bool<E>(self, truth: bool) -> Result<Scalar, E> {
                Ok(Scalar(Some(Value::Boolean(truth))))
            }

            fn visit_i64<E>(self, number: i64) -> Result<Scalar, E> {
                Ok(Scalar(Some(integer(number))))
            }

            fn visit_u64<E>(self, number: u64) -> Result<Scalar, E> {
                #[expect(clippy::cast_precision_loss, reason = "only a Double can be this large")]
                let double = Value::Double(number as f64);
                Ok(Scalar(Some(i64::try_from(number).map_or(double, integer))))
            }

            fn visit_f64<E>(self, number: f64) -> Result<Scalar, E> {
                Ok(Scalar(Some(Value::Double(number))))
            }

            fn visit_str<E>(self, text: &str) -> Result<Scalar, E> {
                Ok(Scalar(Some(Value::String(text.to_owned()))))
            }

            fn visit_unit<E>(self) -> Result<Scalar, E> {
                Ok(Scalar(None))
            }
        }
        deserializer.deserialize_any(Any)
    }
}

/// As the service reads a number without a fraction.
fn integer(number: i64) -> Value {
    i32::try_from(number).map_or(Value::Int64(number), Value::Int32)
}

/// 252 properties with their types, keys, time and metadata.
const MEMBERS_MAX: usize = 1024;
