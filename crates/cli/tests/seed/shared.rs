//! Several servers start at once over one database with the same seed.

use super::{folder, has_logged, launch, lines, tables, write};
use larimar_testkit::Launch;
use larimar_testkit::postgres::Cluster;
use std::time::Duration;

#[test]
fn one_of_several_servers_fills_the_database_and_the_others_wait() {
    let folder = folder();
    write(&folder, "Orders.jsonl", lines(3000));
    write(&folder, "Others.jsonl", lines(10));
    let url = Cluster::shared().fresh_url();
    let launch = launch(&folder).engine(&url);
    let servers: Vec<_> = std::thread::scope(|scope| {
        let starting: Vec<_> = (0..3).map(|_| scope.spawn(|| launch.start())).collect();
        starting.into_iter().map(|server| server.join().expect("it started")).collect()
    });
    for server in &servers {
        let found = tables(server);
        assert_eq!((found["Orders"].len(), found["Others"].len()), (3000, 10));
    }
    for server in &servers {
        has_logged(server, " the store");
    }
    let filled = servers.iter().filter(|server| server.output().contains("filling the store")).count();
    assert_eq!(filled, 1);
}

/// Waits until a killed server is given up, for 20 seconds; in the rest of the test run.
#[test]
fn another_server_takes_over_from_one_that_was_killed() {
    let folder = folder();
    write(&folder, "Orders.jsonl", lines(30_000));
    let url = Cluster::shared().fresh_url();
    let launch = launch(&folder).engine(&url);
    let killed = std::thread::scope(|scope| {
        let first = scope.spawn(|| launch.try_start());
        let mut pid = None;
        while pid.is_none() {
            std::thread::sleep(Duration::from_millis(100));
            pid = filling_process(&folder.path().display().to_string());
        }
        // Its first rows are there, and the last ones are not yet.
        let schema = url.rsplit_once("%3D").expect("the URL names a schema").1;
        let rows = format!("SELECT count(*) FROM {schema}.larimar_entity");
        while !Cluster::shared().try_sql(&rows).is_ok_and(|count| count.parse::<u32>().is_ok_and(|count| count > 100)) {
            std::thread::sleep(Duration::from_millis(20));
        }
        let pid = pid.expect("a process").to_string();
        assert!(std::process::Command::new("kill").args(["-KILL", &pid]).status().expect("a shell").success());
        first.join().expect("no panic")
    });
    assert!(killed.is_err(), "it was killed before it served");
    // A server without the seed does not serve a part.
    let said = Launch::new(super::EXE, folder.path().join("data")).engine(&url).try_start().map(|_| ());
    assert!(said.expect_err("refused").contains("holds only a part"));
    let server = launch.start();
    assert_eq!(tables(&server)["Orders"].len(), 30_000);
}

/// The process whose command line has this text.
fn filling_process(text: &str) -> Option<u32> {
    let processes = std::fs::read_dir("/proc").expect("processes");
    let pids = processes.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let mut servers = pids.filter(|pid: &u32| {
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&line).contains(text)
    });
    servers.next()
}
