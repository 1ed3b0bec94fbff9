//! Short words for the tests of this crate.

#![allow(dead_code, reason = "each test target uses some of it")]

use larimar_engine::{Act, Expect, Key, Op, Rows as _, SpaceId, SpaceKind, SpaceName, Spaces as _, WriteError};
use larimar_engine_postgres::{PostgresEngine, Settings};
use larimar_model::Timestamp;
use std::net::SocketAddr;
use std::time::Duration;

pub(crate) const NOW: Timestamp = Timestamp::from_ticks(638_500_000_000_000_000);

pub(crate) async fn open(url: &str) -> PostgresEngine {
    open_with(url, Duration::from_secs(15)).await
}

pub(crate) async fn open_with(url: &str, timeout: Duration) -> PostgresEngine {
    let settings = Settings { timeout, connections_max: 8, ..Settings::new(url) };
    PostgresEngine::open(&settings).await.expect("the database is there")
}

/// The URL with another address in it.
pub(crate) fn through(url: &str, address: SocketAddr) -> String {
    let (before, rest) = url.split_once('@').expect("a user");
    let (_, after) = rest.split_once('/').expect("a database");
    format!("{before}@{address}/{after}")
}

pub(crate) fn upstream(url: &str) -> SocketAddr {
    let (_, rest) = url.split_once('@').expect("a user");
    let (address, _) = rest.split_once('/').expect("a database");
    address.parse().expect("an address")
}

pub(crate) fn name(name: &str) -> SpaceName<'_> {
    SpaceName { account: "account", kind: SpaceKind::Table, name }
}

pub(crate) async fn create(engine: &PostgresEngine, space: &str) -> SpaceId {
    engine.create_space(name(space), b"").await.expect("no fault").expect("the name is free")
}

pub(crate) async fn write(
    engine: &PostgresEngine,
    space: SpaceId,
    row: &str,
    expect: Expect,
    act: Act<'_>,
) -> Result<Timestamp, WriteError> {
    let versions = engine.apply(space, "p", &[Op { row, expect, act }], NOW).await?;
    Ok(versions[0])
}

pub(crate) async fn read(engine: &PostgresEngine, space: SpaceId, row: &str) -> Option<(Timestamp, Vec<u8>)> {
    let key = Key { space, partition: "p", row };
    engine.get(key, |row| row.map(|row| (row.version, row.body.to_vec()))).await.expect("no fault")
}
