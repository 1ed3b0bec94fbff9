//! Promises about the order of rows and about half-open ranges.

use super::rows::{create, keys, store};
use larimar_engine::{Engine, KeyRange, Position, SpaceId};

/// Texts in the order of their UTF-16 code units; in UTF-8 the last three would come otherwise.
const ORDERED: &[&str] = &[
    "",
    "\0",
    "\0\0",
    "\0a",
    "\u{1}",
    "\t",
    " ",
    "!",
    "%",
    "'",
    "+",
    "-",
    "0",
    "00",
    "01",
    "1",
    "10",
    "2",
    "A",
    "AA",
    "Z",
    "_",
    "a",
    "a\0",
    "a\0b",
    "a\u{1}",
    "aa",
    "ab",
    "b",
    "~",
    "\u{7f}",
    "\u{80}",
    "\u{ff}",
    "é",
    "\u{7ff}",
    "\u{800}",
    "日",
    "日本",
    "\u{d7ff}",
    "\u{10000}",
    "\u{1F600}",
    "\u{10FFFF}",
    "\u{e000}",
    "\u{fffd}",
    "\u{ffff}",
];

/// Rows are scanned in the order of the UTF-16 code units of their keys, whatever they hold.
pub async fn rows_come_in_the_order_of_utf16_code_units(engine: &impl Engine) {
    let mut sorted = ORDERED.to_vec();
    sorted.sort_by_key(|text| text.encode_utf16().collect::<Vec<_>>());
    let (rows, partitions) = (create(engine, "rows").await, create(engine, "partitions").await);
    for text in ORDERED.iter().rev() {
        store(engine, rows, "p", text, b"x").await;
        store(engine, partitions, text, "r", b"x").await;
    }
    let found = keys(engine, rows, &KeyRange::all()).await;
    assert_eq!(found.iter().map(|(_, row)| row.as_str()).collect::<Vec<_>>(), sorted);
    let found = keys(engine, partitions, &KeyRange::all()).await;
    assert_eq!(found.iter().map(|(partition, _)| partition.as_str()).collect::<Vec<_>>(), sorted);
}

/// All rows of one partition come before those of the next, whatever their row keys.
pub async fn partitions_sort_before_rows(engine: &impl Engine) {
    let space = create(engine, "t").await;
    for (partition, row) in [("b", ""), ("a", "z"), ("a", "\u{ffff}"), ("b", "a"), ("a", ""), ("ab", "m"), ("", "z")] {
        store(engine, space, partition, row, b"x").await;
    }
    let expected = [("", "z"), ("a", ""), ("a", "z"), ("a", "\u{ffff}"), ("ab", "m"), ("b", ""), ("b", "a")];
    assert_eq!(keys(engine, space, &KeyRange::all()).await, owned(&expected));
}

/// A key sorts directly before the keys it is a prefix of, also where the next character is the smallest.
pub async fn a_prefix_sorts_before_its_extension(engine: &impl Engine) {
    let space = create(engine, "t").await;
    for (partition, row) in [("a\0", ""), ("a", "x\0\0"), ("a", "x"), ("a", "x\0"), ("a\0\0", "x"), ("a", "xa")] {
        store(engine, space, partition, row, b"x").await;
    }
    let expected = [("a", "x"), ("a", "x\0"), ("a", "x\0\0"), ("a", "xa"), ("a\0", ""), ("a\0\0", "x")];
    assert_eq!(keys(engine, space, &KeyRange::all()).await, owned(&expected));
}

/// A range holds the row at its start and not the one at its end.
pub async fn ranges_hold_their_start_but_not_their_end(engine: &impl Engine) {
    let space = grid(engine).await;
    let range = |start: (&str, &str), end: (&str, &str)| KeyRange {
        start: Position::new(start.0, start.1),
        end: Some(Position::new(end.0, end.1)),
    };
    let found = keys(engine, space, &range(("p2", "r2"), ("p3", "r2"))).await;
    assert_eq!(found, owned(&[("p2", "r2"), ("p2", "r3"), ("p3", "r1")]));
    let found = keys(engine, space, &range(("p1", "r1"), ("p1", "r2"))).await;
    assert_eq!(found, owned(&[("p1", "r1")]));
    let open = KeyRange { start: Position::new("p3", "r3"), end: None };
    assert_eq!(keys(engine, space, &open).await, owned(&[("p3", "r3")]));
}

/// The range of a partition holds its rows and none of the partitions beside it.
pub async fn a_partition_range_holds_that_partition_only(engine: &impl Engine) {
    let space = grid(engine).await;
    for (partition, row) in [("p2\0", ""), ("p20", "x"), ("p", "2"), ("p1\u{ffff}", "r")] {
        store(engine, space, partition, row, b"x").await;
    }
    let found = keys(engine, space, &KeyRange::partition("p2")).await;
    assert_eq!(found, owned(&[("p2", "r1"), ("p2", "r2"), ("p2", "r3")]));
    assert_eq!(keys(engine, space, &KeyRange::partition("p4")).await, owned(&[]));
}

/// The range of a point holds that row and none of its neighbours.
pub async fn a_point_range_holds_one_row(engine: &impl Engine) {
    let space = grid(engine).await;
    store(engine, space, "p2", "r2\0", b"x").await;
    store(engine, space, "p2", "r20", b"x").await;
    assert_eq!(keys(engine, space, &KeyRange::point("p2", "r2")).await, owned(&[("p2", "r2")]));
    assert_eq!(keys(engine, space, &KeyRange::point("p2", "r")).await, owned(&[]));
}

/// A range whose end does not lie after its start is empty, and scanning it is no error.
pub async fn empty_and_inverted_ranges_hold_nothing(engine: &impl Engine) {
    let space = grid(engine).await;
    for (start, end) in [(("p2", "r2"), ("p2", "r2")), (("p3", "r1"), ("p1", "r1")), (("p2", "r3"), ("p2", "r1"))] {
        let range = KeyRange { start: Position::new(start.0, start.1), end: Some(Position::new(end.0, end.1)) };
        assert_eq!(keys(engine, space, &range).await, owned(&[]), "{range:?}");
    }
}

/// The bounds of a range need not be rows.
pub async fn ranges_between_rows_find_the_rows_between(engine: &impl Engine) {
    let space = grid(engine).await;
    let range = KeyRange { start: Position::new("p1", "r2x"), end: Some(Position::new("p2", "r1\0")) };
    assert_eq!(keys(engine, space, &range).await, owned(&[("p1", "r3"), ("p2", "r1")]));
    let range = KeyRange { start: Position::new("p1x", "zzz"), end: Some(Position::new("p2", "")) };
    assert_eq!(keys(engine, space, &range).await, owned(&[]));
    let range = KeyRange { start: Position::new("p4", ""), end: None };
    assert_eq!(keys(engine, space, &range).await, owned(&[]));
}

/// Nine rows: partitions p1 to p3, rows r1 to r3.
async fn grid(engine: &impl Engine) -> SpaceId {
    let space = create(engine, "t").await;
    for partition in ["p1", "p2", "p3"] {
        for row in ["r1", "r2", "r3"] {
            store(engine, space, partition, row, b"x").await;
        }
    }
    space
}

fn owned(keys: &[(&str, &str)]) -> Vec<(String, String)> {
    keys.iter().map(|(partition, row)| ((*partition).to_owned(), (*row).to_owned())).collect()
}
