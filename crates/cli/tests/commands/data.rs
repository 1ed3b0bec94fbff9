//! What the commands do to tables, queues and blobs.

use super::Fixture;
use std::collections::BTreeSet;
use std::process::Stdio;
use std::time::Duration;

#[test]
fn every_type_survives_put_query_and_put_again() {
    let fixture = Fixture::start();
    fixture.run("larimar table create Types");
    fixture.run(
        "larimar table put Types PartitionKey=\"it's\" RowKey= 'Text=a\"b' Whole:int32=-1 Long:int64=9223372036854775807 \
         Half:double=0.5 Even:double=2 None:double=NaN Yes:boolean=true When:datetime=2026-01-31T12:00:00.1234567Z \
         Id:guid=8f0f5d5a-94f3-4d5b-9c44-9d7d7bb1b5f2 Bytes:binary=AP8=",
    );
    let line = fixture.run("larimar table query Types");
    fixture.run("larimar table create Copies && larimar table query Types | larimar table put Copies -");
    let copy = fixture.run("larimar table query Copies");
    let without_time = |line: &str| {
        let (before, rest) = line.split_once("\"Timestamp\":").expect("a time");
        format!("{before}{}", rest.split_once(',').expect("more").1)
    };
    assert_eq!(without_time(&line), without_time(&copy));
    for word in [
        r#""Even":2.0"#,
        r#""None":"NaN""#,
        r#""Long":"9223372036854775807""#,
        r#""When":"2026-01-31T12:00:00.1234567Z""#,
    ] {
        assert!(line.contains(word), "{word} in {line}");
    }
    let (code, said) = fixture.refused("echo '{\"PartitionKey\": 1}' | larimar table put Types -");
    assert!(code == 2 && said.contains("line 1: 'PartitionKey': expected text"), "{said}");
    let (code, said) = fixture.refused("larimar table put Types PartitionKey=\"it's\" RowKey= --mode insert");
    assert!(code == 1 && said.contains("EntityAlreadyExists"), "{said}");
}

#[test]
fn a_dry_run_shows_what_an_import_would_do() {
    let fixture = Fixture::start();
    let file = fixture.folder.path().join("people.csv");
    let long = "x".repeat(100_000);
    std::fs::write(file, format!("id,name\n1,Ann\n2,Bob\n1,Ann again\n3,{long}\n")).expect("a file");
    let import = "larimar import People people.csv --partition-key p --row-key '{id}'";
    for (mode, outcome, refused) in [
        ("insert", "1 row with the keys of an earlier row would be refused", 2),
        ("replace", "1 row with the keys of an earlier row would replace the earlier row", 1),
        ("merge", "1 row with the keys of an earlier row would be merged into the earlier row", 1),
    ] {
        let output = fixture.shell(&format!("{import} --mode {mode} --dry-run")).output().expect("a shell");
        let text = String::from_utf8_lossy(&output.stdout);
        assert_eq!(output.status.code(), Some(5), "{text}");
        assert!(text.contains(outcome), "{text}");
        assert!(text.contains("line 4: an earlier row has the keys 'p' and '1'"), "{text}");
        assert!(text.contains("line 5: expected values of at most 64 KiB"), "{text}");
        assert!(text.contains(&format!("4 rows in 1 partition, {refused} would be refused")), "{text}");
        assert!(text.len() < 5_000, "long values are cut");
        let (code, said) = fixture.refused(&format!("{import} --mode {mode} --refused {mode}.jsonl"));
        assert!(code == 5 && said.contains(&format!("rows refused: {refused};")), "{mode}: {said}");
        fixture.run("larimar table delete People --yes");
    }
}

#[test]
fn entities_are_counted_and_deleted_over_ranges() {
    let fixture = Fixture::start();
    fixture.run("larimar table create Many");
    let client = fixture.server.client();
    for row in 0..2500 {
        client.insert("Many", &format!("p{}", row % 5), &format!("{row:06}"), "");
    }
    assert_eq!(fixture.run("larimar table count Many"), "2500\n");
    assert_eq!(fixture.run("larimar table count Many --filter \"PartitionKey eq 'p1'\""), "500\n");
    let figures = fixture.run("larimar table stat Many");
    for word in ["\"entities\":2500,", "\"partitions\":5,", "\"largest_partition_entities\":500,"] {
        assert!(figures.contains(word), "{word} in {figures}");
    }
    let removed = fixture.run("larimar table remove Many --filter \"PartitionKey ge 'p3'\" --yes 2>&1");
    assert_eq!(removed, "1000 entities deleted\n");
    assert_eq!(fixture.run("larimar table count Many --parallel 1"), "1500\n");
    assert_eq!(fixture.run("larimar table clear Many --yes 2>&1"), "1500 entities deleted\n");
    assert_eq!(fixture.run("larimar table clear Many --yes 2>&1"), "0 entities deleted\n");
    assert_eq!(fixture.run("larimar table list"), "{\"name\":\"Many\"}\n");
}

#[test]
fn a_move_that_is_killed_loses_no_message() {
    const MESSAGES: usize = 120;
    let fixture = Fixture::start();
    let queues = fixture.server.queues();
    for queue in ["/orders", "/orders-poison"] {
        queues.request("PUT", queue).send().is_status(201);
    }
    for number in 0..MESSAGES {
        let body = format!("<QueueMessage><MessageText>text {number}</MessageText></QueueMessage>");
        queues.request("POST", "/orders-poison/messages").body(body).send().is_status(201);
    }
    let count = |queue: &str| -> usize {
        let list = fixture.run("larimar queue list --output csv");
        let line = list.lines().find_map(|line| line.strip_prefix(&format!("{queue},"))).expect("the queue");
        line.parse().expect("a number")
    };
    for pause in [20, 60, 120] {
        let mut command = fixture.shell("exec larimar queue move orders-poison");
        let mut child = command.stderr(Stdio::null()).spawn().expect("a shell");
        std::thread::sleep(Duration::from_millis(pause));
        child.kill().expect("killed");
        child.wait().expect("ended");
        assert!(count("orders") + count("orders-poison") >= MESSAGES);
    }
    fixture.run("larimar queue move orders-poison 2>/dev/null");
    let left = count("orders-poison");
    let texts: BTreeSet<String> = fixture
        .run("larimar queue drain orders --yes --output csv")
        .lines()
        .skip(1)
        .map(|line| line.rsplit(',').next().unwrap_or_default().to_owned())
        .collect();
    // What a killed process had received is hidden for two minutes, and still there.
    assert!(texts.len() + left >= MESSAGES, "{} moved, {left} left", texts.len());
}

#[test]
fn large_blobs_go_through_in_parts() {
    let fixture = Fixture::start();
    fixture.run("head -c 20000000 /dev/urandom > large && : > empty");
    fixture.run("larimar blob put files/a/large large --create && larimar blob put files/empty empty");
    fixture
        .run("larimar blob get files/a/large back && cmp large back && larimar blob get files/a/large - | cmp - large");
    fixture.run("larimar blob put files/piped - < large && larimar blob get files/piped - | cmp - large");
    fixture.run("larimar blob get files/empty nothing && cmp empty nothing && test -z \"$(ls | grep nothing.)\"");
    // A file of the user's that has the name of an unfinished one is not written, also not through a link.
    fixture.run("echo mine > other && ln -s other linked.partial && echo mine > own.partial");
    fixture.run("larimar blob get files/empty linked && larimar blob get files/empty own");
    fixture
        .run("grep mine other && grep mine own.partial && test -L linked.partial && cmp empty linked && cmp empty own");
    assert_eq!(fixture.run("larimar blob du files"), "{\"name\":\"files\",\"blobs\":3,\"bytes\":40000000}\n");
    let (code, said) = fixture.refused("larimar blob remove files --all </dev/null");
    assert!(code == 2 && said.contains("--yes"), "{said}");
    assert_eq!(fixture.run("larimar blob remove files/a --all --yes 2>&1"), "1 blob deleted\n");
    assert_eq!(fixture.run("larimar blob list files").lines().count(), 2);
}
