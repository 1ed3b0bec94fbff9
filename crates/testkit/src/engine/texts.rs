//! Promises about the text of keys: an engine takes any, since range bounds and other services may use any.

use super::rows::{create, keys, page, pages, read, rows_budget, store};
use larimar_engine::{Engine, KeyRange, Position};
use std::collections::BTreeSet;

/// Characters at the edges of encodings: of one to four bytes, of surrogates, of escapes and terminators.
const EDGES: &[char] = &[
    '\0',
    '\u{1}',
    '\u{2}',
    '\t',
    '\n',
    '\r',
    '\u{1f}',
    ' ',
    '"',
    '\'',
    '/',
    '0',
    '\\',
    'a',
    'ÿ',
    '\u{7f}',
    '\u{80}',
    '\u{9f}',
    '\u{7ff}',
    '\u{800}',
    '\u{d7ff}',
    '\u{e000}',
    '\u{f8ff}',
    '\u{fdd0}',
    '\u{feff}',
    '\u{fffe}',
    '\u{ffff}',
    '\u{10000}',
    '\u{1F600}',
    '\u{10FFFF}',
];

/// Every text of up to two edge characters is a partition and a row of its own.
pub async fn any_text_is_a_key(engine: &impl Engine) {
    let space = create(engine, "t").await;
    let mut texts = vec![String::new()];
    texts.extend(EDGES.iter().map(char::to_string));
    texts.extend(EDGES.iter().flat_map(|a| EDGES.iter().map(move |b| format!("{a}{b}"))).step_by(5));
    for (number, text) in texts.iter().enumerate() {
        let partition = &texts[(number * 7) % texts.len()];
        store(engine, space, partition, text, text.as_bytes()).await;
    }
    let mut expected = BTreeSet::new();
    for (number, text) in texts.iter().enumerate() {
        let partition = &texts[(number * 7) % texts.len()];
        let found = read(engine, space, partition, text).await;
        assert_eq!(found.map(|(_, body)| body), Some(text.as_bytes().to_vec()), "{partition:?} {text:?}");
        expected.insert((units(partition), units(text)));
    }
    let found = keys(engine, space, &KeyRange::all()).await;
    let found: Vec<_> = found.iter().map(|(partition, row)| (units(partition), units(row))).collect();
    assert_eq!(found, expected.into_iter().collect::<Vec<_>>());
}

/// Where one key ends and the next begins is never in doubt.
pub async fn keys_that_would_collide_when_joined_are_told_apart(engine: &impl Engine) {
    let space = create(engine, "t").await;
    let pairs = [
        ("", "ab"),
        ("a", "b"),
        ("ab", ""),
        ("a\0", "b"),
        ("a", "\0b"),
        ("a\0\0", "b"),
        ("a\0\u{1}", "b"),
        ("a", "\u{1}b"),
        ("a\u{1}", "b"),
        ("a\0b", ""),
        ("", "a\0b"),
        ("a\u{ff}", "b"),
        ("a", "\u{ff}b"),
        ("a\0\u{ff}", "b"),
        ("", ""),
        ("", "\0"),
        ("\0", ""),
        ("\0\0", ""),
        ("", "\0\0"),
        ("\0", "\0"),
    ];
    for (number, (partition, row)) in pairs.iter().enumerate() {
        store(engine, space, partition, row, &[number as u8]).await;
    }
    for (number, (partition, row)) in pairs.iter().enumerate() {
        let found = read(engine, space, partition, row).await.map(|(_, body)| body);
        assert_eq!(found, Some(vec![number as u8]), "{partition:?} {row:?}");
        let (rows, _) = page(engine, space, &KeyRange::point(partition, row), rows_budget(10)).await;
        assert_eq!(rows.len(), 1, "{partition:?} {row:?}");
        let (rows, _) = page(engine, space, &KeyRange::partition(partition), rows_budget(100)).await;
        assert_eq!(rows.len(), pairs.iter().filter(|(of, _)| of == partition).count(), "{partition:?}");
    }
}

/// Two keys of 512 UTF-16 units are kept whole, in the alphabets that need the most bytes.
pub async fn the_longest_keys_are_kept(engine: &impl Engine) {
    let space = create(engine, "t").await;
    let longest = [
        "k".repeat(512),
        "\0".repeat(512),
        "\u{1}".repeat(512),
        "\u{ffff}".repeat(512),
        "\u{10FFFF}".repeat(256),
        format!("{}a", "日".repeat(511)),
        format!("{}b", "日".repeat(511)),
    ];
    for (number, text) in longest.iter().enumerate() {
        store(engine, space, text, text, &[number as u8]).await;
    }
    for (number, text) in longest.iter().enumerate() {
        assert_eq!(read(engine, space, text, text).await.map(|(_, body)| body), Some(vec![number as u8]));
        assert_eq!(read(engine, space, text, &text[..0]).await, None);
    }
    assert_eq!(pages(engine, space, &KeyRange::all(), 1).await.len(), longest.len());
}

/// A bound that no key could be still cuts at the right place.
pub async fn range_bounds_may_be_any_text(engine: &impl Engine) {
    let space = create(engine, "t").await;
    let texts: Vec<String> = EDGES.iter().map(char::to_string).collect();
    for text in &texts {
        store(engine, space, "p", text, b"x").await;
    }
    for start in &texts {
        for end in &texts {
            let range = KeyRange { start: Position::new("p", &**start), end: Some(Position::new("p", &**end)) };
            let found = keys(engine, space, &range).await;
            let inside = |text: &&String| units(start) <= units(text) && units(text) < units(end);
            assert_eq!(found.len(), texts.iter().filter(inside).count(), "{start:?} to {end:?}");
        }
    }
}

/// A scan broken after every row comes through keys of any text.
pub async fn resume_positions_survive_any_text(engine: &impl Engine) {
    let space = create(engine, "t").await;
    for (number, a) in EDGES.iter().enumerate() {
        let b = EDGES[(number * 11 + 5) % EDGES.len()];
        store(engine, space, &a.to_string(), &format!("{b}{a}"), b"x").await;
        store(engine, space, &format!("{a}{b}"), "", b"x").await;
    }
    let whole = keys(engine, space, &KeyRange::all()).await;
    for rows_max in [1, 2, 5] {
        let paged = pages(engine, space, &KeyRange::all(), rows_max).await;
        assert_eq!(paged.into_iter().map(|row| (row.partition, row.row)).collect::<Vec<_>>(), whole);
    }
}

fn units(text: &str) -> Vec<u16> {
    text.encode_utf16().collect()
}
