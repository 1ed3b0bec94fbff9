//! Whatever filters are built from, the server's own parser reads what was meant (C2), and prefixes select exactly
//! what they should.

use larimar_client::{Column, Filter, Guid, IntoLiteral, Timestamp, Value, keys};
use larimar_model::filter::{Comparison, Filter as Parsed, Operator, Row};
use larimar_model::{self as model, BodyBuilder, EntityBody, ValueRef, utf16};
use proptest::prelude::*;
use std::cmp::Ordering;

const OPERATORS: [Operator; 6] = [Operator::Eq, Operator::Ne, Operator::Gt, Operator::Ge, Operator::Lt, Operator::Le];

fn compare<T>(column: &Column<T>, operator: Operator, value: impl IntoLiteral<T>) -> Filter {
    match operator {
        Operator::Eq => column.eq(value),
        Operator::Ne => column.ne(value),
        Operator::Gt => column.gt(value),
        Operator::Ge => column.ge(value),
        Operator::Lt => column.lt(value),
        Operator::Le => column.le(value),
    }
}

/// The value as the server speaks of it.
fn stored(value: &Value) -> model::Value {
    match value.clone() {
        Value::String(value) => model::Value::String(value),
        Value::Int32(value) => model::Value::Int32(value),
        Value::Int64(value) => model::Value::Int64(value),
        Value::Double(value) => model::Value::Double(value),
        Value::Boolean(value) => model::Value::Boolean(value),
        Value::DateTime(value) => model::Value::DateTime(model::Timestamp::from_ticks(value.ticks())),
        Value::Guid(value) => model::Value::Guid(model::Guid(*value.as_bytes())),
        Value::Binary(value) => model::Value::Binary(value),
    }
}

fn expected_comparison(name: &str, operator: Operator, value: &Value) -> Parsed {
    Parsed::Compare(Comparison { property: name.to_owned(), operator, literal: stored(value) })
}

/// Filters as text, since NaN does not equal itself.
fn assert_parses_to(filter: &Filter, expected: &Parsed) {
    let parsed = Parsed::parse(filter.as_str()).unwrap_or_else(|error| panic!("{error}: {filter}"));
    assert_eq!(format!("{parsed:?}"), format!("{expected:?}"), "{filter}");
}

/// Characters where escapes and orders go wrong.
fn text() -> impl Strategy<Value = String> {
    let tricky = prop::sample::select(
        "'\"()\\%&+ /?#aAzé,\u{0}\u{7f}\u{D7FE}\u{D7FF}\u{E000}\u{FFFE}\u{FFFF}\u{10000}\u{103FF}\u{10FFFE}\u{10FFFF}"
            .chars()
            .collect::<Vec<_>>(),
    );
    prop::collection::vec(prop_oneof![3 => tricky, 1 => any::<char>()], 0..6).prop_map(String::from_iter)
}

fn name() -> impl Strategy<Value = String> {
    let characters = "Aaz_é名019".chars().collect::<Vec<_>>();
    prop::collection::vec(prop::sample::select(characters), 1..8)
        .prop_map(String::from_iter)
        .prop_filter("a name", |name| Column::<i32>::try_named(name.clone()).is_ok())
}

fn value() -> impl Strategy<Value = Value> {
    let special = vec![f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -0.0, f64::MIN_POSITIVE, f64::MAX, 5e-324];
    let ticks = Timestamp::MIN.ticks()..=Timestamp::MAX.ticks();
    prop_oneof![
        text().prop_map(Value::String),
        any::<i32>().prop_map(Value::Int32),
        any::<i64>().prop_map(Value::Int64),
        prop::num::f64::ANY.prop_map(Value::Double),
        prop::sample::select(special).prop_map(Value::Double),
        any::<bool>().prop_map(Value::Boolean),
        ticks.prop_map(|ticks| Value::DateTime(Timestamp::from_ticks(ticks))),
        any::<[u8; 16]>().prop_map(|bytes| Value::Guid(Guid::from_bytes(bytes))),
        prop::collection::vec(any::<u8>(), 0..20).prop_map(Value::Binary),
    ]
}

/// A filter, and what the server should make of it.
fn filter() -> impl Strategy<Value = (Filter, Parsed)> {
    let operator = prop::sample::select(OPERATORS.to_vec());
    let leaf = (name(), operator, value(), any::<bool>()).prop_map(|(name, operator, value, raw)| {
        let expected = expected_comparison(&name, operator, &value);
        let column = Column::<Value>::try_named(name).expect("a name");
        let filter = compare(&column, operator, value);
        (if raw { Filter::raw(filter.as_str()) } else { filter }, expected)
    });
    leaf.prop_recursive(5, 24, 4, |inner| {
        let parts = || prop::collection::vec(inner.clone(), 2..4);
        prop_oneof![
            inner.clone().prop_map(|(filter, expected)| (!filter, Parsed::Not(Box::new(expected)))),
            parts().prop_map(|parts| {
                let (filters, expected): (Vec<_>, Vec<_>) = parts.into_iter().unzip();
                (Filter::all(filters), all(expected))
            }),
            parts().prop_map(|parts| {
                let (filters, expected): (Vec<_>, Vec<_>) = parts.into_iter().unzip();
                (Filter::any(filters), any_of(expected))
            }),
            (inner.clone(), inner.clone()).prop_map(|((a, b), (c, d))| (a & c, all(vec![b, d]))),
            (inner.clone(), inner.clone()).prop_map(|((a, b), (c, d))| (a | c, any_of(vec![b, d]))),
        ]
    })
}

fn all(parts: Vec<Parsed>) -> Parsed {
    let flat = parts.into_iter().flat_map(|part| match part {
        Parsed::And(parts) => parts,
        other => vec![other],
    });
    Parsed::And(flat.collect())
}

fn any_of(parts: Vec<Parsed>) -> Parsed {
    let flat = parts.into_iter().flat_map(|part| match part {
        Parsed::Or(parts) => parts,
        other => vec![other],
    });
    Parsed::Or(flat.collect())
}

/// Whether the server would return an entity with this property.
fn admits(filter: &Filter, name: &str, value: ValueRef<'_>) -> bool {
    let mut body = BodyBuilder::new();
    body.push(name, value).expect("a property");
    let bytes = body.into_bytes();
    let version = model::Timestamp::EDM_MIN;
    let row = Row { partition: "p", row: "r", version, body: EntityBody::from_trusted(&bytes) };
    Parsed::parse(filter.as_str()).unwrap_or_else(|error| panic!("{error}: {filter}")).admits(&row)
}

/// Every operator holds for exactly the order it names; `None` is an order with NaN.
fn assert_orders<T>(stored: ValueRef<'_>, literal: impl IntoLiteral<T> + Clone, order: Option<Ordering>) {
    let column = Column::<T>::named("P");
    for operator in OPERATORS {
        let expected = order.map_or(operator == Operator::Ne, |order| match operator {
            Operator::Eq => order == Ordering::Equal,
            Operator::Ne => order != Ordering::Equal,
            Operator::Gt => order == Ordering::Greater,
            Operator::Ge => order != Ordering::Less,
            Operator::Lt => order == Ordering::Less,
            Operator::Le => order != Ordering::Greater,
        });
        let filter = compare(&column, operator, literal.clone());
        assert_eq!(admits(&filter, "P", stored), expected, "{filter} for {stored:?}");
    }
}

proptest! {
    #[test]
    fn filters_mean_what_they_were_built_from((filter, expected) in filter()) {
        assert_parses_to(&filter, &expected);
    }

    #[test]
    fn typed_columns_compare_as_their_types_do(
        texts in (text(), text()),
        ints in any::<(i32, i32)>(),
        longs in any::<(i64, i64)>(),
        doubles in (prop::num::f64::ANY, prop::num::f64::ANY),
        flags in any::<(bool, bool)>(),
        bytes in any::<(Vec<u8>, Vec<u8>)>(),
    ) {
        let order = texts.0.encode_utf16().cmp(texts.1.encode_utf16());
        assert_orders::<String>(ValueRef::String(&texts.0), &texts.1, Some(order));
        assert_orders::<i32>(ValueRef::Int32(ints.0), ints.1, Some(ints.0.cmp(&ints.1)));
        assert_orders::<i64>(ValueRef::Int64(longs.0), longs.1, Some(longs.0.cmp(&longs.1)));
        assert_orders::<i64>(ValueRef::Int64(longs.0), ints.1, Some(longs.0.cmp(&i64::from(ints.1))));
        assert_orders::<f64>(ValueRef::Double(doubles.0), doubles.1, doubles.0.partial_cmp(&doubles.1));
        assert_orders::<f64>(ValueRef::Double(doubles.0), ints.1, doubles.0.partial_cmp(&f64::from(ints.1)));
        assert_orders::<bool>(ValueRef::Boolean(flags.0), flags.1, Some(flags.0.cmp(&flags.1)));
        assert_orders::<Vec<u8>>(ValueRef::Binary(&bytes.0), &bytes.1, Some(bytes.0.cmp(&bytes.1)));
    }

    #[test]
    fn unsigned_numbers_compare_with_int64_even_where_they_do_not_fit(stored: i64, literal: u64) {
        let order = i128::from(stored).cmp(&i128::from(literal));
        assert_orders::<i64>(ValueRef::Int64(stored), literal, Some(order));
    }

    #[test]
    fn times_that_properties_cannot_have_still_make_a_filter(ticks in 0..4_000_000_000_000_000_000u64) {
        let time = Timestamp::from_ticks(ticks);
        let literal = Value::DateTime(time.clamp(Timestamp::MIN, Timestamp::MAX));
        assert_parses_to(&keys::timestamp().lt(time), &expected_comparison("Timestamp", Operator::Lt, &literal));
    }

    #[test]
    fn starts_with_selects_exactly_the_texts_that_do(prefix in text(), rest in text(), other in text()) {
        let filter = Column::<String>::named("P").starts_with(&prefix);
        for text in [format!("{prefix}{rest}"), other, rest, prefix.clone()] {
            let selected = admits(&filter, "P", ValueRef::String(&text));
            prop_assert_eq!(selected, text.starts_with(&prefix), "{:?} for {}", text, filter);
        }
        prop_assert!(!admits(&filter, "P", ValueRef::Int32(1)));
        prop_assert!(!admits(&filter, "Q", ValueRef::String(&prefix)));
    }

    #[test]
    fn between_leaves_out_its_end(values in any::<(i8, i8, i8)>()) {
        let (first, end, value) = values;
        let filter = Column::<i32>::named("P").between(first, end);
        prop_assert_eq!(admits(&filter, "P", ValueRef::Int32(value.into())), (first..end).contains(&value));
    }

    #[test]
    fn in_values_is_true_of_its_members(values in prop::collection::vec(0..8, 0..5), value in 0..8) {
        let filter = Column::<i32>::named("P").in_values(values.clone());
        prop_assert_eq!(admits(&filter, "P", ValueRef::Int32(value)), values.contains(&value));
    }

    #[test]
    fn everything_and_nothing_behave_as_true_and_false((filter, _) in filter()) {
        let (everything, nothing) = (Filter::everything(), Filter::nothing());
        prop_assert_eq!(&everything.clone().and(filter.clone()), &filter);
        prop_assert_eq!(&filter.clone().and(everything.clone()), &filter);
        prop_assert_eq!(&filter.clone().or(nothing.clone()), &filter);
        prop_assert_eq!(&nothing.clone().or(filter.clone()), &filter);
        prop_assert_eq!(&nothing.clone().and(filter.clone()), &nothing);
        prop_assert_eq!(&everything.clone().or(filter), &everything);
    }
}

/// Every pair of texts over the characters at the borders of the order, so that none is left to luck.
#[test]
fn starts_with_agrees_with_utf16_order_at_every_border() {
    let characters = ['a', '\u{D7FF}', '\u{E000}', '\u{FFFE}', '\u{FFFF}', '\u{10000}', '\u{10FFFF}'];
    let mut texts = vec![String::new()];
    for length in 0..3 {
        let longest: Vec<_> = texts.iter().filter(|text| text.chars().count() == length).cloned().collect();
        texts.extend(longest.iter().flat_map(|text| characters.map(|character| format!("{text}{character}"))));
    }
    assert_eq!(texts.len(), 1 + 7 + 49 + 343);
    for prefix in &texts {
        let filter = Column::<String>::named("P").starts_with(prefix);
        let parsed = Parsed::parse(filter.as_str()).expect("a filter");
        let bounds = match &parsed {
            Parsed::And(parts) => parts.as_slice(),
            single => std::slice::from_ref(single),
        };
        for text in &texts {
            let selected = bounds.iter().all(|bound| {
                let Parsed::Compare(Comparison { operator, literal: model::Value::String(literal), .. }) = bound else {
                    panic!("expected a comparison with a text: {filter}");
                };
                operator.admits(utf16::compare(text, literal))
            });
            assert_eq!(selected, text.starts_with(prefix.as_str()), "{text:?} with {filter}");
        }
    }
}

#[test]
fn everything_and_nothing_are_filters_of_the_service() {
    assert!(admits(&Filter::everything(), "P", ValueRef::Int32(1)));
    assert!(!admits(&Filter::nothing(), "P", ValueRef::Int32(1)));
    assert_eq!(!Filter::everything(), Filter::nothing());
    assert_eq!(Filter::any([]), !Filter::all([]));
    assert!(Filter::raw(" ").is_everything());
}

#[test]
fn every_type_is_spelled_as_the_service_reads_it() {
    let column = Column::<Value>::named("A");
    let cases: [(Value, &str); 14] = [
        ("it's".into(), "'it''s'"),
        ("".into(), "''"),
        (Value::Int32(-5), "-5"),
        (Value::Int64(1), "1L"),
        (Value::Double(1.0), "1.0"),
        (Value::Double(1e300), "1e300"),
        (Value::Double(f64::NAN), "NaN"),
        (Value::Double(f64::INFINITY), "INF"),
        (Value::Double(f64::NEG_INFINITY), "-INF"),
        (true.into(), "true"),
        (false.into(), "false"),
        (Value::DateTime("2008-07-10T00:00:00.5Z".parse().expect("a time")), "datetime'2008-07-10T00:00:00.5Z'"),
        (Value::Guid(Guid::from_bytes([0xA4; 16])), "guid'a4a4a4a4-a4a4-a4a4-a4a4-a4a4a4a4a4a4'"),
        (Value::Binary(b"bin".to_vec()), "X'62696e'"),
    ];
    for (value, text) in cases {
        assert_eq!(column.eq(value).as_str(), format!("A eq {text}"));
    }
}
