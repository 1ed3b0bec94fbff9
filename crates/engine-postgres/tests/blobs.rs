//! Blobs keep every promise on the engine over PostgreSQL, on a schema of its own for each; and servers whose clocks
//! differ agree about time.

use larimar_engine::blob::bytes::MemoryBytes;
use larimar_engine::blob::{
    AccessConditions, BlobRef, BlobReject, Blobs, LeaseReject, Leased, ListItem, ListQuery, NewBlob, NewContainer,
    Written,
};
use larimar_engine::{Clock as _, EngineError, Reject, SpaceId, SystemClock};
use larimar_engine_postgres::{PostgresEngine, Settings};
use larimar_model::blob::{BreakPeriod, Conditions, LeaseAction, LeaseDuration, LeaseId, LeaseState};
use larimar_model::{Guid, Timestamp};
use larimar_testkit::bytes::eventually;
use larimar_testkit::postgres::{Cluster, TurnedClock};
use std::sync::Arc;
use std::time::Duration;

/// An engine with tables of its own, in a database whose clock the test can move.
async fn fresh() -> (Arc<PostgresEngine>, Arc<MemoryBytes>, TurnedClock<'static>) {
    let (url, clock) = Cluster::shared().fresh_url_with_clock();
    (open(&url).await, Arc::new(MemoryBytes::new(Duration::ZERO)), clock)
}

async fn open(url: &str) -> Arc<PostgresEngine> {
    Arc::new(PostgresEngine::open(&Settings::new(url)).await.expect("the database is there"))
}

larimar_testkit::blob_conformance!(fresh().await);

/// A server whose own clock is off by so much.
struct Server {
    blobs: Blobs<PostgresEngine, MemoryBytes>,
    ahead: i64,
}

impl Server {
    async fn open(url: &str, bytes: &Arc<MemoryBytes>, ahead: i64) -> Self {
        Self { blobs: Blobs::new(open(url).await, Arc::clone(bytes)), ahead }
    }

    /// What its clock shows.
    fn now(&self) -> Timestamp {
        let span = Duration::from_secs(self.ahead.unsigned_abs());
        if self.ahead < 0 { SystemClock.now().before(span) } else { SystemClock.now().after(span) }
    }

    async fn act(&self, at: BlobRef<'_>, action: LeaseAction) -> Result<Leased, EngineError> {
        let done = self.blobs.lease_blob(at, (action, OTHER), &AccessConditions::default(), self.now()).await;
        done.map(|(_, leased)| leased)
    }

    async fn act_on_container(&self, action: LeaseAction) -> Result<Leased, EngineError> {
        let name = "container".parse().expect("a name");
        let done = self.blobs.lease_container("account", &name, (action, OTHER), &Conditions::NONE, self.now()).await;
        done.map(|(_, leased)| leased)
    }

    async fn put(&self, at: BlobRef<'_>) -> Result<Written, EngineError> {
        let (new, access) = (NewBlob::default(), AccessConditions::default());
        self.blobs.put_block_blob(at, None, &new, &access, self.now()).await
    }

    /// The blob's lease as its properties show it, and as its listing does.
    async fn states(&self, at: BlobRef<'_>) -> [LeaseState; 2] {
        let found =
            self.blobs.properties(at, None, &AccessConditions::default(), self.now()).await.expect("it is there");
        let query = ListQuery { items_max: 10, ..ListQuery::default() };
        let page = self.blobs.list_blobs(at.container, &query, self.now()).await.expect("a page");
        let Some(ListItem::Blob(listed)) = page.items.first() else { panic!("the blob is listed") };
        [found.lease.state, listed.properties.lease.state]
    }

    async fn container_state(&self) -> LeaseState {
        let name = "container".parse().expect("a name");
        self.blobs.find_container("account", &name, self.now()).await.expect("it is there").lease.state
    }
}

const OWN: LeaseId = LeaseId(Guid([1; 16]));
const OTHER: LeaseId = LeaseId(Guid([2; 16]));
const ACQUIRE: LeaseAction = LeaseAction::Acquire { duration: LeaseDuration::Seconds(60), proposed: None };
const ACQUIRE_OWN: LeaseAction = LeaseAction::Acquire { duration: LeaseDuration::Seconds(60), proposed: Some(OWN) };

/// Three servers over one database, one with the right time, one five minutes ahead, one five minutes behind; a
/// container and a blob.
async fn three() -> (Vec<Server>, SpaceId, TurnedClock<'static>) {
    let (url, clock) = Cluster::shared().fresh_url_with_clock();
    let bytes = Arc::new(MemoryBytes::new(Duration::ZERO));
    let mut servers = Vec::new();
    for ahead in [0, 300, -300] {
        servers.push(Server::open(&url, &bytes, ahead).await);
    }
    let (one, name) = (&servers[0], "container".parse().expect("a name"));
    let created = one.blobs.create_container("account", &name, &NewContainer::default(), one.now()).await;
    let container = created.expect("it is created").id;
    (servers, container, clock)
}

fn refused<T>(reject: impl Into<BlobReject>) -> Result<T, EngineError> {
    Err(EngineError::Reject(Reject::Blob(reject.into())))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn servers_whose_clocks_differ_judge_the_lease_of_a_blob_alike() {
    let (servers, container, clock) = three().await;
    let name = "b".parse().expect("a name");
    let at = BlobRef { container, name: &name };
    servers[0].put(at).await.expect("it is put");
    for (number, holder) in servers.iter().enumerate() {
        holder.act(at, ACQUIRE_OWN).await.expect("it is free");
        for server in &servers {
            assert_eq!(server.states(at).await, [LeaseState::Leased; 2], "acquired through {number}");
            assert_eq!(server.act(at, ACQUIRE).await, refused(LeaseReject::AlreadyPresent));
            assert_eq!(server.put(at).await, refused(LeaseReject::IdMissing));
        }
        // Each server renews what another has acquired, and the lease still has its whole time.
        let next = &servers[(number + 1) % 3];
        next.act(at, LeaseAction::Renew { id: OWN }).await.expect("the id is right");
        let broken = next.act(at, LeaseAction::Break { period: BreakPeriod::new(30).ok() }).await;
        assert_eq!(broken.map(|leased| leased.seconds_left), Ok(Some(30)));
        for server in &servers {
            assert_eq!(server.states(at).await, [LeaseState::Breaking; 2]);
        }
        // Broken at once is broken everywhere at once.
        next.act(at, LeaseAction::Break { period: BreakPeriod::new(0).ok() }).await.expect("it can be broken");
        for server in &servers {
            assert_eq!(server.states(at).await, [LeaseState::Broken; 2]);
        }
        holder.act(at, ACQUIRE_OWN).await.expect("it is free");
        clock.advance(Duration::from_secs(61));
        for server in &servers {
            eventually("the lease expires by the database's clock", async || {
                server.states(at).await == [LeaseState::Expired; 2]
            })
            .await;
        }
        servers[(number + 2) % 3].put(at).await.expect("nobody has the lease");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn servers_whose_clocks_differ_judge_the_lease_of_a_container_alike() {
    let (servers, _, clock) = three().await;
    for (number, holder) in servers.iter().enumerate() {
        holder.act_on_container(ACQUIRE_OWN).await.expect("it is free");
        for server in &servers {
            eventually("the lease is seen everywhere", async || server.container_state().await == LeaseState::Leased)
                .await;
            let acquired = server.act_on_container(ACQUIRE).await;
            assert_eq!(acquired, refused(BlobReject::ContainerLease(LeaseReject::AlreadyPresent)), "held by {number}");
            let name = "container".parse().expect("a name");
            let deleted =
                server.blobs.delete_container("account", &name, &AccessConditions::default(), server.now()).await;
            assert_eq!(deleted, refused(BlobReject::ContainerLease(LeaseReject::IdMissing)));
        }
        let next = &servers[(number + 1) % 3];
        next.act_on_container(LeaseAction::Renew { id: OWN }).await.expect("the id is right");
        clock.advance(Duration::from_secs(61));
        for server in &servers {
            eventually("the lease expires", async || server.container_state().await == LeaseState::Expired).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn snapshots_and_changes_through_servers_whose_clocks_differ_are_in_order() {
    let (servers, container, _) = three().await;
    let name = "b".parse().expect("a name");
    let at = BlobRef { container, name: &name };
    let (mut changed, mut taken) = (Timestamp::from_ticks(0), None);
    for round in 0..30 {
        let server = &servers[round % 3];
        let written = server.put(at).await.expect("it is put").last_modified;
        assert!(written > changed, "{written} after {changed}");
        // The time of the database, which is that of this machine.
        let difference = written.to_unix().abs_diff(SystemClock.now().to_unix());
        assert!(difference < Duration::from_secs(120), "{difference:?} off the database's clock");
        changed = written;
        let snapshot =
            server.blobs.snapshot_blob(at, None, &AccessConditions::default(), server.now()).await.expect("taken").0;
        assert!(Some(snapshot) > taken, "{snapshot:?} after {taken:?}");
        taken = Some(snapshot);
    }
}
