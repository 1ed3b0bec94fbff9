//! Random filters over random rows, and what they mean: a planned query must return what a full scan with a naive
//! reading of the filter returns, page by page, on every engine.

use larimar_engine::table::{PageLimits, Plan, query};
use larimar_engine::{Engine, Fault, Flow, ReadError, RowRef, SpaceKind, SpaceName};
use larimar_model::{Entity, EntityKey, Filter, PartitionKey, RowKey, Timestamp, Value};
use proptest::prelude::*;
use std::cmp::Ordering;
use std::time::{Duration, Instant};

/// A filter as a tree that knows its text and its meaning.
#[derive(Clone, Debug)]
#[expect(missing_docs, reason = "the variants are those of the language")]
pub enum Node {
    Compare { property: &'static str, operator: &'static str, literal: Value, is_literal_first: bool },
    Flag(&'static str),
    And(Vec<Self>),
    Or(Vec<Self>),
    Not(Box<Self>),
    Constant(bool),
}

/// The keys and properties of an entity.
pub type Row = (String, String, Vec<(&'static str, Value)>);

const KEYS: &[&str] = &["", "a", "aa", "b", "c", "\u{1F600}", "\u{e000}", "z"];
const NAMES: &[&str] = &["A", "B", "C"];

impl Node {
    /// Its text.
    #[must_use]
    pub fn text(&self) -> String {
        let join = |parts: &[Self], word: &str| {
            parts.iter().map(|part| format!("({})", part.text())).collect::<Vec<_>>().join(&format!(" {word} "))
        };
        match self {
            Self::Compare { property, operator, literal, is_literal_first } => {
                let literal = literal_text(literal);
                if *is_literal_first {
                    format!("{literal} {operator} {property}")
                } else {
                    format!("{property} {operator} {literal}")
                }
            }
            Self::Flag(name) => (*name).to_owned(),
            Self::And(parts) => join(parts, "and"),
            Self::Or(parts) => join(parts, "or"),
            Self::Not(inner) => format!("not ({})", inner.text()),
            Self::Constant(value) => value.to_string(),
        }
    }

    /// The filter as the parser would read it from the text, however long that is.
    #[must_use]
    pub fn filter(&self) -> Filter {
        let parts = |parts: &[Self]| parts.iter().map(Self::filter).collect();
        match self {
            Self::And(nodes) => Filter::And(parts(nodes)),
            Self::Or(nodes) => Filter::Or(parts(nodes)),
            Self::Not(inner) => Filter::Not(Box::new(inner.filter())),
            leaf => Filter::parse(&leaf.text()).expect("a filter"),
        }
    }

    /// Whether the filter admits a row, evaluated naively as the protocol describes it (table.md, section 7).
    #[must_use]
    pub fn admits(&self, row: &Row) -> bool {
        match self {
            Self::Compare { property, operator, literal, is_literal_first } => {
                let Some(value) = value_of(row, property) else { return false };
                // A value of another type counts as less than the literal.
                let order = compare(&value, literal).unwrap_or(Ordering::Less);
                let operator = if *is_literal_first { mirrored(operator) } else { operator };
                match operator {
                    "eq" => order.is_eq(),
                    "ne" => order.is_ne(),
                    "gt" => order.is_gt(),
                    "ge" => order.is_ge(),
                    "lt" => order.is_lt(),
                    _ => order.is_le(),
                }
            }
            Self::Flag(name) => value_of(row, name) == Some(Value::Boolean(true)),
            Self::And(parts) => parts.iter().all(|part| part.admits(row)),
            Self::Or(parts) => parts.iter().any(|part| part.admits(row)),
            Self::Not(inner) => !inner.admits(row),
            Self::Constant(value) => *value,
        }
    }
}

fn mirrored(operator: &str) -> &str {
    match operator {
        "gt" => "lt",
        "ge" => "le",
        "lt" => "gt",
        "le" => "ge",
        same => same,
    }
}

fn value_of(row: &Row, name: &str) -> Option<Value> {
    match name {
        "PartitionKey" => Some(Value::String(row.0.clone())),
        "RowKey" => Some(Value::String(row.1.clone())),
        _ => row.2.iter().find(|(found, _)| *found == name).map(|(_, value)| value.clone()),
    }
}

/// Compares a property with a literal. Only the literal is widened; `None` if the types differ.
fn compare(value: &Value, literal: &Value) -> Option<Ordering> {
    match (value, literal) {
        (Value::String(v), Value::String(l)) => Some(v.encode_utf16().cmp(l.encode_utf16())),
        (Value::Boolean(v), Value::Boolean(l)) => Some(v.cmp(l)),
        (Value::Int32(v), Value::Int32(l)) => Some(v.cmp(l)),
        (Value::Int64(v), Value::Int64(l)) => Some(v.cmp(l)),
        (Value::Int64(v), Value::Int32(l)) => Some(v.cmp(&i64::from(*l))),
        (Value::Double(v), Value::Double(l)) => v.partial_cmp(l),
        (Value::Double(v), Value::Int32(l)) => v.partial_cmp(&f64::from(*l)),
        (Value::Double(v), Value::Int64(l)) => v.partial_cmp(&(*l as f64)),
        _ => None,
    }
}

fn literal_text(literal: &Value) -> String {
    match literal {
        Value::String(text) => format!("'{}'", text.replace('\'', "''")),
        Value::Int32(number) => number.to_string(),
        Value::Int64(number) => format!("{number}L"),
        Value::Double(number) => format!("{number:?}"),
        Value::Boolean(value) => value.to_string(),
        other => unreachable!("not drawn: {other:?}"),
    }
}

fn value() -> impl Strategy<Value = Value> {
    prop_oneof![
        prop::sample::select(KEYS).prop_map(|text| Value::String(text.to_owned())),
        (-2i32..3).prop_map(Value::Int32),
        (-2i64..3).prop_map(Value::Int64),
        (-4i32..5).prop_map(|half| Value::Double(f64::from(half) / 2.0)),
        any::<bool>().prop_map(Value::Boolean),
    ]
}

fn comparison() -> impl Strategy<Value = Node> {
    let property = prop_oneof![
        3 => Just("PartitionKey"), 3 => Just("RowKey"), 3 => prop::sample::select(NAMES)
    ];
    let operator = prop::sample::select(&["eq", "ne", "gt", "ge", "lt", "le", "eq", "eq"]);
    let key = prop::sample::select(KEYS).prop_map(|text| Value::String(text.to_owned()));
    (property, operator, key, value(), any::<bool>()).prop_map(|(property, operator, key, value, is_literal_first)| {
        // Keys compare with strings only.
        let is_key = property == "PartitionKey" || property == "RowKey";
        let literal = if is_key { key } else { value };
        Node::Compare { property, operator, literal, is_literal_first }
    })
}

/// Filters.
pub fn filter() -> impl Strategy<Value = Node> {
    let leaf = prop_oneof![
        12 => comparison(),
        1 => prop::sample::select(NAMES).prop_map(Node::Flag),
        1 => any::<bool>().prop_map(Node::Constant),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            3 => prop::collection::vec(inner.clone(), 2..4).prop_map(Node::And),
            3 => prop::collection::vec(inner.clone(), 2..4).prop_map(Node::Or),
            1 => inner.prop_map(|node| Node::Not(Box::new(node))),
        ]
    })
}

/// Filters that are made to cost as much as they can: many comparisons of both keys, joined so that their ranges multiply.
pub fn hostile_filter() -> impl Strategy<Value = Node> {
    let keys = prop_oneof![Just("PartitionKey"), Just("RowKey")];
    let compare = |(property, operator, literal): (&'static str, &'static str, String)| Node::Compare {
        property,
        operator,
        literal: Value::String(literal),
        is_literal_first: false,
    };
    // Long literals with a common prefix cost the most to compare.
    let literal = (prop_oneof![8 => Just(0usize), 1 => Just(400), 1 => Just(600)], 0..2000u32)
        .prop_map(|(length, number)| format!("{}{number:04}", "k".repeat(length)));
    let operator = prop::sample::select(&["ne", "ne", "eq", "eq", "gt", "le"]);
    let run = (keys, operator, any::<bool>(), prop::collection::vec(literal, 1..500)).prop_map(
        move |(property, operator, is_and, literals)| {
            let parts = literals.into_iter().map(|literal| compare((property, operator, literal))).collect();
            if is_and { Node::And(parts) } else { Node::Or(parts) }
        },
    );
    run.prop_recursive(3, 3000, 6, |inner| {
        prop_oneof![
            3 => prop::collection::vec(inner.clone(), 2..6).prop_map(Node::And),
            3 => prop::collection::vec(inner.clone(), 2..6).prop_map(Node::Or),
            1 => inner.prop_map(|node| Node::Not(Box::new(node))),
        ]
    })
}

/// Rows in the order of their keys.
pub fn rows() -> impl Strategy<Value = Vec<Row>> {
    let key = || prop::sample::select(KEYS).prop_map(str::to_owned);
    let properties = prop::collection::vec((prop::sample::select(NAMES), value()), 0..4).prop_map(|mut properties| {
        properties.sort_by_key(|(name, _)| *name);
        properties.dedup_by_key(|(name, _)| *name);
        properties
    });
    prop::collection::vec((key(), key(), properties), 0..40).prop_map(|mut rows| {
        let units =
            |row: &Row| -> (Vec<u16>, Vec<u16>) { (row.0.encode_utf16().collect(), row.1.encode_utf16().collect()) };
        rows.sort_by_key(units);
        rows.dedup_by_key(|row| (row.0.clone(), row.1.clone()));
        rows
    })
}

/// Runs the filter's plan in pages and returns the keys found.
pub async fn planned(
    engine: &impl Engine,
    rows: &[Row],
    filter: &Filter,
    entities_max: usize,
    is_hurried: bool,
) -> Vec<(String, String)> {
    let name = SpaceName { account: "account", kind: SpaceKind::Table, name: "t" };
    let table = engine.create_space(name, b"").await.expect("no fault").expect("the name is free");
    let entities: Vec<Entity> = rows.iter().map(entity).collect();
    let stored: Vec<RowRef<'_>> = entities
        .iter()
        .map(|entity| RowRef {
            partition: entity.key.partition.as_str(),
            row: entity.key.row.as_str(),
            version: Timestamp::EDM_MIN,
            body: entity.body().as_bytes(),
        })
        .collect();
    engine.restore(table, &stored).await.expect("the space is there");
    let mut found = Vec::new();
    let mut plan = Plan::new(Some(filter));
    // A page that is out of time ends after a row or a range; it may be empty, but the next one is further on.
    let (mut pages_left, until) = (rows.len() + 300, Instant::now() + Duration::from_secs(120));
    while pages_left > 0 {
        let patience = if is_hurried { Duration::ZERO } else { Duration::from_secs(60) };
        let steps_max = if is_hurried { 1 } else { PageLimits::STEPS_MAX };
        let limits = PageLimits { entities_max, deadline: Instant::now() + patience, steps_max };
        let before = found.len();
        let page = query(engine, table, &plan, limits, |row| {
            found.push((row.partition.to_owned(), row.row.to_owned()));
            Flow::Continue
        });
        let page = match page.await {
            Ok(page) => page,
            // It does not wait for a connection that the pages before it are about to leave.
            Err(ReadError::Fault(Fault::Unavailable(_))) if is_hurried && Instant::now() < until => {
                assert_eq!(found.len(), before, "a page that was refused has no rows");
                tokio::time::sleep(Duration::from_millis(5)).await;
                continue;
            }
            Err(error) => panic!("{error}"),
        };
        pages_left -= 1;
        assert!(found.len() - before <= entities_max, "a page is not longer than asked for");
        assert_eq!(page.rows_returned, (found.len() - before) as u64);
        match page.next {
            Some(next) => plan = Plan::new(Some(filter)).resumed_at(next),
            None => {
                engine.drop_space(name).await.expect("no fault");
                return found;
            }
        }
    }
    panic!("the pages do not end");
}

fn entity((partition, row, properties): &Row) -> Entity {
    let key = EntityKey {
        partition: PartitionKey::new(partition.as_str()).expect("a key"),
        row: RowKey::new(row.as_str()).expect("a key"),
    };
    Entity::from_properties(key, properties.iter().cloned()).expect("an entity")
}
