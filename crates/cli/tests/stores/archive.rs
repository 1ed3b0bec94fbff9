//! A store as files of the repository: an embedded one as an archive, one in PostgreSQL as a dump and an archive of the
//! bytes of its blobs. `tar` and, for databases, PostgreSQL's programs do the work.

use super::Kind;
use larimar_testkit::Launch;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Holds the data folder, or the folder of blobs beside a database.
const FILES: &str = "files.tar.gz";

/// Saves a store, whose server must not run.
pub(crate) fn save(kind: Kind, launch: &Launch, folder: &Path) {
    fs::create_dir_all(folder).expect("create");
    // Journals are mostly holes; names in order, and no owners or times of one machine.
    run(Command::new("tar")
        .args(["--create", "--gzip", "--sparse", "--sort=name", "--owner=0", "--group=0", "--numeric-owner"])
        // The reserve is empty space, and made again at the next start.
        .args(["--exclude=./reserve", "--mtime=2000-01-01", "--directory"])
        .arg(files_of(kind, launch))
        .arg("--file")
        .arg(folder.join(FILES))
        .arg("."));
    #[cfg(feature = "test-postgres")]
    if kind == Kind::Postgres {
        fs::write(folder.join(dump::FILE), dump::of(launch)).expect("write");
    }
}

/// Restores a store to where a launch looks for it.
pub(crate) fn restore(kind: Kind, folder: &Path, launch: &Launch) {
    let files = files_of(kind, launch);
    fs::create_dir_all(&files).expect("create");
    run(Command::new("tar")
        .args(["--extract", "--gzip", "--file"])
        .arg(folder.join(FILES))
        .arg("--directory")
        .arg(files));
    #[cfg(feature = "test-postgres")]
    if kind == Kind::Postgres {
        dump::load(&fs::read_to_string(folder.join(dump::FILE)).expect("a dump"), launch);
    }
}

/// Copies a saved store.
pub(crate) fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("create");
    for entry in fs::read_dir(from).expect("a folder") {
        let path = entry.expect("an entry").path();
        fs::copy(&path, to.join(path.file_name().expect("a name"))).expect("copy");
    }
}

fn files_of(kind: Kind, launch: &Launch) -> PathBuf {
    match kind {
        Kind::Embedded => launch.data().to_owned(),
        #[cfg(feature = "test-postgres")]
        Kind::Postgres => launch.data().with_extension("blobs"),
    }
}

fn run(command: &mut Command) -> Vec<u8> {
    let output = command.output().expect("the program runs");
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

/// Dumps as SQL that any later version of PostgreSQL reads.
#[cfg(feature = "test-postgres")]
mod dump {
    use super::run;
    use larimar_testkit::Launch;
    use larimar_testkit::postgres::{Binaries, Cluster};
    use std::process::Command;

    pub(super) const FILE: &str = "dump.sql";

    /// Stands for the schema's name, which every test chooses anew.
    const SCHEMA: &str = "larimar_store";

    /// `psql` takes statements as an argument, which Linux limits to 128 KiB.
    const STATEMENTS_BYTES_MAX: usize = 60_000;

    /// The database of a launch.
    pub(super) fn of(launch: &Launch) -> String {
        let schema = schema_of(launch);
        let mut command = Command::new(Binaries::find().expect("PostgreSQL is installed").program("pg_dump"));
        command.args(["--no-owner", "--no-privileges", "--inserts", "--schema", schema]);
        let text = String::from_utf8(run(command.arg(Cluster::shared().url()))).expect("text");
        // What only this version of the program says, and comments.
        let is_wanted = |line: &&str| {
            let left_out = ["--", "\\", "SET ", "CREATE SCHEMA", "SELECT pg_catalog.set_config"];
            !line.is_empty() && !left_out.iter().any(|start| line.starts_with(start))
        };
        text.lines().filter(is_wanted).map(|line| line.replace(schema, SCHEMA) + "\n").collect()
    }

    /// Loads a dump into the schema of a launch, which is empty.
    pub(super) fn load(text: &str, launch: &Launch) {
        let text = text.replace(SCHEMA, schema_of(launch));
        let mut statements = String::new();
        for statement in text.split_inclusive(";\n") {
            if statements.len() + statement.len() > STATEMENTS_BYTES_MAX {
                Cluster::shared().sql(&std::mem::take(&mut statements));
            }
            statements.push_str(statement);
        }
        Cluster::shared().sql(&statements);
    }

    fn schema_of(launch: &Launch) -> &str {
        let url = launch.database().expect("a launch on PostgreSQL");
        url.split_once("search_path%3D").expect("a schema of its own").1
    }
}
