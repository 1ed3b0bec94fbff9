//! Background work. Work for all servers is done by one at a time: the one that holds the lease in the database.

use crate::connection::Connection;
use crate::core::{Core, random};
use crate::failure::Failure;
use crate::key;
use crate::pool::Pool;
use crate::statements::jobs::{
    CountDroppedSpaces, DeleteExpiredMessages, DeletePartitionUpTo, DeletePartitions, DroppedSpaces,
    ForgetDroppedSpace, HasExpiredMessages, LastOfSlice, ReleaseLease, TakeLease,
};
use crate::statements::messages::ClearMessages;
use larimar_engine::SpaceId;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// The right to do some work for a while. Other servers wait until it expires or is released.
struct Lease {
    name: &'static str,
    owner: i64,
}

impl Lease {
    fn new(name: &'static str) -> Self {
        Self { name, owner: random().cast_signed() }
    }

    /// Takes or renews the lease; `false` if another server has it.
    async fn hold(&self, connection: &Connection) -> Result<bool, Failure> {
        let (name, owner) = (self.name.as_bytes(), self.owner);
        let held = connection.query_first(&TakeLease { name, owner, ticks: ticks(LEASE_TIME) }).await?;
        Ok(held.is_some())
    }

    async fn release(&self, connection: &Connection) -> Result<(), Failure> {
        connection.execute(&ReleaseLease { name: self.name.as_bytes(), owner: self.owner }).await.map(drop)
    }
}

/// Watches the database, updates the statistics, and removes dropped spaces and expired messages when this server has
/// the lease; runs until aborted.
pub(crate) async fn run(core: Arc<Core>, pool: Arc<Pool>) {
    let lease = Lease::new("purge");
    loop {
        tokio::time::sleep(LOOK_EVERY).await;
        core.connections.close_idle();
        // While requests are refused at once, nothing else opens a connection.
        while core.health.ready().is_err() && core.connect().await.is_err() {
            tokio::time::sleep(PROBE_EVERY).await;
        }
        let Ok(pooled) = pool.get().await else { continue };
        let mut outcome = update_statistics(&core, &pooled).await;
        if let Ok(has_expired) = outcome
            && (has_expired || core.dropped_spaces.load(Ordering::Relaxed) > 0)
        {
            outcome = remove_with_lease(&core, &pooled, &lease).await.map(|()| false);
        }
        if let Err(failure) = outcome {
            let is_over = failure.ends_connection();
            tracing::warn!(reason = %failure.into_unavailable(), "background work was interrupted");
            if is_over {
                pooled.close();
            }
        }
    }
}

/// Updates the statistics; `true` if messages have expired.
async fn update_statistics(core: &Core, connection: &Connection) -> Result<bool, Failure> {
    if let Some((spaces,)) = connection.query_first(&CountDroppedSpaces {}).await? {
        core.dropped_spaces.store(spaces.cast_unsigned(), Ordering::Relaxed);
    }
    if let Some(size) = core.target.dialect.store_size()
        && let Some((bytes, dead)) = connection.query_first(&size).await?
    {
        core.store_bytes.store(bytes.cast_unsigned(), Ordering::Relaxed);
        core.reclaimable_bytes.store(dead.cast_unsigned(), Ordering::Relaxed);
    }
    if let Some(slots) = core.target.dialect.free_slots()
        && let Some((free,)) = connection.query_first(&slots).await?
    {
        core.connections.adapt(free);
    }
    Ok(connection.query_first(&HasExpiredMessages {}).await?.is_some())
}

async fn remove_with_lease(core: &Core, connection: &Connection, lease: &Lease) -> Result<(), Failure> {
    if !lease.hold(connection).await? {
        return Ok(());
    }
    let mut outcome = remove_expired(connection, lease).await;
    if outcome.is_ok() {
        outcome = remove_dropped_spaces(core, connection, lease).await;
    }
    if !matches!(outcome, Err(Failure::Unknown(_))) {
        lease.release(connection).await?;
    }
    outcome
}

async fn remove_dropped_spaces(core: &Core, connection: &Connection, lease: &Lease) -> Result<(), Failure> {
    for (id, age) in connection.query(&DroppedSpaces {}).await? {
        let space = SpaceId(id.cast_unsigned());
        while remove_messages(connection, id).await? || remove_rows(connection, space).await? {
            // Requests that wait for the disk come first.
            tokio::time::sleep(SLICE_PAUSE).await;
            if !lease.hold(connection).await? {
                return Ok(());
            }
        }
        // A write that began before the drop may still add a row. After this time none can.
        if age > ticks(core.target.timeout * 2) {
            connection.execute(&ForgetDroppedSpace { space: id }).await?;
        }
    }
    Ok(())
}

/// Removes the first rows of a space; `false` when none are left.
async fn remove_rows(connection: &Connection, space: SpaceId) -> Result<bool, Failure> {
    let (from, to) = (key::partition(space, ""), key::space_end(space));
    let last = LastOfSlice { first_pk: &from, end_pk: &to, skipped: SLICE_ROWS_MAX - 1 };
    let Some((pk, rk)) = connection.query_first(&last).await? else {
        return Ok(connection.execute(&DeletePartitions { first_pk: &from, end_pk: &to }).await? > 0);
    };
    connection.execute(&DeletePartitions { first_pk: &from, end_pk: &pk }).await?;
    connection.execute(&DeletePartitionUpTo { pk: &pk, last_rk: &rk }).await?;
    Ok(true)
}

/// Removes the first messages of a queue; `false` when none are left.
async fn remove_messages(connection: &Connection, queue: i64) -> Result<bool, Failure> {
    let clear = ClearMessages { queue, last_id: LAST_ID, count: SLICE_ROWS_MAX };
    Ok(connection.query_first(&clear).await?.is_some_and(|(found,)| found > 0))
}

/// Removes expired messages of all queues.
async fn remove_expired(connection: &Connection, lease: &Lease) -> Result<(), Failure> {
    for _ in 0..EXPIRED_SLICES_MAX {
        let (found,) =
            connection.query_first(&DeleteExpiredMessages { count: SLICE_ROWS_MAX }).await?.unwrap_or_default();
        if found < SLICE_ROWS_MAX || !lease.hold(connection).await? {
            return Ok(());
        }
        tokio::time::sleep(SLICE_PAUSE).await;
    }
    Ok(())
}

fn ticks(span: Duration) -> i64 {
    i64::try_from(span.as_nanos() / 100).unwrap_or(i64::MAX)
}

const LOOK_EVERY: Duration = Duration::from_secs(1);
const LEASE_TIME: Duration = Duration::from_secs(30);
const PROBE_EVERY: Duration = Duration::from_millis(250);
const SLICE_PAUSE: Duration = Duration::from_millis(5);
const SLICE_ROWS_MAX: i64 = 1000;
/// No message has an id after this one.
const LAST_ID: &[u8] = &[0xff; 17];
/// Slices of expired messages that are removed before dropped spaces.
const EXPIRED_SLICES_MAX: usize = 100;

#[cfg(all(test, feature = "test-postgres"))]
mod tests {
    use super::*;
    use crate::connections::Connections;
    use crate::core::LOCK_TIMEOUT;
    use crate::schema;
    use crate::settings::Settings;
    use larimar_testkit::postgres::Cluster;

    async fn connection(url: &str) -> Connection {
        let settings = Settings::new(url);
        let connection = Connection::open(
            &settings.target().expect("a URL"),
            LOCK_TIMEOUT,
            &Arc::default(),
            Connections::default().count(),
        )
        .await
        .expect("a connection");
        schema::prepare(&connection, settings.dialect).await.expect("the tables");
        connection
    }

    #[tokio::test]
    async fn one_server_at_a_time_has_the_lease_until_it_is_released_or_expires() {
        let url = Cluster::shared().fresh_url();
        let (here, there) = (connection(&url).await, connection(&url).await);
        let (one, two, other) = (Lease::new("work"), Lease::new("work"), Lease::new("other"));
        assert!(one.hold(&here).await.expect("an answer"));
        assert!(!two.hold(&there).await.expect("an answer"), "two hold it");
        assert!(one.hold(&here).await.expect("an answer"), "it is renewed");
        assert!(other.hold(&there).await.expect("an answer"), "another job is another lease");
        two.release(&there).await.expect("an answer");
        assert!(!two.hold(&there).await.expect("an answer"), "only the holder releases it");
        one.release(&here).await.expect("an answer");
        assert!(two.hold(&there).await.expect("an answer"));
        // The holder is gone and its lease has expired.
        there.run("UPDATE larimar_job SET until = 1").await.expect("an answer");
        assert!(one.hold(&here).await.expect("an answer"));
        assert!(!two.hold(&there).await.expect("an answer"));
    }

    #[tokio::test]
    async fn of_many_servers_that_ask_at_once_one_gets_the_lease() {
        let url = Cluster::shared().fresh_url();
        let mut connections = Vec::new();
        for _ in 0..6 {
            connections.push(connection(&url).await);
        }
        let leases: Vec<Lease> = connections.iter().map(|_| Lease::new("work")).collect();
        let asked = leases.iter().zip(&connections).map(|(lease, connection)| lease.hold(connection));
        let answers = futures_util::future::try_join_all(asked).await.expect("answers");
        assert_eq!(answers.iter().filter(|held| **held).count(), 1);
    }
}
