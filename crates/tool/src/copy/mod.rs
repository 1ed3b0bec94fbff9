//! `larimar copy`: tables, queues and blobs from one account to another.
//!
//! `plan.rs` lists what there is on both sides, `table.rs`, `queue.rs` and `container.rs` copy and compare one thing
//! each, and `state.rs` keeps what is done, so that the same command continues after an interruption.

mod blob;
mod checksum;
mod container;
mod content;
mod endpoint;
mod plan;
mod prepare;
mod queue;
mod spool;
mod state;
mod table;

use self::checksum::Checksum;
use self::content::Reader;
use self::endpoint::Side;
use self::plan::{Found, Item, Kind, Selection};
use self::state::{ContainerState, Prepared, QueueState, State, StateFile, TableState};
use crate::progress::Progress;
use crate::ranges::Span;
use crate::{Context, Error, Result};
use clap::{Args, ValueEnum};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The arguments of `larimar copy`. It has no `Debug`, since it may hold secrets.
#[derive(Args)]
pub(crate) struct CopyCommand {
    /// Where to copy from: `local`, the name of an environment variable that holds a connection string, @FILE with one,
    /// or a connection string (others can see command lines)
    #[arg(value_name = "FROM")]
    from: String,
    /// Where to copy to, named like FROM
    #[arg(value_name = "TO")]
    to: String,
    /// Copy only things of this kind; may be repeated
    #[arg(long, value_name = "KIND")]
    only: Vec<Kind>,
    /// Copy this table; may be repeated
    #[arg(long = "table", value_name = "NAME")]
    tables: Vec<String>,
    /// Copy this queue; may be repeated
    #[arg(long = "queue", value_name = "NAME")]
    queues: Vec<String>,
    /// Copy this container; may be repeated
    #[arg(long = "container", value_name = "NAME")]
    containers: Vec<String>,
    /// How the messages of queues are read
    #[arg(long, value_name = "HOW", default_value = "peek")]
    messages: Messages,
    /// With --messages receive: seconds that messages are hidden from other consumers of FROM, at most
    #[arg(long, value_name = "SECONDS", default_value_t = 600, value_parser = clap::value_parser!(u64).range(1..=604_800))]
    hide_for: u64,
    /// Delete tables, queues and containers of the same names at TO that are not empty
    #[arg(long)]
    overwrite: bool,
    /// File that keeps what is done, so that the same command continues after an interruption [default:
    /// larimar-copy-….json in this directory]
    #[arg(long, value_name = "FILE")]
    state: Option<PathBuf>,
    /// Do not read back and compare what was copied
    #[arg(long)]
    no_verify: bool,
    /// Only show what would be copied
    #[arg(long)]
    dry_run: bool,
    /// How many requests are under way at once, about
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u16).range(1..=256))]
    parallel: u16,
    /// Also trust the certificates in this file (PEM)
    #[arg(long, value_name = "FILE")]
    ca_file: Option<PathBuf>,
}

/// How the messages of queues are read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Messages {
    /// Look at them and change nothing; a queue with more than 32 is refused
    #[default]
    Peek,
    /// Receive them all and give them back: hidden from consumers meanwhile, and their dequeue counts grow by one
    Receive,
    /// Copy queues without messages
    None,
}

impl CopyCommand {
    pub(crate) async fn run(self, context: &Context) -> Result<()> {
        let named =
            [(Kind::Tables, &self.tables[..]), (Kind::Queues, &self.queues[..]), (Kind::Blobs, &self.containers[..])];
        let selection = Selection::new(&self.only, named, self.messages)?;
        let from = Side::find(&self.from, self.ca_file.as_deref(), context)?;
        let to = Side::find(&self.to, self.ca_file.as_deref(), context)?;
        let progress = Progress::new("items", None);
        let kinds = selection.within(&from, &to, |line| progress.note(line))?;
        let (from_addresses, to_addresses) = (from.addresses(&kinds), to.addresses(&kinds));
        // A secondary address shows what was written to the primary one minutes ago.
        let is_same = |one: &str, other: &str| one.replace(SECONDARY, "") == other.replace(SECONDARY, "");
        if from_addresses.iter().any(|one| to_addresses.iter().any(|other| is_same(one, other))) {
            return Err(Error::Usage(SAME_ACCOUNT.to_owned()));
        }
        from.check_running(&kinds).await?;
        to.check_running(&kinds).await?;
        let path = self.state.clone().unwrap_or_else(|| default_path(&from_addresses, &to_addresses));
        let fresh = State {
            version: state::VERSION,
            from: from_addresses,
            to: to_addresses,
            selection: selection.clone(),
            ..State::default()
        };
        if self.dry_run {
            let items = plan::items(&selection, &kinds, &from.account, &to.account).await?;
            return show(&items, &path);
        }
        let (state, is_resumed) = StateFile::open(&path, fresh)?;
        if is_resumed {
            progress.note(&format!("continuing the copy that {} describes", path.display()));
        } else {
            let items = plan::items(&selection, &kinds, &from.account, &to.account).await;
            let planned = match items {
                Ok(items) => self.check(&items, &from, &to).await.map(|()| items),
                Err(error) => Err(error),
            };
            let planned = planned.inspect_err(|_| drop(state.remove()))?;
            state.with(|state| planned.iter().for_each(|item| state.add(item)));
            state.save()?;
        }
        let copier = Copier {
            from,
            to,
            state,
            progress,
            reader: Reader::default(),
            parallel: usize::from(self.parallel),
            messages: self.messages,
            hide_for: Duration::from_secs(self.hide_for),
        };
        copier.run(!self.no_verify).await
    }

    /// Refuses a plan that would lose something on either side.
    async fn check(&self, items: &[Item], from: &Side, to: &Side) -> Result<()> {
        let occupied: Vec<_> = items.iter().filter(|item| item.at_destination == Found::Content).collect();
        if !occupied.is_empty() && !self.overwrite {
            return Err(Error::Usage(format!(
                "TO already has content in {}; --overwrite deletes it before it copies",
                listed(&occupied)
            )));
        }
        for kind in occupied.iter().map(|item| item.kind).collect::<BTreeSet<_>>() {
            match plan::is_same_account(kind, &from.account, &to.account).await {
                Ok(false) => {}
                Ok(true) => return Err(Error::Usage(format!("{SAME_ACCOUNT} under two addresses"))),
                Err(error) => {
                    return Err(Error::Usage(format!(
                        "--overwrite creates a {} at TO and looks for it at FROM, to be sure that they are two accounts, which \
                         failed: {error}; or delete {} at TO and copy without --overwrite",
                        kind.one(),
                        listed(&occupied)
                    )));
                }
            }
        }
        let long: Vec<_> = items.iter().filter(|item| item.messages > queue::PEEKED_MAX as u64).collect();
        if self.messages == Messages::Peek && !long.is_empty() {
            return Err(Error::Usage(format!(
                "{} cannot be read without receiving messages, since a peek shows {} at most; pass --messages receive \
                 (hides messages from consumers of FROM meanwhile) or --messages none",
                listed(&long),
                queue::PEEKED_MAX
            )));
        }
        Ok(())
    }
}

const SAME_ACCOUNT: &str = "FROM and TO are the same account";
/// Follows the account's name in the address of its other region.
const SECONDARY: &str = "-secondary";

/// Some names, and how many more there are.
fn listed(items: &[&Item]) -> String {
    let names: Vec<_> = items.iter().take(5).map(|item| format!("{} '{}'", item.kind.one(), item.name)).collect();
    match items.len().saturating_sub(names.len()) {
        0 => names.join(", "),
        more => format!("{} and {more} more", names.join(", ")),
    }
}

/// A name that belongs to the two accounts, in the working directory.
fn default_path(from: &[String], to: &[String]) -> PathBuf {
    let both = checksum::text(&format!("{from:?} {to:?}"));
    format!("larimar-copy-{:016x}.json", both as u64).into()
}

fn show(items: &[Item], path: &Path) -> Result<()> {
    use std::io::Write as _;
    let mut out = std::io::stdout().lock();
    let mut line = |text: String| writeln!(out, "{text}").map_err(Error::output);
    for Item { kind, name, messages, at_destination } in items {
        let messages = if *kind == Kind::Queues { format!(", about {messages} messages") } else { String::new() };
        let there = match at_destination {
            Found::Nothing => "",
            Found::Empty => " (empty at TO)",
            Found::Content => " (has content at TO)",
        };
        line(format!("{} {name}{messages}{there}", kind.one()))?;
    }
    if path.exists() {
        line(format!("{} describes a copy that was not finished", path.display()))?;
    }
    Ok(())
}

impl State {
    fn add(&mut self, item: &Item) {
        let prepared = match item.at_destination {
            Found::Nothing | Found::Empty => Prepared::No,
            Found::Content => Prepared::Replace,
        };
        let name = item.name.clone();
        match item.kind {
            Kind::Tables => {
                let table = TableState { prepared, left: vec![Span::all()], done: Checksum::default() };
                self.tables.insert(name, table);
            }
            Kind::Queues => drop(self.queues.insert(name, QueueState { prepared, ..QueueState::default() })),
            Kind::Blobs => drop(self.containers.insert(name, ContainerState { prepared, ..ContainerState::default() })),
        }
    }
}

/// A copy that runs.
#[derive(Debug)]
struct Copier {
    from: Side,
    to: Side,
    state: StateFile,
    progress: Progress,
    reader: Reader,
    parallel: usize,
    messages: Messages,
    hide_for: Duration,
}

impl Copier {
    async fn run(self, verifies: bool) -> Result<()> {
        let names = self.state.with(|state| {
            let tables = state.tables.keys().map(|name| (Kind::Tables, name.clone()));
            let queues = state.queues.keys().map(|name| (Kind::Queues, name.clone()));
            let containers = state.containers.keys().map(|name| (Kind::Blobs, name.clone()));
            tables.chain(queues).chain(containers).collect::<Vec<_>>()
        });
        if names.is_empty() {
            self.progress.note("FROM has nothing to copy");
        }
        for (kind, name) in &names {
            let copied = match kind {
                Kind::Tables => self.copy_table(name).await,
                Kind::Queues => self.copy_queue(name).await,
                Kind::Blobs => self.copy_container(name).await,
            };
            if let Err(error) = copied {
                // What is done is kept even if it was done a moment ago.
                self.state.save()?;
                self.progress
                    .note(&format!("stopped at {} '{name}'; the same command continues from there", kind.one()));
                return Err(error);
            }
        }
        let mut differences = Vec::new();
        for (kind, name) in names.iter().filter(|_| verifies) {
            differences.extend(match kind {
                Kind::Tables => self.verify_table(name).await?,
                Kind::Queues => self.verify_queue(name).await?,
                Kind::Blobs => self.verify_container(name).await?,
            });
        }
        self.report(&names, verifies)?;
        if !differences.is_empty() {
            let texts: Vec<_> = differences.iter().map(|Difference(text)| text.as_str()).collect();
            return Err(Error::Failed(format!(
                "the copy is not complete: {}; the state is kept in {}: remove it to copy anew with --overwrite",
                texts.join("; "),
                self.state.path().display()
            )));
        }
        self.remove_spools()?;
        self.state.remove()
    }

    /// What was copied, a line for each kind, on standard error: the command has no other output.
    fn report(&self, names: &[(Kind, String)], verifies: bool) -> Result<()> {
        let state = self.state.with(|state| state.clone());
        let verified = if verifies { "verified" } else { "not verified" };
        for kind in Kind::ALL {
            let count = names.iter().filter(|(of, _)| *of == kind).count();
            let (things, within): (u64, &str) = match kind {
                Kind::Tables => (state.tables.values().map(|table| table.done.count).sum(), "entities"),
                Kind::Queues => (state.queues.values().map(|queue| queue.messages).sum(), "messages"),
                Kind::Blobs => (state.containers.values().map(|container| container.done.count).sum(), "blobs"),
            };
            if count > 0 {
                let plural = if count == 1 { "" } else { "s" };
                self.progress.note(&format!("{count} {}{plural}, {things} {within}, {verified}", kind.one()));
            }
        }
        Ok(())
    }

    /// Policies need the account's key, and some services have none: their refusal does not end a copy.
    fn note_refusal(&self, outcome: larimar_client::Result<()>, what: impl FnOnce() -> String) -> Result<()> {
        match outcome {
            Ok(()) => Ok(()),
            Err(error) if matches!(error.status(), Some(400 | 401 | 403 | 409 | 501)) => {
                self.progress.note(&format!("{} are not copied: {error}", what()));
                Ok(())
            }
            Err(error) => Err(error.into()),
        }
    }
}

/// Something that the destination does not have as the source had it.
#[derive(Debug, PartialEq, Eq)]
struct Difference(String);

impl Difference {
    /// The difference between what was read at the source and what is at the destination, if there is one.
    fn between(what: &str, name: &str, from: Checksum, to: Checksum) -> Option<Self> {
        (from != to).then(|| Self(format!("{what} '{name}': FROM had {from}, TO has {to}")))
    }
}
