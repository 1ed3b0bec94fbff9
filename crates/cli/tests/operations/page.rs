//! `docs/operations.md` lists every operation with its facts, made from the code.

use super::{Case, Place, blobs, queues, tables};
use larimar_wire::operation::{BodyLimit, Endpoint, Facts, Format, Kind, Operation, Public};
use larimar_wire::sas::{Letters, Need, Target};
use std::fmt::Write as _;
use std::path::Path;

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/operations.md");

const HEAD: &str = "# Operations\n\n\
    Every operation of the three services, as `wire` declares it next to the enum of the service's operations. The request\n\
    pipeline (`server/src/http.rs`) applies these facts before a handler runs. This page is made from the code:\n\
    `BLESS=1 cargo test -p larimar --test suite operations::page` writes it, and the same test compares it.\n\n\
    - **kind**: how storage analytics classify the operation.\n\
    - **permission**: the letters that a shared access signature needs (`a or b`: one of them), and on what; `account` means\n  \
    that only account tokens reach it, `key` that no token does. `public` is what a container's public access must allow\n  \
    to callers without credentials.\n\
    - **body**: how much of a request body is read; `setting` is `body_bytes_max`, `streamed` is checked by the handler.\n";

#[test]
fn docs_list_every_operation_with_its_facts() {
    let mut page = HEAD.to_owned();
    section(&mut page, "Table", &tables::cases(), tables::parse);
    section(&mut page, "Queue", &queues::cases(), queues::parse);
    section(&mut page, "Blob", &blobs::cases(), blobs::parse);
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(PAGE, &page).expect("the page is written");
    }
    let committed = std::fs::read_to_string(Path::new(PAGE)).unwrap_or_default();
    assert!(
        committed == page,
        "docs/operations.md is stale: run `BLESS=1 cargo test -p larimar --test suite operations::page`"
    );
}

fn section<O: Operation>(page: &mut String, service: &str, cases: &[Case], parse: impl Fn(&Case) -> O) {
    write!(page, "\n## {service}\n\n").expect("a string");
    page.push_str("| operation | kind | permission | endpoints | body | response |\n|---|---|---|---|---|---|\n");
    let mut rows: Vec<String> = cases.iter().map(|case| row(case, &parse(case).facts())).collect();
    rows.sort();
    rows.dedup();
    page.extend(rows);
}

fn row(case: &Case, facts: &Facts<'_>) -> String {
    let place = match case.place {
        Place::Alone => "",
        Place::Changeset => " (in a transaction)",
        Place::BatchQuery => " (in a batch)",
        Place::BlobBatch => " (in a batch)",
    };
    let kind = facts.kind.map_or("by method", Kind::as_str);
    let mut needs: Vec<String> = facts.needs.iter().flatten().map(need).collect();
    needs.extend(facts.public.map(|public| match public {
        Public::Read => "public: blob".to_owned(),
        Public::List => "public: container".to_owned(),
    }));
    let needs = match (needs.is_empty(), facts.kind) {
        (false, _) => needs.join("; "),
        (true, Some(_)) => "by part".to_owned(),
        (true, None) => "none: refused".to_owned(),
    };
    let endpoint = match facts.endpoint {
        Endpoint::Primary => "primary",
        Endpoint::Both => "both",
        Endpoint::Secondary => "secondary",
    };
    let body = match facts.body {
        BodyLimit::None => "none".to_owned(),
        BodyLimit::Bytes(bytes) => format!("{} KiB", bytes / 1024),
        BodyLimit::Configured => "setting".to_owned(),
        BodyLimit::Streamed => "streamed".to_owned(),
    };
    let format = match facts.format {
        Format::Empty => "none",
        Format::Json => "JSON",
        Format::Xml => "XML",
        Format::Multipart => "multipart",
        Format::Stream => "stream",
    };
    format!("| {}{place} | {kind} | {needs} | {endpoint} | {body} | {format} |\n", facts.name)
}

fn need(need: &Need<'_>) -> String {
    let spaced = |letters: &str| letters.chars().map(String::from).collect::<Vec<_>>();
    let letters = match need.letters {
        Letters::All(letters) => spaced(letters).join(" and "),
        Letters::Any(letters) if letters.len() > 4 => "any".to_owned(),
        Letters::Any(letters) => spaced(letters).join(" or "),
        Letters::Never => return "key".to_owned(),
    };
    let target = match need.target {
        Target::Account => "account",
        Target::Table(_) => "table",
        Target::Queue(_) => "queue",
        Target::Container(_) => "container",
        Target::Blob { .. } => "blob",
    };
    format!("{letters} on {target}")
}
