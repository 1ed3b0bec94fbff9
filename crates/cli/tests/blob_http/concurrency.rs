//! Many clients at once: blocks, overwriters, readers, appenders, and races that one must win.

use super::{block_blob, content, header, put, serve_container};
use larimar_testkit::http::{Client, Response};
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

/// Runs a function on as many threads, each with a client of its own, and collects what they return.
fn together<T: Send>(client: &Client, count: usize, run: impl Fn(usize, &Client) -> T + Sync) -> Vec<T> {
    thread::scope(|scope| {
        let run = &run;
        let start = |n| {
            let own = client.lite();
            scope.spawn(move || run(n, &own))
        };
        let threads: Vec<_> = (0..count).map(start).collect();
        threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
    })
}

#[test]
fn x2_blocks_put_in_parallel_are_committed_whole() {
    let server = serve_container();
    let client = server.blobs();
    let block = |n: usize| vec![b'a' + (n % 26) as u8; 50_000 + n];
    let id = |n: usize| format!("{n:04}");
    together(&client, 8, |worker, client| {
        for n in (worker..64).step_by(8) {
            let path = format!("/box/a?comp=block&blockid={}", id(n));
            client.request("PUT", &path).body(block(n)).send().is_status(201);
        }
    });
    let list: String = (0..64).rev().map(|n| format!("<Uncommitted>{}</Uncommitted>", id(n))).collect();
    client.request("PUT", "/box/a?comp=blocklist").xml(format!("<BlockList>{list}</BlockList>")).send().is_status(201);
    let expected: Vec<u8> = (0..64).rev().flat_map(block).collect();
    assert!(content(&client, "/box/a") == expected);
}

#[test]
fn x2_readers_during_overwrites_get_one_whole_version() {
    let server = serve_container();
    let client = server.blobs();
    let version = |letter: u8| vec![letter; 100_000 + usize::from(letter) * 100];
    put(&client, "/box/a", version(b'a'));
    let is_over = AtomicBool::new(false);
    let check = |body: &[u8]| {
        let first = body[0];
        assert!(*body == version(first), "a mixture of {} bytes that begins with {first}", body.len());
    };
    thread::scope(|scope| {
        let readers: Vec<_> = (0..3)
            .map(|_| {
                let (own, is_over, check) = (client.lite(), &is_over, &check);
                scope.spawn(move || {
                    let mut count = 0;
                    while !is_over.load(Ordering::Relaxed) || count == 0 {
                        check(&content(&own, "/box/a"));
                        count += 1;
                    }
                })
            })
            .collect();
        together(&client, 4, |worker, client| {
            for round in 0..12 {
                let letter = b'a' + (worker * 6 + round % 6) as u8;
                if round % 3 == 0 {
                    // As clients with long blobs write: blocks first, then the list.
                    let body = version(letter);
                    let path = format!("/box/a?comp=block&blockid=W{worker}{round:02}");
                    let staged = client.request("PUT", &path).body(body.clone()).send();
                    staged.is_status(201);
                    let list = format!("<BlockList><Uncommitted>W{worker}{round:02}</Uncommitted></BlockList>");
                    let done = client.request("PUT", "/box/a?comp=blocklist").xml(list).send();
                    // Another writer may have dropped what was staged.
                    assert!(done.status == 201 || done.code() == "InvalidBlockList", "{done}");
                } else {
                    put(client, "/box/a", version(letter));
                }
            }
        });
        is_over.store(true, Ordering::Relaxed);
        readers.into_iter().for_each(|reader| reader.join().expect("readers see whole versions"));
    });
    check(&content(&client, "/box/a"));
}

#[test]
fn x2_checksums_of_ranges_fit_their_bytes_during_overwrites() {
    let server = serve_container();
    let client = server.blobs();
    put(&client, "/box/a", vec![b'a'; 5000]);
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let (own, is_over) = (client.lite(), &is_over);
        let reader = scope.spawn(move || {
            let mut sums = std::collections::BTreeMap::new();
            while !is_over.load(Ordering::Relaxed) {
                let request = own.get("/box/a").header("x-ms-range", "bytes=10-99");
                let reply = request.header("x-ms-range-get-content-md5", "true").send();
                reply.is_status(206);
                let sum = header(&reply, "Content-MD5").to_owned();
                let known = sums.entry(reply.body.clone()).or_insert_with(|| sum.clone());
                assert_eq!(*known, sum, "one content has one sum");
            }
            let kinds: BTreeSet<&String> = sums.values().collect();
            assert_eq!(kinds.len(), sums.len(), "different contents have different sums");
        });
        for round in 0..60 {
            put(&client, "/box/a", vec![b'a' + round % 26; 5000]);
        }
        is_over.store(true, Ordering::Relaxed);
        reader.join().expect("sums fit");
    });
}

#[test]
fn x2_appends_of_many_writers_are_whole_and_lose_nothing() {
    let server = serve_container();
    let client = server.blobs();
    client.request("PUT", "/box/log").header("x-ms-blob-type", "AppendBlob").body("").send().is_status(201);
    let offsets = together(&client, 6, |worker, client| {
        (0..20)
            .map(|n| {
                let line = format!("{worker}:{n:06}\n");
                let reply = client.request("PUT", "/box/log?comp=appendblock").body(line).send();
                reply.is_status(201);
                header(&reply, "x-ms-blob-append-offset").parse::<u64>().expect("an offset")
            })
            .collect::<Vec<_>>()
    });
    let all: BTreeSet<u64> = offsets.iter().flatten().copied().collect();
    assert_eq!(all, (0..120).map(|n| n * 9).collect(), "each has a place of its own");
    let text = String::from_utf8(content(&client, "/box/log")).expect("text");
    for (worker, offsets) in offsets.iter().enumerate() {
        for (n, offset) in offsets.iter().enumerate() {
            let at = usize::try_from(*offset).expect("it fits");
            assert_eq!(text[at..at + 9], format!("{worker}:{n:06}\n"));
        }
    }
}

#[test]
fn x2_one_of_many_wins_a_race() {
    let server = serve_container();
    let client = server.blobs();
    put(&client, "/box/leased", "x");
    let count = |replies: &[Response], status: u16| replies.iter().filter(|reply| reply.status == status).count();
    let made =
        together(&client, 8, |_, client| block_blob(client, "/box/new", "x").header("If-None-Match", "*").send());
    assert_eq!((count(&made, 201), count(&made, 409)), (1, 7), "{made:?}");
    let leased = together(&client, 8, |_, client| {
        let request = client.request("PUT", "/box/leased?comp=lease").header("x-ms-lease-action", "acquire");
        request.header("x-ms-lease-duration", "-1").send()
    });
    assert_eq!((count(&leased, 201), count(&leased, 409)), (1, 7), "{leased:?}");
    let containers = together(&client, 8, |_, client| client.request("PUT", "/raced?restype=container").send());
    assert_eq!((count(&containers, 201), count(&containers, 409)), (1, 7), "{containers:?}");
    let deleted = together(&client, 8, |_, client| client.request("DELETE", "/box/new").send());
    assert_eq!((count(&deleted, 202), count(&deleted, 404)), (1, 7), "{deleted:?}");
}

#[test]
fn x2_no_update_is_lost_between_writers_that_go_by_etags() {
    let server = serve_container();
    let client = server.blobs();
    put(&client, "/box/count", "0");
    together(&client, 4, |_, client| {
        for _ in 0..10 {
            loop {
                let found = client.get("/box/count").send();
                let next: u32 = found.text().parse::<u32>().expect("a number") + 1;
                let put = block_blob(client, "/box/count", next.to_string()).if_match(header(&found, "ETag")).send();
                if put.status == 201 {
                    break;
                }
                put.is_error(412, "ConditionNotMet");
            }
        }
    });
    assert_eq!(content(&client, "/box/count"), b"40");
}
