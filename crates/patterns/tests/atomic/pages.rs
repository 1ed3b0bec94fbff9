//! The pages in `docs/patterns/`: their code is that of the examples, line by line, so what a reader copies has run.

use std::fs;
use std::path::{Path, PathBuf};

/// The pages of all patterns, each with an example of its name.
const PAGES: [&str; 17] = [
    "blob-log",
    "client-side-join",
    "compound-key",
    "denormalised",
    "eventual-transactions",
    "index-entities",
    "inheritance",
    "inter-partition-index",
    "large-entity",
    "log-tail",
    "one-to-many",
    "one-to-one",
    "period-tables",
    "secondary-index",
    "series",
    "spread-key",
    "wide-entity",
];

const HEADINGS: [&str; 6] =
    ["## Problem", "## Shape of the keys", "## Code", "## Cost", "## Guarantees", "## When not to use it"];

/// The folder of the pages, if this crate lies in its repository.
fn folder() -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/patterns");
    folder.is_dir().then_some(folder)
}

/// The Rust in a page, block by block.
fn blocks(page: &str) -> Vec<String> {
    let mut blocks = Vec::new();
    let mut rest = page;
    while let Some((_, after)) = rest.split_once("```rust\n") {
        let (block, after) = after.split_once("```").expect("a block has an end");
        blocks.push(block.to_owned());
        rest = after;
    }
    blocks
}

/// Lines without what stands before them, and without empty ones.
fn lines(text: &str) -> Vec<&str> {
    text.lines().map(str::trim).filter(|line| !line.is_empty()).collect()
}

#[test]
fn pages_show_code_of_the_examples() {
    let Some(folder) = folder() else { return };
    for name in PAGES {
        let page = fs::read_to_string(folder.join(format!("{name}.md"))).expect(name);
        let example = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("examples/{}.rs", name.replace('-', "_")));
        let example = fs::read_to_string(example).expect(name);
        let (example, blocks) = (lines(&example), blocks(&page));
        assert!(!blocks.is_empty(), "{name} shows no code");
        for block in &blocks {
            let block = lines(block);
            let is_there = example.windows(block.len()).any(|window| window == block);
            assert!(is_there, "{name}: not in its example:\n{}", block.join("\n"));
        }
    }
}

#[test]
fn pages_tell_what_one_wants_to_know() {
    let Some(folder) = folder() else { return };
    let index = fs::read_to_string(folder.join("README.md")).expect("an index");
    for name in PAGES {
        assert!(index.contains(&format!("({name}.md)")), "{name} is not in the index");
        let page = fs::read_to_string(folder.join(format!("{name}.md"))).expect(name);
        let found: Vec<_> = page.lines().filter(|line| line.starts_with("## ")).collect();
        assert_eq!(found, HEADINGS, "{name}");
        let example = format!("crates/patterns/examples/{}.rs", name.replace('-', "_"));
        assert!(page.contains(&example), "{name} does not name {example}");
    }
}
