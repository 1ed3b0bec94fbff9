//! Types as strangers write them: under every lint, with parameters, raw and foreign names, and names of the macro's own.
#![cfg(feature = "derive")]
#![deny(warnings, missing_docs, nonstandard_style, unused, clippy::pedantic)]
#![allow(clippy::pub_underscore_fields, clippy::struct_field_names, clippy::used_underscore_binding)]

use larimar_client::{DynamicEntity, Entity, EntityEnum, Properties, Property};
use std::marker::PhantomData;

/// Names of another language.
#[derive(Clone, Debug, Default, PartialEq, Entity)]
#[allow(non_snake_case)]
#[entity(rename_all = "none")]
pub struct Foreign {
    /// One key.
    #[entity(partition_key)]
    pub Department: String,
    /// The other.
    #[entity(row_key)]
    pub Id: String,
    /// A property.
    pub LastName: String,
    /// Not for new code.
    #[deprecated]
    pub Nickname: Option<String>,
    /// A word of the language.
    pub r#in: i32,
    /// Names of the macro's own, and of the traits.
    pub __entity: i32,
    /// As above.
    pub __columns: i32,
    /// As above.
    pub __field0: i32,
    /// As above.
    pub columns: i32,
    /// As above.
    pub to_dynamic: i32,
    /// As above.
    pub from_dynamic: i32,
}

/// Parameters of all kinds.
#[derive(Clone, Debug, Default, PartialEq, Entity)]
#[entity(partition_key = "p", row_key = N)]
pub struct Parametric<'a, T, U, const N: usize = 1>
where
    T: Property + 'a,
    U: Properties,
{
    /// A property.
    pub value: T,
    /// Some.
    #[entity(flatten)]
    pub part: U,
    /// None.
    #[entity(skip)]
    pub lifetime: PhantomData<&'a str>,
}

/// A part.
#[derive(Clone, Debug, Default, PartialEq, Properties)]
pub struct Part<T: Property> {
    /// A property.
    pub __prefix: Option<T>,
}

/// Raw names.
#[derive(Clone, Copy, Debug, PartialEq, Property)]
#[allow(non_camel_case_types)]
pub enum Word {
    /// A word of the language.
    r#type,
    /// Another.
    r#match,
    /// Not for new code.
    #[deprecated]
    r#try,
}

/// Variants under the names of constants.
#[derive(Clone, Debug, PartialEq, EntityEnum)]
#[allow(non_camel_case_types)]
pub enum Variants {
    /// A word of the language.
    r#type(Foreign),
    /// Not for new code.
    #[deprecated]
    Old(DynamicEntity),
    /// Recognised by its key.
    #[entity(row_key_prefix = "1")]
    Parametric(Parametric<'static, i32, Part<Word>>),
}

fn survives<T: Entity + PartialEq + std::fmt::Debug>(value: &T) -> DynamicEntity {
    let entity = value.to_dynamic().expect("an entity").into_owned();
    assert_eq!(T::from_dynamic(entity.clone()).as_ref().ok(), Some(value));
    entity
}

#[test]
fn every_name_and_parameter_is_taken() {
    let foreign = Foreign { __entity: 1, __columns: 2, __field0: 3, columns: 4, to_dynamic: 5, ..Foreign::default() };
    assert_eq!(survives(&foreign).properties().len(), 8);
    assert_eq!(Foreign::LastName().eq("Hall").as_str(), "LastName eq 'Hall'");
    assert_eq!(Foreign::columns().eq(1).as_str(), "columns eq 1");
    assert_eq!(<Foreign as Entity>::columns().map(|columns| columns.len()), Some(11));
    let parametric: Parametric<'_, i32, Part<Word>> =
        Parametric { value: 1, part: Part { __prefix: Some(Word::r#match) }, lifetime: PhantomData };
    let entity = survives(&parametric);
    assert_eq!((entity.row_key.as_str(), entity.get::<String>("Prefix").ok()), ("1", Some("match".to_owned())));
    assert_eq!(survives(&Variants::r#type(foreign)).get::<String>("EntityType").ok().as_deref(), Some("type"));
    survives(&Variants::Parametric(parametric));
}
