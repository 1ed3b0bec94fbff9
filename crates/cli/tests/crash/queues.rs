//! Queues: what was put and not deleted is there, what was deleted is not, whatever consumers were doing.

use super::{play_rounds, rounds};
use larimar_testkit::http::{Client, encode};
use larimar_testkit::{Dice, Launch};
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

const PRODUCERS: usize = 4;
const CONSUMERS: usize = 3;

/// What a producer or a consumer knows. It has one request under way at a time.
#[derive(Debug, Default)]
struct Ledger {
    /// Texts of messages that were put.
    put: BTreeSet<String>,
    /// Texts of messages that were deleted.
    deleted: BTreeSet<String>,
    /// How often each message was got.
    got: BTreeMap<String, u32>,
    /// The text of the message that is being put or deleted.
    under_way: Option<String>,
    acknowledged: usize,
}

fn produce(client: &Client, round: usize, producer: usize, dice: &mut Dice) -> Ledger {
    let mut ledger = Ledger::default();
    for number in 0..1_000_000 {
        let text = format!("{round}-{producer}-{number}-{}", "x".repeat(dice.below(2000) as usize));
        ledger.under_way = Some(text.clone());
        let body = format!("<QueueMessage><MessageText>{text}</MessageText></QueueMessage>");
        let reply = client.request("POST", "/crash/messages?messagettl=-1").body(body).try_send();
        if !reply.is_ok_and(|reply| reply.status == 201) {
            return ledger;
        }
        ledger.under_way = None;
        ledger.put.insert(text);
        ledger.acknowledged += 1;
    }
    ledger
}

fn consume(client: &Client, dice: &mut Dice) -> Ledger {
    let mut ledger = Ledger::default();
    loop {
        let got = client.get("/crash/messages?numofmessages=4&visibilitytimeout=1").try_send();
        let Some(got) = got.ok().filter(|reply| reply.status == 200) else { return ledger };
        ledger.acknowledged += 1;
        let messages: Vec<[String; 3]> = got
            .elements("QueueMessage")
            .into_iter()
            .map(|message| ["MessageId", "PopReceipt", "MessageText"].map(|name| element(message, name)))
            .collect();
        for [id, receipt, text] in messages {
            *ledger.got.entry(text.clone()).or_default() += 1;
            if dice.below(3) == 0 {
                continue;
            }
            ledger.under_way = Some(text.clone());
            let path = format!("/crash/messages/{id}?popreceipt={}", encode(&receipt));
            let deleted = match client.request("DELETE", &path).try_send() {
                // The second was over before the delete came; then another consumer may have the message.
                Ok(reply) => reply.status == 204,
                Err(_) => return ledger,
            };
            ledger.under_way = None;
            if deleted {
                ledger.deleted.insert(text);
                ledger.acknowledged += 1;
            }
        }
    }
}

fn element(xml: &str, name: &str) -> String {
    let (_, rest) = xml.split_once(&format!("<{name}>")).expect("the element begins");
    rest.split_once('<').expect("the element ends").0.to_owned()
}

/// Takes all messages there are, hidden ones when their time is over, and deletes them. Returns their texts and counts.
fn drain(client: &Client, certain: &BTreeSet<String>) -> BTreeMap<String, u32> {
    let mut found = BTreeMap::new();
    let deadline = Instant::now() + Duration::from_secs(30);
    loop {
        let reply = client.get("/crash/messages?numofmessages=32&visibilitytimeout=600").send();
        reply.is_status(200);
        let (texts, counts) = (reply.elements("MessageText"), reply.elements("DequeueCount"));
        if texts.is_empty() {
            // What is certain is hidden for a second at most; what is not may be there or not.
            let counted = client.get("/crash?comp=metadata").send();
            let is_all = certain.iter().all(|text| found.contains_key(text));
            let is_empty = counted.header("x-ms-approximate-messages-count") == Some("0");
            if is_all && is_empty || Instant::now() > deadline {
                return found;
            }
            std::thread::sleep(Duration::from_millis(50));
            continue;
        }
        for (text, count) in texts.iter().zip(counts) {
            let count = count.parse().expect("a count");
            assert_eq!(found.insert((*text).to_owned(), count), None, "a message came twice");
        }
        for (id, receipt) in reply.elements("MessageId").iter().zip(reply.elements("PopReceipt")) {
            let path = format!("/crash/messages/{id}?popreceipt={}", encode(receipt));
            client.request("DELETE", &path).send().is_status(204);
        }
    }
}

fn play(launch: &Launch, round: usize, dice: &mut Dice) -> (Launch, usize) {
    let server = launch.start();
    if round == 0 {
        server.queues().request("PUT", "/crash").send().is_status(201);
    }
    let delay = Duration::from_millis(50 + dice.below(600));
    let seeds: Vec<u64> = (0..PRODUCERS + CONSUMERS).map(|_| dice.next()).collect();
    let (launch, ledgers) = std::thread::scope(|scope| {
        let workers: Vec<_> = seeds
            .iter()
            .enumerate()
            .map(|(worker, seed)| {
                let (client, mut dice) = (server.queues(), Dice::new(*seed));
                scope.spawn(move || match worker {
                    0..PRODUCERS => produce(&client, round, worker, &mut dice),
                    _ => consume(&client, &mut dice),
                })
            })
            .collect();
        std::thread::sleep(delay);
        let launch = server.kill();
        let ledgers: Vec<Ledger> = workers.into_iter().map(|worker| worker.join().expect("no panic")).collect();
        (launch, ledgers)
    });
    let all = |part: fn(&Ledger) -> &BTreeSet<String>| ledgers.iter().flat_map(part).cloned().collect::<BTreeSet<_>>();
    let (put, deleted) = (all(|ledger| &ledger.put), all(|ledger| &ledger.deleted));
    let unsure: BTreeSet<String> = ledgers.iter().filter_map(|ledger| ledger.under_way.clone()).collect();
    let certain: BTreeSet<String> = put.difference(&deleted).filter(|text| !unsure.contains(*text)).cloned().collect();
    let server = launch.start();
    let found = drain(&server.queues(), &certain);
    let lost: Vec<_> = certain.iter().filter(|text| !found.contains_key(*text)).collect();
    assert!(lost.is_empty(), "round {round}: {} of {} messages are lost: {:.3?}", lost.len(), certain.len(), lost);
    for (text, count) in &found {
        assert!(certain.contains(text) || unsure.contains(text), "round {round}: {text:.40} should not be there");
        let got: u32 = ledgers.iter().filter_map(|ledger| ledger.got.get(text)).sum();
        // A claim that was cut off may have counted too, one for each consumer.
        assert!(
            (got + 1..=got + 1 + CONSUMERS as u32).contains(count),
            "round {round}: {count} deliveries, {got} known"
        );
    }
    (server.kill(), ledgers.iter().map(|ledger| ledger.acknowledged).sum())
}

#[test]
fn x1_b4_acknowledged_messages_survive_kill_and_deleted_ones_stay_away() {
    play_rounds(rounds().div_ceil(2), play);
}
