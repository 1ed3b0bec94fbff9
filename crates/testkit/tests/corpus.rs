//! Runs every fuzz target over its corpus and some thousand mutations of it, the same ones each time.

use larimar_testkit::Dice;
use larimar_testkit::fuzz_targets::{ALL, Target};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

const MUTATIONS: usize = 4000;

fn seeds(target: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(target);
    let files = std::fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut paths: Vec<_> = files.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    let seeds: Vec<_> = paths.iter().map(|path| std::fs::read(path).expect("a file")).collect();
    assert!(seeds.len() >= 3, "{target} has a corpus");
    seeds
}

/// A seed changed in a few places, or two seeds joined.
fn mutated(seeds: &[Vec<u8>], dice: &mut Dice) -> Vec<u8> {
    let mut bytes = dice.pick(seeds).clone();
    for _ in 0..1 + dice.below(6) {
        let at = dice.below(bytes.len() as u64 + 1) as usize;
        let end = (at + dice.below(12) as usize).min(bytes.len());
        match dice.below(8) {
            0 => bytes.truncate(at),
            1 => drop(bytes.drain(at..end)),
            2 => bytes.insert(at, dice.next() as u8),
            3 => bytes.insert(at, *dice.pick(b"'\"\\()[]{}<>%&=!,;:-+.0\r\n\0 ")),
            4 => drop(bytes.splice(at..at, dice.pick(seeds).iter().copied().take(40)).collect::<Vec<_>>()),
            5 => drop(bytes.splice(at..at, bytes[at..end].to_vec().repeat(3)).collect::<Vec<_>>()),
            6 if at < bytes.len() => bytes[at] ^= 1 << dice.below(8),
            _ => drop(
                bytes.splice(at..end, "\u{1F600}\u{e000}é".bytes().take(dice.below(10) as usize)).collect::<Vec<_>>(),
            ),
        }
    }
    bytes
}

fn run(name: &str, target: Target, input: &[u8]) {
    if catch_unwind(AssertUnwindSafe(|| target(input))).is_err() {
        panic!("{name} fails on {:?}", String::from_utf8_lossy(input));
    }
}

fn run_all(name: &str) {
    let (name, target) = ALL.iter().find(|(found, _)| *found == name).expect("a target of this name");
    let seeds = seeds(name);
    for seed in &seeds {
        run(name, *target, seed);
    }
    let mut dice = Dice::new(name.len() as u64 * 7919);
    for _ in 0..MUTATIONS {
        run(name, *target, &mutated(&seeds, &mut dice));
    }
}

macro_rules! corpus_tests {
    ($($name:ident),+) => {
        $(#[test]
        fn $name() {
            run_all(stringify!($name));
        })+

        #[test]
        fn every_target_is_tested() {
            assert_eq!(ALL.iter().map(|(name, _)| *name).collect::<Vec<_>>(), [$(stringify!($name)),+]);
        }
    };
}

corpus_tests!(
    filter,
    route,
    batch,
    entity,
    sas,
    signature,
    xml,
    token,
    queue_request,
    queue_message,
    blob_request,
    block_list,
    tags,
    tag_filter,
    blob_batch,
    list_marker,
    storage_signature
);
