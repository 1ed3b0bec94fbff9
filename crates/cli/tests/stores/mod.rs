//! Stores of older formats, kept beside this file: a copy of each is opened by today's server, read in full, written to
//! and opened again. A change of format that cannot read what an older release wrote fails here.
//!
//! A folder holds one store and `seen.txt`, what clients saw of it when it was made. `cargo xtask stores` makes those
//! of today's formats (`fill.rs`); the folders of older ones stay as they are.

mod archive;
mod fill;
mod seen;
mod write;

use larimar_testkit::{Launch, Server};
use std::fs;
use std::path::{Path, PathBuf};

const EXE: &str = env!("CARGO_BIN_EXE_larimar");

/// Names a folder: the tests that make a store also save it there.
const SAVE_VARIABLE: &str = "SAVE_STORES_TO";

/// Which engine a store belongs to: the first word of its folder's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Embedded,
    #[cfg(feature = "test-postgres")]
    Postgres,
}

impl Kind {
    const fn word(self) -> &'static str {
        match self {
            Self::Embedded => "embedded",
            #[cfg(feature = "test-postgres")]
            Self::Postgres => "postgres",
        }
    }

    /// The folder of today's format: the engine, the release, the number of its format in `docs/format.md`, and a
    /// number that grows when rows of new kinds are added without a change of format (1: the index of tags, incremental
    /// copies).
    fn folder_today(self) -> String {
        let format = match self {
            Self::Embedded => "1.1",
            #[cfg(feature = "test-postgres")]
            Self::Postgres => "2.1",
        };
        format!("{}-{}-format-{format}", self.word(), env!("CARGO_PKG_VERSION"))
    }

    /// A new, empty store of this engine.
    fn fresh(self, data: &Path) -> Launch {
        let launch = Launch::new(EXE, data);
        let launch = match self {
            Self::Embedded => launch.engine("local"),
            #[cfg(feature = "test-postgres")]
            Self::Postgres => launch.engine(larimar_testkit::postgres::Cluster::shared().fresh_url()),
        };
        // The sweep discards blocks that were not committed within a week; it starts after this time.
        launch.argument("--blob-grace").argument("24h").argument("--log-level").argument("warn")
    }
}

#[test]
fn embedded_stores_of_older_formats_open_and_take_writes() {
    open_all(Kind::Embedded);
}

#[test]
fn an_embedded_store_made_now_opens_and_takes_writes() {
    make_and_open(Kind::Embedded);
}

#[cfg(feature = "test-postgres")]
#[test]
fn databases_of_older_formats_open_and_take_writes() {
    open_all(Kind::Postgres);
}

#[cfg(feature = "test-postgres")]
#[test]
fn a_database_made_now_opens_and_takes_writes() {
    make_and_open(Kind::Postgres);
}

/// Opens a copy of every stored folder of an engine.
fn open_all(kind: Kind) {
    let stores = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/stores");
    let prefix = format!("{}-", kind.word());
    let entries = fs::read_dir(stores).expect("the folder of this file");
    let paths = entries.map(|entry| entry.expect("an entry").path());
    let folders: Vec<PathBuf> =
        paths.filter(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(&prefix))).collect();
    assert!(!folders.is_empty(), "there is a store of today's format");
    for folder in folders {
        println!("{}", folder.display());
        let work = tempfile::tempdir().expect("a folder");
        let launch = kind.fresh(&work.path().join("data"));
        archive::restore(kind, &folder, &launch);
        let expected = fs::read_to_string(folder.join("seen.txt")).expect("what clients saw");
        open(&launch, &expected);
    }
}

/// Makes a store, saves it if asked to, and opens it.
fn make_and_open(kind: Kind) {
    let work = tempfile::tempdir().expect("a folder");
    let launch = kind.fresh(&work.path().join("data"));
    let seen = fill::make(&launch);
    let copy = work.path().join(kind.folder_today());
    archive::save(kind, &launch, &copy);
    fs::write(copy.join("seen.txt"), &seen).expect("write");
    if let Some(folder) = std::env::var_os(SAVE_VARIABLE) {
        archive::copy(&copy, &Path::new(&folder).join(kind.folder_today()));
    }
    let restored = kind.fresh(&work.path().join("restored"));
    archive::restore(kind, &copy, &restored);
    open(&restored, &seen);
}

/// Opens a store, compares what clients see with what they saw before, writes, and opens it again: after a kill, and
/// after an orderly stop.
fn open(launch: &Launch, expected: &str) {
    let server = launch.start();
    same(&seen::of(&server), expected);
    write::all(&server, expected);
    let written = seen::of(&server);
    let server = server.kill().start();
    same(&seen::of(&server), &written);
    let server = stop(server).start();
    same(&seen::of(&server), &written);
}

/// Ends a server in order.
fn stop(server: Server) -> Launch {
    let (launch, status) = server.stop();
    assert!(status.success(), "{status}");
    launch
}

/// Compares line by line, to show the lines that differ and no others. Facts are no lines of what is seen.
#[track_caller]
fn same(found: &str, expected: &str) {
    let expected: Vec<&str> = expected.lines().filter(|line| !line.starts_with(fill::FACT)).collect();
    let found: Vec<&str> = found.lines().collect();
    let missing: Vec<_> = expected.iter().filter(|line| !found.contains(line)).collect();
    let added: Vec<_> = found.iter().filter(|line| !expected.contains(line)).collect();
    assert!(missing.is_empty() && added.is_empty(), "missing: {missing:#?}\nadded: {added:#?}");
    assert_eq!(found, expected, "the order differs");
}
