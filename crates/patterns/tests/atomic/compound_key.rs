//! T6: keys of several parts keep order and tell everything apart; a family is one request.

use crate::atomic::fixture::{Fixture, any_time, odd_text, service_order};
use larimar_client::{DynamicEntity, Filter, Timestamp};
use larimar_patterns::compound_key::{CompoundKey, Digits, KeyParts, family};
use larimar_patterns::key_text::{KeyError, check, escape, unescape};
use proptest::prelude::*;
use std::cmp::{Ordering, Reverse};

fn key<P: KeyParts>(parts: P) -> CompoundKey<P> {
    CompoundKey::new(parts)
}

type Mixed = (String, i32, String);

fn mixed() -> impl Strategy<Value = Mixed> {
    (odd_text(), prop_oneof![any::<i32>(), -2..2], odd_text())
}

fn order(a: &Mixed, b: &Mixed) -> Ordering {
    service_order(&a.0, &b.0).then(a.1.cmp(&b.1)).then_with(|| service_order(&a.2, &b.2))
}

proptest! {
    #[test]
    fn t6_escaped_text_is_a_key_and_reads_back(text in odd_text()) {
        let escaped = escape(&text);
        prop_assert_eq!(check(&escaped), Ok(()));
        prop_assert!(!escaped.contains(['!', ' ']));
        prop_assert_eq!(unescape(&escaped), Ok(text));
    }

    #[test]
    fn t6_escaped_text_keeps_its_order(a in odd_text(), b in odd_text()) {
        prop_assert_eq!(service_order(&escape(&a), &escape(&b)), service_order(&a, &b));
    }

    #[test]
    fn t6_only_what_escape_writes_is_read(text in odd_text()) {
        if let Ok(read) = unescape(&text) {
            prop_assert_eq!(escape(&read), text);
        }
    }

    #[test]
    fn t6_compound_keys_read_back(parts in mixed(), time in any_time(), flag: bool, number in 0..10_000_u64) {
        let text = key(parts.clone()).to_string();
        prop_assert_eq!(check(&text), Ok(()));
        prop_assert_eq!(text.parse(), Ok(key(parts)));
        let others = key((Digits::<4>::new(number).expect("four digits"), time, flag, i64::MIN, u8::MAX));
        prop_assert_eq!(others.to_string().parse(), Ok(others));
    }

    #[test]
    fn t6_compound_keys_sort_as_their_parts(a in mixed(), b in mixed()) {
        prop_assert_eq!(service_order(&key(a.clone()).to_string(), &key(b.clone()).to_string()), order(&a, &b));
    }

    #[test]
    fn t6_equal_first_parts_sort_by_the_next(first in odd_text(), a: (i32, u64), b: (i32, u64)) {
        let keys = [a, b].map(|(number, other)| key((first.clone(), number, other)).to_string());
        prop_assert_eq!(service_order(&keys[0], &keys[1]), a.cmp(&b));
    }

    #[test]
    fn t6_signed_numbers_and_times_sort(a: (i8, i64), b: (i8, i64), s in any_time(), t in any_time()) {
        prop_assert_eq!(key(a).to_string().cmp(&key(b).to_string()), a.cmp(&b));
        prop_assert_eq!(key((s,)).to_string().cmp(&key((t,)).to_string()), s.cmp(&t));
        let reversed = [s, t].map(|time| key((Reverse(time),)));
        prop_assert_eq!(reversed[0].to_string().cmp(&reversed[1].to_string()), t.cmp(&s));
        prop_assert_eq!(reversed[0].to_string().parse(), Ok(reversed[0]));
    }

    #[test]
    fn t6_ranges_hold_the_family_and_nobody_else(head in odd_text(), other in mixed(), tail in odd_text(), n: i32) {
        let parent = key((head.clone(),));
        let child = key((head.clone(), n)).to_string();
        let grandchild = key((head.clone(), n, tail)).to_string();
        prop_assert!(passes(&parent.with_descendants(), &parent.to_string()));
        prop_assert!(!passes(&parent.descendants(), &parent.to_string()));
        for key in [&child, &grandchild] {
            prop_assert!(passes(&parent.with_descendants(), key) && passes(&parent.descendants(), key));
            prop_assert!(passes(&parent.descendants_between(&n, &n), key));
            prop_assert!(n == i32::MIN || !passes(&parent.descendants_between(&i32::MIN, &(n.saturating_sub(1))), key));
            prop_assert!(n == i32::MAX || !passes(&parent.descendants_between(&(n.saturating_add(1)), &i32::MAX), key));
        }
        let is_same = other.0 == head;
        for stranger in [key(other.clone()).to_string(), key((other.0, other.1)).to_string()] {
            prop_assert_eq!(passes(&parent.with_descendants(), &stranger), is_same, "{}", stranger);
            prop_assert_eq!(passes(&parent.descendants(), &stranger), is_same, "{}", stranger);
        }
    }

    #[test]
    fn t6_no_key_makes_reading_panic(text in odd_text()) {
        let _ = text.parse::<CompoundKey<(Digits<6>, Digits<4>)>>();
        let _ = text.parse::<CompoundKey<(String, Timestamp, bool)>>();
        let _ = text.parse::<CompoundKey<(i8, String)>>();
    }
}

/// What the service makes of a range of row keys.
fn passes(filter: &Filter, row_key: &str) -> bool {
    let bound = |operator: &str| {
        let (_, from) = filter.as_str().split_once(&format!("RowKey {operator} '"))?;
        let end = from.find("' and RowKey").unwrap_or(from.len() - 1);
        Some(from[..end].replace("''", "'"))
    };
    bound("ge").is_some_and(|first| service_order(row_key, &first).is_ge())
        && bound("lt").is_some_and(|end| service_order(row_key, &end).is_lt())
}

#[test]
fn t6_keys_of_another_make_are_refused() {
    type Review = CompoundKey<(Digits<6>, Digits<4>)>;
    for text in [
        "",
        "123_2012",
        "000123",
        "000123_",
        "000123_2012_",
        "000123_2012_1",
        "000123-2012",
        "+00123_2012",
        "00012é_2012",
    ] {
        let refused = text.parse::<Review>().expect_err(text);
        assert!(matches!(refused, KeyError::Malformed { .. }), "{text}");
    }
    assert!("a!b!c".parse::<CompoundKey<(String, String)>>().is_err());
    assert_eq!(Digits::<4>::new(10_000), Err(KeyError::TooLarge { digits: 4, value: 10_000 }));
    assert_eq!(Digits::<20>::MAX.get(), u64::MAX);
    assert_eq!(check(&"x".repeat(512)), Ok(()));
    assert_eq!(check(&"\u{1f600}".repeat(257)), Err(KeyError::TooLong(514)));
}

#[tokio::test]
async fn t6_an_employee_with_all_reviews_is_one_request() {
    let fixture = Fixture::new().await;
    let table = fixture.table("Reviews").await;
    for employee in [12, 122, 123, 124] {
        let number = Digits::<6>::new(employee).expect("six digits");
        table.insert(&DynamicEntity::new("Sales", key((number,)))).await.expect("inserted");
        for year in 2008..=2012 {
            let row = key((number, Digits::<4>::new(year).expect("four digits")));
            table.insert(&DynamicEntity::new("Sales", row).with("Rating", 3)).await.expect("inserted");
        }
    }
    let employee = key((Digits::<6>::new(123).expect("six digits"),));
    let read = family::<DynamicEntity, DynamicEntity>(&table, "Sales", &employee);
    let (found, requests) = fixture.counted(read).await;
    let found = found.expect("read");
    assert_eq!(requests, 1);
    assert_eq!(found.head.map(|head| head.row_key).as_deref(), Some("000123"));
    let rows: Vec<_> = found.records.iter().map(|record| record.row_key.as_str()).collect();
    assert_eq!(rows, ["000123_2008", "000123_2009", "000123_2010", "000123_2011", "000123_2012"]);

    let [first, last] = [2010, 2011].map(|year| Digits::<4>::new(year).expect("four digits"));
    let some = table.query::<DynamicEntity>().partition("Sales").filter(employee.descendants_between(&first, &last));
    let (some, requests) = fixture.counted(some.all()).await;
    let rows: Vec<_> = some.expect("read").into_iter().map(|record| record.row_key).collect();
    assert_eq!((rows, requests), (vec!["000123_2010".to_owned(), "000123_2011".to_owned()], 1));

    let nobody = key((Digits::<6>::new(9).expect("six digits"),));
    let nobody = family::<DynamicEntity, DynamicEntity>(&table, "Sales", &nobody).await.expect("read");
    assert!(nobody.head.is_none() && nobody.records.is_empty());
}

#[tokio::test]
async fn t6_odd_names_are_stored_and_found_by_the_service() {
    let fixture = Fixture::new().await;
    let table = fixture.table("Reviews").await;
    let names = [
        "a",
        "ab",
        "a b",
        "a!",
        "a/b",
        "a\\",
        "a#1",
        "a?",
        "a.b",
        "it's",
        "\u{1f600}",
        "\u{ffff}",
        "",
        "a\u{7f}",
        "100%",
    ];
    for name in names {
        for year in [2011_u16, 2012] {
            let row = key((name.to_owned(), year));
            table.insert(&DynamicEntity::new("Sales", row)).await.expect(name);
        }
    }
    for name in names {
        let parent = key((name.to_owned(),));
        let found = table.query::<DynamicEntity>().partition("Sales").filter(parent.with_descendants());
        let rows: Vec<_> = found.all().await.expect("read").into_iter().map(|row| row.row_key).collect();
        assert_eq!(rows, [2011_u16, 2012].map(|year| key((name.to_owned(), year)).to_string()), "{name}");
    }
    // The service's order is that of the parts.
    let rows = table.query::<DynamicEntity>().partition("Sales").all().await.expect("read");
    let read: Vec<(String, u16)> =
        rows.iter().map(|row| row.row_key.parse::<CompoundKey<_>>().expect("ours").into_parts()).collect();
    assert!(read.is_sorted_by(|a, b| service_order(&a.0, &b.0).then(a.1.cmp(&b.1)).is_lt()));
}
