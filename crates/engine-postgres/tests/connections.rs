//! Connections that cannot be opened: a server works with those it has, shares slots with other servers, and reads a
//! changed password from its file.

use crate::support::{NOW, create, name, read, write};
use larimar_engine::queue::{MessageHandle, Messages as _, NewMessage};
use larimar_engine::{
    Act, Budget, Engine, Expect, Flow, KeyRange, Op, Rows as _, SpaceId, SpaceKind, SpaceName, Spaces as _,
};
use larimar_engine_postgres::{Password, PostgresEngine, Settings};
use larimar_testkit::postgres::{Cluster, Database, Options};
use std::time::{Duration, Instant};

/// A limit for a test that hangs; nothing is measured by it.
const PATIENCE: Duration = Duration::from_secs(120);

fn queue_name(name: &str) -> SpaceName<'_> {
    SpaceName { account: "account", kind: SpaceKind::Queue, name }
}

/// Creates a role that is not a superuser, and returns its URL with a schema of its own.
fn role(cluster: &Cluster, options: &str) -> String {
    let url = cluster.fresh_url();
    let schema = url.rsplit("%3D").next().expect("a schema").to_owned();
    cluster.sql(&format!("CREATE ROLE server LOGIN {options}; GRANT ALL ON SCHEMA {schema} TO server"));
    let (_, rest) = url.split_once('@').expect("a user");
    format!("postgres://server@{rest}")
}

async fn open(settings: Settings) -> PostgresEngine {
    PostgresEngine::open(&settings).await.unwrap_or_else(|error| panic!("{error}"))
}

fn sessions(database: &Database) -> usize {
    let count = database.sql("SELECT count(*) FROM pg_stat_activity WHERE usename = 'server'");
    count.parse().expect("a count")
}

/// Requests of every kind, all of which must succeed.
async fn work(engine: &PostgresEngine, space: SpaceId, queue: SpaceId, worker: usize, steps: usize) {
    for step in 0..steps {
        let row = format!("{worker}-{step}");
        write(engine, space, &row, Expect::Absent, Act::Put(b"1"))
            .await
            .unwrap_or_else(|error| panic!("{row}: {error}"));
        assert!(read(engine, space, &row).await.is_some());
        let other = format!("{row}-b");
        let put = |row| Op { row, expect: Expect::Any, act: Act::Put(b"2") };
        engine.apply(space, "p", &[put(&row), put(&other)], NOW).await.unwrap_or_else(|error| panic!("{row}: {error}"));
        let budget = Budget { rows_max: 10, deadline: Instant::now() + PATIENCE };
        let scanned = engine.scan(space, &KeyRange::all(), budget, |_| Flow::Continue).await;
        scanned.unwrap_or_else(|error| panic!("{row}: {error}"));
        let new = NewMessage { text: b"x", hidden_for: Duration::ZERO, lives_for: None };
        engine.put_message(queue, new, NOW).await.unwrap_or_else(|error| panic!("{row}: {error}"));
        let claimed = engine.claim(queue, 1, PATIENCE, NOW).await.unwrap_or_else(|error| panic!("{row}: {error}"));
        for message in claimed {
            let handle = MessageHandle { id: message.id, receipt: message.receipt };
            engine.delete_message(queue, handle, NOW).await.unwrap_or_else(|error| panic!("{row}: {error}"));
        }
    }
}

async fn spaces(engine: &PostgresEngine) -> (SpaceId, SpaceId) {
    let space = create(engine, "t").await;
    (space, engine.create_space(queue_name("q"), b"").await.expect("no fault").expect("the name is free"))
}

/// Many at once, so that more connections are needed than there are.
async fn crowd(engine: &PostgresEngine, (space, queue): (SpaceId, SpaceId), number: usize, steps: usize) {
    let all = (0..12).map(|worker| work(engine, space, queue, number * 100 + worker, steps));
    tokio::time::timeout(PATIENCE, futures_util::future::join_all(all)).await.expect("all requests are served");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_role_with_few_connections_serves_every_kind_of_request() {
    for limit in [5, 1] {
        let cluster = Cluster::start();
        let url = role(&cluster, &format!("CONNECTION LIMIT {limit}"));
        let engine = open(Settings { timeout: PATIENCE, ..Settings::new(url) }).await;
        let spaces = spaces(&engine).await;
        crowd(&engine, spaces, 0, 10).await;
        engine.ready().expect("what is there works");
        assert_eq!(sessions(&cluster), limit);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_changed_password_stops_no_request_and_is_read_from_its_file() {
    let cluster = Cluster::start_with(&Options { password: Some("super"), ..Options::default() });
    let url = role(&cluster, "PASSWORD 'old'");
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("password");
    std::fs::write(&file, "old\n").expect("a file");
    let password = Some(Password::File(file.clone()));
    let engine = open(Settings { timeout: PATIENCE, password, ..Settings::new(url) }).await;
    let spaces = spaces(&engine).await;
    crowd(&engine, spaces, 0, 2).await;
    cluster.sql("ALTER ROLE server PASSWORD 'new'");
    // All but five are gone and cannot be replaced.
    let end = "SELECT pg_terminate_backend(pid) FROM (SELECT pid FROM pg_stat_activity WHERE usename = 'server' \
               ORDER BY pid OFFSET 5) AS rest";
    cluster.sql(end);
    let until = Instant::now() + PATIENCE;
    while sessions(&cluster) != 5 {
        assert!(Instant::now() < until, "{} sessions", sessions(&cluster));
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    // The engine has seen the ends of its connections when reads on each of them have been answered.
    tokio::time::sleep(Duration::from_millis(200)).await;
    // Longer than requests wait for a database that is away.
    let started = Instant::now();
    let mut round = 1;
    while started.elapsed() < Duration::from_secs(7) {
        crowd(&engine, spaces, round, 2).await;
        engine.ready().expect("five connections work");
        round += 1;
    }
    assert!(sessions(&cluster) <= 5, "the old password is not good any more");
    std::fs::write(&file, "new\n").expect("a file");
    while sessions(&cluster) <= 5 {
        assert!(Instant::now() < until + PATIENCE, "no connection is made with the new password");
        crowd(&engine, spaces, round, 1).await;
        round += 1;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn servers_that_need_more_connections_than_there_are_share_them() {
    let slots = [("max_connections", "24"), ("superuser_reserved_connections", "4")];
    let cluster = Cluster::start_with(&Options { settings: &slots, ..Options::default() });
    let url = role(&cluster, "");
    let settings = Settings { timeout: PATIENCE, ..Settings::new(url) };
    let one = open(settings.clone()).await;
    let both = spaces(&one).await;
    // The first has all that there are before the others come, and stays busy.
    crowd(&one, both, 0, 2).await;
    let others = async {
        let (two, three) = (open(settings.clone()).await, open(settings.clone()).await);
        tokio::join!(crowd(&two, both, 20, 3), crowd(&three, both, 30, 3));
        assert!(two.space(name("t")).await.expect("no fault").is_some());
        (two, three)
    };
    let busy = async {
        let mut round = 1;
        loop {
            crowd(&one, both, 100 + round, 1).await;
            round += 1;
        }
    };
    tokio::select! {
        _ = others => {}
        () = busy => {}
        () = tokio::time::sleep(PATIENCE) => panic!("the others are locked out"),
    }
    crowd(&one, both, 1, 1).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_closed_engine_leaves_no_session() {
    let cluster = Cluster::start();
    let engine = open(Settings::new(role(&cluster, ""))).await;
    let spaces = spaces(&engine).await;
    crowd(&engine, spaces, 0, 2).await;
    assert!(sessions(&cluster) > 0);
    engine.close().await;
    let until = Instant::now() + PATIENCE;
    // The database notices the end of a connection a little later.
    while sessions(&cluster) > 0 {
        assert!(Instant::now() < until, "{} sessions", sessions(&cluster));
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    // A connection that is kept would be closed with the engine at the latest.
    drop(engine);
}
