//! Blobs: what was written is there, whole, as the last acknowledged write or the one under way left it; no block that
//! was acknowledged is lost.

use super::{play_rounds, rounds};
use larimar_testkit::http::{Client, Response, encode};
use larimar_testkit::{Dice, Launch};
use std::collections::BTreeMap;
use std::time::Duration;

const WRITERS: usize = 5;

/// What a blob holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Blob {
    /// Its bytes; none if there is no blob.
    content: Option<Vec<u8>>,
    /// Blocks that wait for a list.
    blocks: BTreeMap<String, Vec<u8>>,
}

/// What one writer knows of its blobs. It has one request under way at a time.
#[derive(Debug, Default)]
struct Ledger {
    blobs: BTreeMap<String, Blob>,
    /// What the request under way makes of a blob.
    under_way: Option<(String, Blob)>,
    acknowledged: usize,
}

/// Bytes that belong to one write only.
fn bytes(seed: u64, length: usize) -> Vec<u8> {
    let mut dice = Dice::new(seed);
    let mut bytes: Vec<u8> = (0..length.div_ceil(8)).flat_map(|_| dice.next().to_le_bytes()).collect();
    bytes.truncate(length);
    bytes
}

/// Lengths on both sides of what is kept together with others and what has a file of its own.
fn length(dice: &mut Dice) -> usize {
    let most = [64, 5_000, 300_000, 1_200_000][dice.below(4) as usize];
    1 + dice.below(most) as usize
}

fn write(client: &Client, round: usize, writer: usize, dice: &mut Dice) -> Ledger {
    let mut ledger = Ledger::default();
    for _ in 0..1_000_000 {
        let kind = dice.below(3);
        let name = format!("{round}-{writer}-{}-{}", ["put", "blocks", "append"][kind as usize], dice.below(4));
        let old = ledger.blobs.get(&name).cloned().unwrap_or_default();
        let (reply, new) = match kind {
            0 => put(client, &name, &old, dice, &mut ledger),
            1 => block(client, &name, &old, dice, &mut ledger),
            _ => append(client, &name, &old, dice, &mut ledger),
        };
        let Ok(reply) = reply else { return ledger };
        assert!(matches!(reply.status, 201 | 202), "{reply}");
        ledger.under_way = None;
        ledger.blobs.insert(name, new);
        ledger.acknowledged += 1;
    }
    ledger
}

type Step = (std::io::Result<Response>, Blob);

/// Puts a whole blob over what is there, or deletes it.
fn put(client: &Client, name: &str, old: &Blob, dice: &mut Dice, ledger: &mut Ledger) -> Step {
    let path = format!("/crash/{name}");
    if old.content.is_some() && dice.below(4) == 0 {
        ledger.under_way = Some((name.to_owned(), Blob::default()));
        return (client.request("DELETE", &path).try_send(), Blob::default());
    }
    let content = bytes(dice.next(), length(dice));
    let new = Blob { content: Some(content.clone()), ..Blob::default() };
    ledger.under_way = Some((name.to_owned(), new.clone()));
    (client.request("PUT", &path).header("x-ms-blob-type", "BlockBlob").body(content).try_send(), new)
}

/// Puts a block, or makes a blob of all blocks that wait.
fn block(client: &Client, name: &str, old: &Blob, dice: &mut Dice, ledger: &mut Ledger) -> Step {
    if old.blocks.len() > 3 || !old.blocks.is_empty() && dice.below(3) == 0 {
        let list: String = old.blocks.keys().map(|id| format!("<Uncommitted>{id}</Uncommitted>")).collect();
        let new = Blob { content: Some(old.blocks.values().flatten().copied().collect()), ..Blob::default() };
        ledger.under_way = Some((name.to_owned(), new.clone()));
        let request = client.request("PUT", &format!("/crash/{name}?comp=blocklist"));
        return (request.body(format!("<BlockList>{list}</BlockList>")).try_send(), new);
    }
    // Base64 of six bytes, so that all ids have one length.
    let id = format!("YmxrAAA{}", char::from(b'A' + old.blocks.len() as u8));
    let content = bytes(dice.next(), length(dice));
    let mut new = old.clone();
    new.blocks.insert(id.clone(), content.clone());
    ledger.under_way = Some((name.to_owned(), new.clone()));
    let path = format!("/crash/{name}?comp=block&blockid={}", encode(&id));
    (client.request("PUT", &path).body(content).try_send(), new)
}

/// Appends to a blob that is made first.
fn append(client: &Client, name: &str, old: &Blob, dice: &mut Dice, ledger: &mut Ledger) -> Step {
    let Some(content) = &old.content else {
        let new = Blob { content: Some(Vec::new()), ..Blob::default() };
        ledger.under_way = Some((name.to_owned(), new.clone()));
        let request = client.request("PUT", &format!("/crash/{name}")).header("x-ms-blob-type", "AppendBlob");
        return (request.body("").try_send(), new);
    };
    let added = bytes(dice.next(), length(dice).min(100_000));
    let new = Blob { content: Some([content.as_slice(), &added].concat()), ..Blob::default() };
    ledger.under_way = Some((name.to_owned(), new.clone()));
    (client.request("PUT", &format!("/crash/{name}?comp=appendblock")).body(added).try_send(), new)
}

/// Reads a blob and the names and lengths of its blocks that wait.
fn read(client: &Client, name: &str) -> (Option<Vec<u8>>, BTreeMap<String, usize>) {
    let reply = client.get(&format!("/crash/{name}")).send();
    let content = match reply.status {
        200 => Some(reply.body),
        404 => None,
        other => panic!("{name}: {other}"),
    };
    let list = client.get(&format!("/crash/{name}?comp=blocklist&blocklisttype=uncommitted")).send();
    let blocks = match list.status {
        200 => {
            let sizes = list.elements("Size").into_iter().map(|size| size.parse().expect("a size"));
            list.elements("Name").into_iter().map(str::to_owned).zip(sizes).collect()
        }
        // There is none, or it has no blocks by its type.
        404 | 409 => BTreeMap::new(),
        _ => panic!("{list}"),
    };
    (content, blocks)
}

fn is_as(found: &(Option<Vec<u8>>, BTreeMap<String, usize>), blob: &Blob) -> bool {
    let sizes = blob.blocks.iter().map(|(id, bytes)| (id.clone(), bytes.len())).collect();
    found.0 == blob.content && found.1 == sizes
}

fn play(launch: &Launch, round: usize, dice: &mut Dice) -> (Launch, usize) {
    let server = launch.start();
    if round == 0 {
        server.blobs().request("PUT", "/crash?restype=container").send().is_status(201);
    }
    let delay = Duration::from_millis(50 + dice.below(700));
    let seeds: Vec<u64> = (0..WRITERS).map(|_| dice.next()).collect();
    let (launch, ledgers) = std::thread::scope(|scope| {
        let writers: Vec<_> = seeds
            .iter()
            .enumerate()
            .map(|(writer, seed)| {
                let (client, mut dice) = (server.blobs(), Dice::new(*seed));
                scope.spawn(move || write(&client, round, writer, &mut dice))
            })
            .collect();
        std::thread::sleep(delay);
        let launch = server.kill();
        let ledgers: Vec<Ledger> = writers.into_iter().map(|writer| writer.join().expect("no panic")).collect();
        (launch, ledgers)
    });
    let server = launch.start();
    let client = server.blobs();
    for (writer, ledger) in ledgers.iter().enumerate() {
        let mut names: Vec<&String> = ledger.blobs.keys().collect();
        names.extend(ledger.under_way.as_ref().map(|(name, _)| name));
        for name in names {
            let found = read(&client, name);
            let known = ledger.blobs.get(name).cloned().unwrap_or_default();
            let next = ledger.under_way.as_ref().filter(|(of, _)| of == name).map(|(_, blob)| blob);
            assert!(
                is_as(&found, &known) || next.is_some_and(|next| is_as(&found, next)),
                "round {round}, writer {writer}: {name} has {:?} bytes and blocks {:?}; expected {:?} bytes",
                found.0.map(|content| content.len()),
                found.1,
                known.content.map(|content| content.len()),
            );
        }
    }
    let acknowledged = ledgers.iter().map(|ledger| ledger.acknowledged).sum();
    drop(client);
    (server.kill(), acknowledged)
}

#[test]
fn x2_b4_acknowledged_blobs_and_blocks_survive_kill_and_none_is_half_there() {
    play_rounds(rounds().div_ceil(2), play);
}
