//! The commands that work on data, with the real binary: exit codes, pipes, terminals and signals.

mod data;
mod docs;
mod pipes;
mod terminal;
mod usage;

use larimar_testkit::TemporaryServer;
use std::path::Path;
use std::process::{Command, Output};

const EXE: &str = env!("CARGO_BIN_EXE_larimar");

/// A server in memory, and a directory in which commands run.
struct Fixture {
    server: TemporaryServer,
    folder: tempfile::TempDir,
}

impl Fixture {
    fn start() -> Self {
        let server = TemporaryServer::start(EXE, &["--durability", "memory"]);
        Self { server, folder: tempfile::tempdir().expect("a folder") }
    }

    fn connection_string(&self) -> String {
        let endpoint =
            |name: &str, address: std::net::SocketAddr| format!("{name}Endpoint=http://{address}/devstoreaccount1;");
        let server = &self.server;
        [
            format!("AccountName=devstoreaccount1;AccountKey={KEY};"),
            endpoint("Table", server.table_address()),
            endpoint("Queue", server.queue_address()),
            endpoint("Blob", server.blob_address()),
        ]
        .concat()
    }

    /// A command line of the binary, run by a shell.
    fn shell(&self, line: &str) -> Command {
        let mut command = clean(Command::new("sh"), self.folder.path());
        let path = Path::new(EXE).parent().expect("a folder").display().to_string();
        let path = format!("{path}:{}", std::env::var("PATH").unwrap_or_default());
        command.args(["-c", line]).env("PATH", path);
        command.env("AZURE_STORAGE_CONNECTION_STRING", self.connection_string());
        command
    }

    /// What a command line prints; it must succeed.
    fn run(&self, line: &str) -> String {
        let output = self.shell(line).output().expect("a shell");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert_eq!(output.status.code(), Some(0), "{line}: {text}{}", String::from_utf8_lossy(&output.stderr));
        text
    }

    /// The exit code of a command line and its standard error. Nothing may be on standard output.
    fn refused(&self, line: &str) -> (i32, String) {
        refusal(self.shell(line).output().expect("a shell"))
    }

    /// Fills a table with so many entities in one partition.
    fn fill(&self, table: &str, count: usize) {
        self.run(&format!("larimar table create {table}"));
        let client = self.server.client();
        for row in 0..count {
            client.insert(table, "p", &format!("{row:06}"), "");
        }
    }
}

/// The command without anything in the environment that names an account or a setting.
fn clean(mut command: Command, folder: &Path) -> Command {
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy().into_owned();
        if text.starts_with("LARIMAR_") || text.starts_with("AZURE_") || text.starts_with("AZURITE_") {
            command.env_remove(name);
        }
    }
    command.current_dir(folder);
    command
}

fn refusal(output: Output) -> (i32, String) {
    let Output { status, stdout, stderr } = output;
    assert!(stdout.is_empty(), "{}", String::from_utf8_lossy(&stdout));
    (status.code().expect("an exit code"), String::from_utf8_lossy(&stderr).into_owned())
}

/// The public key of the development account.
const KEY: &str = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";
