//! Promises about spaces: creating, finding, listing, changing and dropping them.

use super::rows::{NOW, create, name, page, put, read, store, unbounded, write};
use larimar_engine::{
    Changed, Engine, Key, KeyRange, Position, ReadError, Renamed, RowRef, SpaceId, SpaceKind, SpaceName, WriteError,
};
use std::collections::BTreeSet;

/// A name is given once; the space is found by it, with the bytes it was created with.
pub async fn a_space_is_created_once(engine: &impl Engine) {
    assert_eq!(engine.space(name("t")).await, Ok(None));
    let id = engine.create_space(name("t"), b"meta").await.expect("no fault").expect("the name is free");
    assert_ne!(id, SpaceId::SYSTEM);
    let found = engine.space(name("t")).await.expect("no fault").expect("the space is there");
    assert_eq!((found.id, &*found.meta), (id, b"meta".as_slice()));
    assert_eq!(engine.create_space(name("t"), b"meta").await, Ok(None));
}

/// A refused creation changes neither the number, the bytes nor the rows of the space that is there.
pub async fn creating_an_existing_space_keeps_its_bytes(engine: &impl Engine) {
    let id = engine.create_space(name("t"), b"first").await.expect("no fault").expect("the name is free");
    store(engine, id, "p", "r", b"x").await;
    assert_eq!(engine.create_space(name("t"), b"second").await, Ok(None));
    let found = engine.space(name("t")).await.expect("no fault").expect("the space is there");
    assert_eq!((found.id, &*found.meta), (id, b"first".as_slice()));
    assert!(read(engine, id, "p", "r").await.is_some());
}

/// The same name in another account, or in other letters, is another space.
pub async fn names_are_told_apart_by_account_and_spelling(engine: &impl Engine) {
    let of = |account, name| SpaceName { account, kind: SpaceKind::Table, name };
    let names = [of("one", "table"), of("two", "table"), of("one", "Table"), of("onet", "able"), of("one", "tabl")];
    let mut ids = BTreeSet::new();
    for name in names {
        ids.insert(engine.create_space(name, name.account.as_bytes()).await.expect("no fault").expect("another name"));
    }
    assert_eq!(ids.len(), names.len());
    assert_eq!(engine.drop_space(of("one", "table")).await, Ok(true));
    for name in &names[1..] {
        let found = engine.space(*name).await.expect("no fault").expect("only one was dropped");
        assert_eq!(&*found.meta, name.account.as_bytes());
    }
}

/// A list begins at a name that need not exist, has the order of bytes, one account and at most `max`.
pub async fn spaces_are_listed_in_order_from_a_name_on(engine: &impl Engine) {
    for number in [3, 1, 4, 10, 5, 9, 2] {
        create(engine, &format!("t{number:02}")).await;
    }
    for account in ["accoun", "accounu", "account2", "zzz"] {
        let other = SpaceName { account, kind: SpaceKind::Table, name: "t03" };
        engine.create_space(other, b"").await.expect("no fault");
    }
    let list = async |from: &str, max| {
        let found = engine.list_spaces(name(from), max).await.expect("no fault");
        found.into_iter().map(|(name, _)| name).collect::<Vec<_>>()
    };
    assert_eq!(list("", 100).await, ["t01", "t02", "t03", "t04", "t05", "t09", "t10"]);
    assert_eq!(list("t03", 3).await, ["t03", "t04", "t05"]);
    assert_eq!(list("t06", 100).await, ["t09", "t10"]);
    assert_eq!(list("t11", 100).await, Vec::<String>::new());
    assert_eq!(list("", 0).await, Vec::<String>::new());
    for (name, space) in engine.list_spaces(name(""), 100).await.expect("no fault") {
        assert_eq!(engine.space(super::rows::name(&name)).await, Ok(Some(space)));
    }
}

/// Every account with a space is named once, also those whose names begin alike.
pub async fn accounts_are_listed_in_order(engine: &impl Engine) {
    assert_eq!(engine.accounts().await, Ok(vec![]));
    for (account, space) in [("two", "a"), ("one", "b"), ("one", "a"), ("on", "z"), ("three", "c")] {
        let name = SpaceName { account, kind: SpaceKind::Table, name: space };
        engine.create_space(name, b"").await.expect("no fault").expect("the name is free");
    }
    let gone = SpaceName { account: "three", kind: SpaceKind::Table, name: "c" };
    assert_eq!(engine.drop_space(gone).await, Ok(true));
    assert_eq!(engine.accounts().await, Ok(["on", "one", "two"].map(str::to_owned).into()));
}

/// Bytes that are changed are found by every way of looking; the number and the rows stay.
pub async fn the_bytes_of_a_space_can_be_changed(engine: &impl Engine) {
    assert_eq!(engine.change_space(name("t"), b"", b"new").await, Ok(Changed::Missing));
    assert_eq!(engine.space(name("t")).await, Ok(None), "changing creates nothing");
    let id = create(engine, "t").await;
    let version = store(engine, id, "p", "r", b"x").await;
    for meta in [b"new".as_slice(), b"", &[0xFF; 70_000]] {
        let before = engine.space(name("t")).await.expect("no fault").expect("the space is there").meta;
        assert_eq!(engine.change_space(name("t"), b"not these", b"lost").await, Ok(Changed::Other));
        assert_eq!(engine.change_space(name("t"), &before, meta).await, Ok(Changed::Yes));
        let found = engine.space(name("t")).await.expect("no fault").expect("the space is there");
        assert_eq!((found.id, &*found.meta), (id, meta));
        let listed = engine.list_spaces(name(""), 10).await.expect("no fault");
        assert_eq!(listed, [("t".to_owned(), found)]);
    }
    assert_eq!(read(engine, id, "p", "r").await, Some((version, b"x".to_vec())));
}

/// A space gets another name, of any account, with its number and rows; a name that is taken stays as it is.
pub async fn a_space_is_renamed_with_its_rows(engine: &impl Engine) {
    let to = SpaceName { account: "another", ..name("new") };
    assert_eq!(engine.rename_space(name("t"), to, b"new").await, Ok(Renamed::Missing));
    let id = create(engine, "t").await;
    let version = store(engine, id, "p", "r", b"x").await;
    let before = engine.space(name("t")).await;
    let taken = engine.create_space(to, b"taken").await.expect("no fault").expect("the name is free");
    assert_eq!(engine.rename_space(name("t"), to, b"new").await, Ok(Renamed::Taken));
    let found = engine.space(to).await.expect("no fault").expect("the space is there");
    assert_eq!((found.id, &*found.meta, engine.space(name("t")).await), (taken, b"taken".as_slice(), before));
    assert_eq!(engine.drop_space(to).await, Ok(true));
    assert_eq!(engine.rename_space(name("t"), to, b"new").await, Ok(Renamed::Yes));
    assert_eq!((engine.space(name("t")).await, engine.recent_space(name("t")).await), (Ok(None), Ok(None)));
    assert_eq!(engine.list_spaces(name(""), 10).await, Ok(vec![]));
    let found = engine.recent_space(to).await.expect("no fault").expect("the space is there");
    assert_eq!((found.id, &*found.meta), (id, b"new".as_slice()));
    assert_eq!(engine.list_spaces(SpaceName { name: "", ..to }, 10).await, Ok(vec![("new".to_owned(), found)]));
    assert_eq!(read(engine, id, "p", "r").await, Some((version, b"x".to_vec())));
    write(engine, id, "p", put("r", b"y"), NOW).await.expect("it takes writes");
    assert!(engine.create_space(name("t"), b"").await.expect("no fault").is_some_and(|other| other != id));
}

/// A space is dropped under a condition only as it was seen: what another caller changed meanwhile stays.
pub async fn a_space_is_dropped_only_as_it_was_seen(engine: &impl Engine) {
    assert_eq!(engine.drop_space_if(name("t"), b"").await, Ok(Changed::Missing));
    let id = engine.create_space(name("t"), b"free").await.expect("no fault").expect("the name is free");
    store(engine, id, "p", "r", b"x").await;
    assert_eq!(engine.change_space(name("t"), b"free", b"leased").await, Ok(Changed::Yes));
    assert_eq!(engine.drop_space_if(name("t"), b"free").await, Ok(Changed::Other));
    let found = engine.space(name("t")).await.expect("no fault").expect("the space is there");
    assert_eq!((found.id, &*found.meta), (id, b"leased".as_slice()));
    assert!(read(engine, id, "p", "r").await.is_some(), "its rows are there too");
    assert_eq!(engine.drop_space_if(name("t"), b"leased").await, Ok(Changed::Yes));
    assert_eq!(engine.space(name("t")).await, Ok(None));
    assert_eq!(engine.recent_space(name("t")).await, Ok(None));
    assert_eq!(write(engine, id, "p", put("r", b"y"), NOW).await, Err(WriteError::SpaceGone));
}

/// A dropped space is found in no way, and neither are its rows.
pub async fn a_dropped_space_is_gone(engine: &impl Engine) {
    assert_eq!(engine.drop_space(name("t")).await, Ok(false));
    let id = create(engine, "t").await;
    for row in ["a", "b", "c"] {
        store(engine, id, "p", row, b"x").await;
    }
    assert_eq!(engine.drop_space(name("t")).await, Ok(true));
    assert_eq!(engine.drop_space(name("t")).await, Ok(false));
    assert_eq!(engine.space(name("t")).await, Ok(None));
    assert_eq!(engine.change_space(name("t"), b"", b"x").await, Ok(Changed::Missing));
    assert_eq!(engine.list_spaces(name(""), 10).await, Ok(vec![]));
    let all = KeyRange::all();
    let scan = engine.scan(id, &all, unbounded(), |_| panic!("a row of a dropped space"));
    assert_eq!(scan.await, Err(ReadError::SpaceGone));
    let key = Key { space: id, partition: "p", row: "a" };
    assert_eq!(engine.get(key, |found| found.is_some()).await, Err(ReadError::SpaceGone));
}

/// Whatever is dropped and created, no number comes back.
pub async fn numbers_of_spaces_are_never_reused(engine: &impl Engine) {
    let mut seen = BTreeSet::from([SpaceId::SYSTEM]);
    for round in 0..20 {
        for space in ["a", "b"] {
            assert!(seen.insert(create(engine, space).await), "a number came back in round {round}");
        }
        assert_eq!(engine.drop_space(name("b")).await, Ok(true));
        assert_eq!(engine.drop_space(name("a")).await, Ok(true));
    }
}

/// The rows of a dropped space do not come back with its name.
pub async fn a_space_created_again_is_empty(engine: &impl Engine) {
    for round in 0..5 {
        let id = create(engine, "t").await;
        let (rows, _) = page(engine, id, &KeyRange::all(), unbounded()).await;
        assert_eq!(rows.len(), 0, "round {round}");
        assert_eq!(read(engine, id, "p", "r0").await, None);
        for row in 0..10 {
            store(engine, id, "p", &format!("r{row}"), b"x").await;
        }
        assert_eq!(engine.drop_space(name("t")).await, Ok(true));
    }
}

/// A number that was dropped takes no write, not even after its name was created again.
pub async fn writes_to_a_dropped_space_are_refused(engine: &impl Engine) {
    let old = create(engine, "t").await;
    store(engine, old, "p", "r", b"x").await;
    assert_eq!(engine.drop_space(name("t")).await, Ok(true));
    assert_eq!(write(engine, old, "p", put("r", b"y"), NOW).await, Err(WriteError::SpaceGone));
    let new = create(engine, "t").await;
    assert_eq!(write(engine, old, "p", put("r", b"y"), NOW).await, Err(WriteError::SpaceGone));
    let ops = [put("a", b"y"), put("b", b"y")];
    assert_eq!(engine.apply(old, "p", &ops, NOW).await, Err(WriteError::SpaceGone));
    assert_eq!(read(engine, new, "p", "r").await, None);
    let never = SpaceId(new.0 + 1000);
    assert_eq!(write(engine, never, "p", put("r", b"y"), NOW).await, Err(WriteError::SpaceGone));
}

/// Only the named space goes.
pub async fn dropping_one_space_leaves_the_others(engine: &impl Engine) {
    let mut ids = Vec::new();
    for space in ["ta", "tab", "tb"] {
        let id = create(engine, space).await;
        store(engine, id, "p", "r", space.as_bytes()).await;
        ids.push((space, id));
    }
    assert_eq!(engine.drop_space(name("ta")).await, Ok(true));
    for (space, id) in &ids[1..] {
        assert_eq!(read(engine, *id, "p", "r").await.map(|(_, body)| body), Some(space.as_bytes().to_vec()));
        store(engine, *id, "p", "s", b"more").await;
    }
}

/// The space of the service's own rows is there without being created, and in no list.
pub async fn the_system_space_always_exists(engine: &impl Engine) {
    let version = store(engine, SpaceId::SYSTEM, "settings", "cors", b"x").await;
    assert_eq!(read(engine, SpaceId::SYSTEM, "settings", "cors").await, Some((version, b"x".to_vec())));
    assert_eq!(engine.list_spaces(name(""), 10).await, Ok(vec![]));
    create(engine, "t").await;
    assert_eq!(engine.drop_space(name("t")).await, Ok(true));
    assert_eq!(read(engine, SpaceId::SYSTEM, "settings", "cors").await, Some((version, b"x".to_vec())));
}

/// A fresh engine takes writes, says so, and answers for its figures.
pub async fn an_engine_is_ready(engine: &impl Engine) {
    assert_eq!(engine.ready(), Ok(()));
    let id = create(engine, "t").await;
    store(engine, id, "p", "r", b"x").await;
    assert_eq!(engine.ready(), Ok(()));
    let _ = engine.statistics();
}

/// The rows of a dropped container are hidden, but can be read in order to reclaim what they point to, until that is
/// done; those of a table cannot.
pub async fn rows_of_a_dropped_container_are_kept_until_they_are_forgotten(engine: &impl Engine) {
    let container = |name| SpaceName { account: "account", kind: SpaceKind::Container, name };
    let table = create(engine, "table").await;
    let id = engine.create_space(container("c"), b"").await.expect("no fault").expect("the name is free");
    let other = engine.create_space(container("d"), b"").await.expect("no fault").expect("the name is free");
    let mut stored = Vec::new();
    for partition in 0..70 {
        for row in 0..10 {
            stored.push((format!("p{partition:02}"), format!("r{row}")));
        }
    }
    for (partition, row) in &stored {
        store(engine, id, partition, row, b"x").await;
        store(engine, table, partition, row, b"x").await;
    }
    store(engine, other, "p", "r", b"x").await;
    assert_eq!(engine.claim_dropped(SpaceId::SYSTEM).await, Ok(None));
    assert_eq!(engine.drop_space(container("c")).await, Ok(true));
    assert_eq!(engine.drop_space(name("table")).await, Ok(true));
    let again = engine.create_space(container("c"), b"").await.expect("no fault").expect("the name is free");
    let key = Key { space: id, partition: "p00", row: "r0" };
    assert_eq!(engine.get(key, |row| row.is_some()).await, Err(ReadError::SpaceGone));
    assert_eq!(write(engine, id, "p", put("r", b"x"), NOW).await, Err(WriteError::SpaceGone));

    for _ in 0..2 {
        assert_eq!(engine.claim_dropped(SpaceId::SYSTEM).await, Ok(Some(id)), "the holder gets it again");
        assert_eq!(engine.claim_dropped(id).await, Ok(None));
        let mut found = Vec::new();
        let mut from = Some(Position::new("", ""));
        while let Some(place) = from {
            let visit = |row: RowRef<'_>| found.push((row.partition.to_owned(), row.row.to_owned()));
            from = engine.read_dropped(id, &place, visit).await.expect("the rows are there");
        }
        assert_eq!(found, stored);
    }
    for living in [other, again, table] {
        let read = engine.read_dropped(living, &Position::new("", ""), |_| ()).await;
        assert_eq!(read, Err(ReadError::SpaceGone), "only dropped containers are read this way");
    }
    engine.forget_dropped(id).await.expect("no fault");
    assert_eq!(engine.claim_dropped(SpaceId::SYSTEM).await, Ok(None));
    assert_eq!(engine.read_dropped(id, &Position::new("", ""), |_| ()).await, Err(ReadError::SpaceGone));
    assert!(read(engine, other, "p", "r").await.is_some());
}
