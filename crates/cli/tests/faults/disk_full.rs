//! A disk that fills up under writers and has room again: refusals with the protocol's code, reads that go on,
//! writes that resume without a restart, and nothing acknowledged lost.
//!
//! The test starts itself again inside a namespace of its own, where it may mount a small file system.

use super::EXE;
use larimar_testkit::http::{Batch, BatchReply, Client, Response, entity, entity_path};
use larimar_testkit::{Dice, Launch, http};
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

pub(super) const FOLDER: &str = "LARIMAR_TEST_SMALL_DISK";
const WRITERS: usize = 4;
pub(super) const REFUSED: usize = 2000;
const FILLS_MAX: usize = 20;

#[test]
fn a_full_disk_is_told_costs_nothing_and_heals_without_a_restart() {
    run("faults::disk_full::on_a_small_disk");
}

/// Runs an ignored test on a file system of 200 MB.
pub(super) fn run(test: &str) {
    if !Command::new("unshare").args(["-rm", "true"]).status().is_ok_and(|status| status.success()) {
        println!("NOT RUN: this system allows no namespace to mount a small file system in");
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let script = "mount -t tmpfs -o size=200m none \"$0\" && exec \"$1\" --ignored --exact \"$2\" --nocapture";
    let status = Command::new("unshare")
        .args(["-rm", "sh", "-c", script])
        .args([folder.path().as_os_str(), std::env::current_exe().expect("our own path").as_os_str(), test.as_ref()])
        .env(FOLDER, folder.path())
        .status();
    assert!(status.is_ok_and(|status| status.success()), "the test on the small disk failed");
}

#[test]
#[ignore = "started by the test above, on a small file system"]
fn on_a_small_disk() {
    let disk = PathBuf::from(std::env::var_os(FOLDER).expect("the folder's name"));
    let ballast = disk.join("ballast");
    let server = Launch::new(EXE, disk.join("data")).start();
    let client = server.client();
    client.create_table("tab");
    let large = format!(r#""V":"{}""#, "x".repeat(500));
    let mut acknowledged = BTreeSet::new();
    let mut unsure = BTreeSet::new();
    // Half of the disk stays free for a journal beside the tables that it is flushed to.
    for (round, ballast_bytes) in [150 << 20, 60 << 20].into_iter().enumerate() {
        std::fs::write(&ballast, vec![1; ballast_bytes]).expect("room for ballast");
        fill(&server.client(), round, &mut acknowledged, &mut unsure);
        check(&client, &acknowledged, &unsure);
        // Thousands of refusals are a few lines in the log.
        let lines = server.output().lines().count();
        for number in 0..REFUSED {
            let reply = client.post("/tab", entity("p", &format!("refused-{round}-{number}"), &large)).send();
            if reply.status == 201 {
                acknowledged.insert(format!("refused-{round}-{number}"));
            }
        }
        let more = server.output().lines().count() - lines;
        assert!(more < REFUSED / 20, "{more} lines for {REFUSED} refused requests: {}", server.output());
        // A flush may have made room meanwhile: what frees it is filled again.
        let is_not_ready = (1..=FILLS_MAX).any(|fills| {
            let (ready, _) = admin(&server, "/ready");
            if ready != 503 {
                fill(&server.client(), round + 2 * fills, &mut acknowledged, &mut unsure);
            }
            ready == 503
        });
        assert!(is_not_ready, "a server that cannot write is not ready");
        let (health, _) = admin(&server, "/health");
        assert_eq!(health, 200, "but it lives");
        std::fs::remove_file(&ballast).expect("the ballast is there");
        wait_for_writes(&client, round, &mut acknowledged);
        check(&client, &acknowledged, &unsure);
    }
    let server = server.kill().start();
    check(&server.client(), &acknowledged, &unsure);
    println!("{} rows acknowledged on a disk that was full twice, none lost", acknowledged.len());
}

/// Writes single rows and transactions from several threads until each has been refused.
pub(super) fn fill(client: &Client, round: usize, acknowledged: &mut BTreeSet<String>, unsure: &mut BTreeSet<String>) {
    let results: Vec<_> = std::thread::scope(|scope| {
        let writers: Vec<_> = (0..WRITERS)
            .map(|writer| {
                let client = client.of_account(http::ACCOUNT, http::KEY);
                scope.spawn(move || fill_one(&client, &format!("{round}-{writer}")))
            })
            .collect();
        writers.into_iter().map(|writer| writer.join().expect("the writer did not panic")).collect()
    });
    for (rows, refused) in results {
        acknowledged.extend(rows);
        unsure.extend(refused);
    }
}

/// Returns the rows that were acknowledged, and those of the request that was refused.
fn fill_one(client: &Client, prefix: &str) -> (Vec<String>, Vec<String>) {
    let mut dice = Dice::new(prefix.len() as u64 + u64::from(prefix.as_bytes()[2]));
    let mut rows = Vec::new();
    for number in 0..100_000 {
        let members = format!(r#""V":"{}""#, noise(&mut dice));
        if number % 3 == 0 {
            let names: Vec<String> = (0..5).map(|part| format!("{prefix}-{number}-{part}")).collect();
            let batch = names.iter().fold(Batch::new(), |batch, row| batch.insert(client, "tab", "p", row, &members));
            let reply = batch.request(client).send();
            if is_refused(&reply) {
                return (rows, names);
            }
            assert_eq!(BatchReply::new(reply).statuses(), [204; 5]);
            rows.extend(names);
        } else {
            let row = format!("{prefix}-{number}");
            let reply = client.post("/tab", entity("p", &row, &members)).header("Prefer", "return-no-content").send();
            if is_refused(&reply) {
                return (rows, vec![row]);
            }
            reply.is_status(204);
            rows.push(row);
        }
    }
    panic!("the disk should be full by now");
}

/// Whether this is the protocol's way to say that writing is not possible now.
pub(super) fn is_refused(reply: &Response) -> bool {
    let is_busy = reply.status == 503 && reply.code() == "ServerBusy";
    let is_busy_inside = reply.status == 202 && reply.text().contains("\"code\":\"ServerBusy\"");
    is_busy || is_busy_inside || reply.status == 500 && reply.code() == "InternalError"
}

/// Text that does not compress.
pub(super) fn noise(dice: &mut Dice) -> String {
    (0..1200).map(|_| format!("{:016x}", dice.next())).collect()
}

/// Reads go on and show what was acknowledged, and of the rest whole requests or nothing.
pub(super) fn check(client: &Client, acknowledged: &BTreeSet<String>, unsure: &BTreeSet<String>) {
    let mut found = BTreeSet::new();
    let mut token = None::<(String, String)>;
    for _ in 0..10_000 {
        let mut request = client.get("/tab()").query("$select", "RowKey");
        if let Some((partition, row)) = &token {
            request = request.query("NextPartitionKey", partition).query("NextRowKey", row);
        }
        let reply = request.send();
        reply.is_status(200);
        found.extend(reply.column("RowKey"));
        let part = |name: &str| reply.header(name).map(str::to_owned);
        token = part("x-ms-continuation-NextPartitionKey").zip(part("x-ms-continuation-NextRowKey"));
        if token.is_none() {
            break;
        }
    }
    let lost: Vec<_> = acknowledged.difference(&found).collect();
    assert_eq!(lost, Vec::<&String>::new(), "acknowledged and not there");
    let strange: Vec<_> = found.iter().filter(|row| !acknowledged.contains(*row) && !unsure.contains(*row)).collect();
    assert_eq!(strange, Vec::<&String>::new(), "there and never written");
    let transactions: BTreeSet<_> = unsure.iter().filter(|row| row.matches('-').count() == 3).collect();
    let names: BTreeSet<_> = transactions.iter().filter_map(|row| row.rsplit_once('-')).map(|(name, _)| name).collect();
    for name in names {
        let parts = (0..5).filter(|part| found.contains(&format!("{name}-{part}"))).count();
        assert!(parts == 0 || parts == 5, "{parts} of 5 rows of a transaction");
    }
    let some = acknowledged.iter().next().expect("a row was acknowledged");
    client.get(&entity_path("tab", "p", some)).send().is_status(200);
}

fn wait_for_writes(client: &Client, round: usize, acknowledged: &mut BTreeSet<String>) {
    let until = Instant::now() + Duration::from_secs(60);
    for attempt in 0.. {
        let row = format!("again-{round}-{attempt}");
        let reply = client.post("/tab", entity("p", &row, "")).header("Prefer", "return-no-content").send();
        if reply.status == 204 {
            acknowledged.insert(row);
            return;
        }
        assert!(is_refused(&reply), "{reply}");
        assert!(Instant::now() < until, "writes do not resume");
        std::thread::sleep(Duration::from_millis(100));
    }
}

pub(super) fn admin(server: &larimar_testkit::Server, path: &str) -> (u16, String) {
    let request = format!("GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
    let reply = http::exchange(server.admin_address(), request.as_bytes()).expect("an answer");
    (reply.status, reply.text().to_owned())
}
