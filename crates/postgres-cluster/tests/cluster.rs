//! The fixture itself: what the tests of failures rely on.

#![allow(clippy::disallowed_methods, reason = "tests take their settings from the environment, and the time as it is")]

use larimar_postgres_cluster::{Binaries, Cluster, Options, Stop};
use std::io::{BufRead as _, BufReader};
use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const WAIT_MAX: Duration = Duration::from_secs(60);

/// Polls until a condition holds.
fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let until = Instant::now() + WAIT_MAX;
    while !holds() {
        assert!(Instant::now() < until, "{what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn listens(port: u16) -> bool {
    TcpStream::connect(("127.0.0.1", port)).is_ok()
}

#[test]
fn schemas_keep_tests_apart() {
    let cluster = Cluster::shared();
    let (one, two) = (cluster.fresh_url(), cluster.fresh_url());
    assert_ne!(one, two);
    let schema = |url: &str| url.split_once("search_path%3D").expect("a schema").1.to_owned();
    for name in [schema(&one), schema(&two)] {
        cluster.sql(&format!("CREATE TABLE {name}.t AS SELECT 1 AS v"));
        assert_eq!(cluster.sql(&format!("SELECT v, 'x' FROM {name}.t")), "1|x");
    }
    assert!(cluster.try_sql("SELECT no_such_column").expect_err("refused").contains("no_such_column"));
}

#[test]
fn commits_are_synced() {
    let cluster = Cluster::shared();
    for (setting, value) in [("fsync", "on"), ("synchronous_commit", "on"), ("full_page_writes", "on")] {
        assert_eq!(cluster.sql(&format!("SHOW {setting}")), value, "{setting}");
    }
}

#[test]
fn data_survives_every_way_to_stop() {
    let cluster = Cluster::start();
    cluster.sql("CREATE TABLE t (v int)");
    for (value, how) in [(1, Stop::Immediate), (2, Stop::Fast)] {
        cluster.sql(&format!("INSERT INTO t VALUES ({value})"));
        cluster.stop(how);
        assert!(!listens(cluster.port()), "{how:?}");
        assert!(cluster.try_sql("SELECT 1").is_err(), "{how:?}");
        cluster.start_again();
    }
    cluster.restart();
    assert_eq!(cluster.sql("SELECT count(*), sum(v) FROM t"), "2|3");
}

#[test]
fn a_dropped_cluster_leaves_nothing() {
    let cluster = Cluster::start();
    let (port, data) = (cluster.port(), cluster.sql("SHOW data_directory"));
    let folder = std::path::Path::new(&data).parent().expect("a folder around the data").to_owned();
    assert!(listens(port) && folder.is_dir());
    drop(cluster);
    assert!(!listens(port) && !folder.exists());

    let paused = Cluster::start();
    let port = paused.port();
    paused.pause();
    drop(paused);
    assert!(!listens(port));
}

/// The test starts its own program again as the process that is killed.
#[test]
fn a_killed_process_leaves_nothing() {
    const CHILD: &str = "LARIMAR_CLUSTER_TEST_CHILD";
    if std::env::var_os(CHILD).is_some() {
        let cluster = Cluster::start();
        println!("\ncluster:{}:{}", cluster.port(), cluster.sql("SHOW data_directory"));
        std::thread::sleep(WAIT_MAX);
        return;
    }
    let myself = std::env::current_exe().expect("this test's program");
    let mut child = Command::new(myself);
    child.args(["--exact", "a_killed_process_leaves_nothing", "--nocapture"]).env(CHILD, "1");
    let mut child = child.stdout(Stdio::piped()).spawn().expect("this test's program starts");
    let lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
    let line = lines.map_while(Result::ok).find(|line| line.starts_with("cluster:")).expect("a cluster");
    let (port, data) = line["cluster:".len()..].split_once(':').expect("a port and a folder");
    let port = port.parse().expect("a port");
    let folder = std::path::Path::new(data).parent().expect("a folder around the data");
    assert!(listens(port) && folder.is_dir());
    child.kill().expect("the child is ours");
    child.wait().expect("the child is ours");
    eventually("the cluster of a killed process stays", || !listens(port) && !folder.exists());
}

#[test]
fn a_paused_cluster_answers_when_it_is_resumed() {
    let cluster = Cluster::start();
    cluster.pause();
    let mut psql = Command::new(Binaries::find().expect("PostgreSQL").program("psql"));
    psql.args(["-XAt", "-d", cluster.url(), "-c", "SELECT 42"]).stdout(Stdio::piped());
    let mut asking = psql.spawn().expect("psql starts");
    std::thread::sleep(Duration::from_millis(200));
    assert!(asking.try_wait().expect("psql is ours").is_none(), "a paused cluster answered");
    cluster.resume();
    assert_eq!(asking.wait_with_output().expect("psql is ours").stdout, b"42\n");
}

#[test]
fn a_promoted_standby_has_every_commit_and_commits_alone() {
    let primary = Cluster::start();
    let standby = primary.standby();
    primary.sql("CREATE TABLE t AS SELECT generate_series(1, 1000) AS v");
    assert!(standby.try_sql("CREATE TABLE u (v int)").expect_err("refused").contains("read-only"));
    primary.stop(Stop::Immediate);
    standby.promote();
    standby.sql("INSERT INTO t VALUES (1001)");
    assert_eq!(standby.sql("SELECT count(*) FROM t"), "1001");

    let urls = Cluster::urls(&[&primary, &standby]);
    let mut psql = Command::new(Binaries::find().expect("PostgreSQL").program("psql"));
    let output = psql.args(["-XAt", "-d", &urls, "-c", "SHOW port"]).output().expect("psql runs");
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), standby.port().to_string());
}

#[test]
fn a_commit_waits_for_the_standby() {
    let primary = Cluster::start();
    let standby = primary.standby();
    primary.sql("CREATE TABLE t (v int)");
    standby.stop(Stop::Fast);
    let commit = std::thread::scope(|scope| {
        let commit = scope.spawn(|| primary.sql("INSERT INTO t VALUES (1)"));
        let waits = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep'";
        eventually("nothing waits for the standby", || primary.sql(waits) == "1");
        assert!(!commit.is_finished());
        standby.start_again();
        commit.join()
    });
    assert!(commit.is_ok());
    assert_eq!(primary.sql("SELECT count(*) FROM t"), "1");
}

#[test]
fn a_password_is_required() {
    let options = Options { password: Some("p@ss/1"), settings: &[("work_mem", "7MB")], ..Options::default() };
    let cluster = Cluster::start_with(&options);
    assert_eq!(cluster.sql("SHOW work_mem"), "7MB");
    let without = format!("postgres://larimar@127.0.0.1:{}/postgres", cluster.port());
    let mut psql = Command::new(Binaries::find().expect("PostgreSQL").program("psql"));
    let output = psql.args(["-XAtw", "-d", &without, "-c", "SELECT 1"]).output().expect("psql runs");
    assert!(!output.status.success());
}

#[test]
fn tls_is_required() {
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).expect("a certificate");
    let (certificate, key) = (made.cert.pem(), made.signing_key.serialize_pem());
    let options = Options { tls: Some((&certificate, &key)), password: Some("secret"), ..Options::default() };
    let cluster = Cluster::start_with(&options);
    assert_eq!(cluster.sql("SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()"), "t");
    let mut psql = Command::new(Binaries::find().expect("PostgreSQL").program("psql"));
    let url = format!("{}?sslmode=disable", cluster.url());
    let output = psql.args(["-XAt", "-d", &url, "-c", "SELECT 1"]).output().expect("psql runs");
    assert!(!output.status.success());

    let standby = cluster.standby();
    assert_eq!(standby.sql("SHOW ssl"), "on");
}
