//! Page blobs with snapshots, changed round after round: every version has its own pages after each kill, also where the
//! server stopped between a change and its clean-up.

use super::{play_rounds, rounds};
use larimar_testkit::http::{Client, Response};
use larimar_testkit::{Dice, Launch, Server};
use std::collections::BTreeMap;
use std::time::Duration;

const WRITERS: usize = 4;
const PAGES: usize = 6;

/// What each page was filled with; 0 for none.
type Pages = [u8; PAGES];

/// A page blob and its snapshots by their times.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Disk {
    current: Option<Pages>,
    snapshots: BTreeMap<String, Pages>,
}

#[derive(Clone, Debug)]
enum Step {
    Make,
    Write { start: usize, end: usize, fill: u8 },
    Clear { start: usize, end: usize },
    Snapshot,
    DeleteSnapshot(String),
    DeleteSnapshots,
}

/// What one writer did before the server was gone.
struct Played {
    disk: Disk,
    /// The request that has no answer.
    under_way: Step,
    acknowledged: usize,
}

fn choose(disk: &Disk, dice: &mut Dice) -> Step {
    if disk.current.is_none() {
        return Step::Make;
    }
    let start = dice.below(PAGES as u64) as usize;
    let end = start + 1 + dice.below((PAGES - start) as u64) as usize;
    let times: Vec<&String> = disk.snapshots.keys().collect();
    match dice.below(12) {
        0..=1 => Step::Clear { start, end },
        2..=3 => Step::Clear { start: 0, end: PAGES },
        4..=5 if times.len() < 4 => Step::Snapshot,
        6..=7 if !times.is_empty() => Step::DeleteSnapshot((*dice.pick(&times)).clone()),
        8 if !times.is_empty() => Step::DeleteSnapshots,
        _ => Step::Write { start, end, fill: 1 + dice.below(255) as u8 },
    }
}

fn send(client: &Client, path: &str, step: &Step) -> std::io::Result<Response> {
    let page = |action, start: usize, end: usize| {
        let request = client.request("PUT", &format!("{path}?comp=page")).header("x-ms-page-write", action);
        request.header("x-ms-range", format!("bytes={}-{}", start * 512, end * 512 - 1))
    };
    match step {
        Step::Make => {
            let request = client.request("PUT", path).header("x-ms-blob-type", "PageBlob");
            request.header("x-ms-blob-content-length", (PAGES * 512).to_string()).body("").try_send()
        }
        Step::Write { start, end, fill } => {
            page("update", *start, *end).body(vec![*fill; (end - start) * 512]).try_send()
        }
        Step::Clear { start, end } => page("clear", *start, *end).body("").try_send(),
        Step::Snapshot => client.request("PUT", &format!("{path}?comp=snapshot")).body("").try_send(),
        Step::DeleteSnapshot(time) => client.delete(path).query("snapshot", time).try_send(),
        Step::DeleteSnapshots => client.delete(path).header("x-ms-delete-snapshots", "only").try_send(),
    }
}

/// The disk after a step; `taken` is the time of a snapshot.
fn after(disk: &Disk, step: &Step, taken: Option<&str>) -> Disk {
    let mut next = disk.clone();
    let pages = next.current.get_or_insert_default();
    match step {
        Step::Make => {}
        Step::Write { start, end, fill } => pages[*start..*end].fill(*fill),
        Step::Clear { start, end } => pages[*start..*end].fill(0),
        Step::Snapshot => {
            let pages = *pages;
            next.snapshots.extend(taken.map(|time| (time.to_owned(), pages)));
        }
        Step::DeleteSnapshot(time) => drop(next.snapshots.remove(time)),
        Step::DeleteSnapshots => next.snapshots.clear(),
    }
    next
}

fn write(client: &Client, path: &str, mut disk: Disk, dice: &mut Dice) -> Played {
    let mut acknowledged = 0;
    loop {
        let step = choose(&disk, dice);
        let Ok(reply) = send(client, path, &step) else { return Played { disk, under_way: step, acknowledged } };
        assert!(matches!(reply.status, 201 | 202), "{step:?}: {reply}");
        disk = after(&disk, &step, reply.header("x-ms-snapshot"));
        acknowledged += 1;
    }
}

fn pages_of(client: &Client, path: &str, snapshot: Option<&str>) -> Option<Pages> {
    let request = client.get(path);
    let reply = match snapshot {
        Some(time) => request.query("snapshot", time).send(),
        None => request.send(),
    };
    if reply.status == 404 {
        return None;
    }
    reply.is_status(200);
    let mut pages = [0; PAGES];
    assert_eq!(reply.body.len(), PAGES * 512);
    for (page, bytes) in pages.iter_mut().zip(reply.body.chunks(512)) {
        assert!(bytes.iter().all(|byte| *byte == bytes[0]), "a page of one write");
        *page = bytes[0];
    }
    Some(pages)
}

fn found(server: &Server, name: &str) -> Disk {
    let client = server.blobs();
    let path = format!("/crash/{name}");
    let query = format!("/crash?restype=container&comp=list&include=snapshots&prefix={name}");
    let list = client.get(&query).send();
    list.is_status(200);
    let snapshots = list.elements("Snapshot").into_iter().map(|time| {
        (time.to_owned(), pages_of(&client, &path, Some(time)).expect("a snapshot that is listed is there"))
    });
    Disk { current: pages_of(&client, &path, None), snapshots: snapshots.collect() }
}

/// Whether this is what was acknowledged, with or without the request that has no answer.
fn is_as(found: &Disk, played: &Played) -> bool {
    let mut taken = found.snapshots.keys().filter(|time| !played.disk.snapshots.contains_key(*time));
    let next = after(&played.disk, &played.under_way, taken.next().map(String::as_str));
    *found == played.disk || *found == next
}

fn play(launch: &Launch, round: usize, dice: &mut Dice, disks: &mut [Disk]) -> (Launch, usize) {
    let server = launch.start();
    if round == 0 {
        server.blobs().request("PUT", "/crash?restype=container").send().is_status(201);
    }
    let delay = Duration::from_millis(50 + dice.below(400));
    let (launch, played) = std::thread::scope(|scope| {
        let writers: Vec<_> = disks
            .iter()
            .enumerate()
            .map(|(writer, disk)| {
                let (client, disk, mut dice) = (server.blobs(), disk.clone(), Dice::new(dice.next()));
                scope.spawn(move || write(&client, &format!("/crash/disk-{writer}"), disk, &mut dice))
            })
            .collect();
        std::thread::sleep(delay);
        let launch = server.kill();
        let played: Vec<Played> = writers.into_iter().map(|writer| writer.join().expect("no panic")).collect();
        (launch, played)
    });
    let server = launch.start();
    for (writer, played) in played.iter().enumerate() {
        let found = found(&server, &format!("disk-{writer}"));
        let Played { disk, under_way, .. } = played;
        assert!(is_as(&found, played), "round {round}, {writer}: {found:?}, expected {disk:?}, perhaps {under_way:?}");
        disks[writer] = found;
    }
    (server.kill(), played.iter().map(|played| played.acknowledged).sum())
}

#[test]
fn x2_pages_of_every_version_survive_kill_and_none_shows_another() {
    let mut disks = vec![Disk::default(); WRITERS];
    play_rounds(rounds().div_ceil(2), |launch, round, dice| play(launch, round, dice, &mut disks));
}
