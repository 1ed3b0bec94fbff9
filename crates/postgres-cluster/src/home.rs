//! A cluster's directory on disk, its port, the user it belongs to, and PostgreSQL's programs that run on it.
//!
//! PostgreSQL refuses to run as root. For root, its programs run as an unprivileged user, who owns the directory.

use crate::watchdog::Watchdog;
use crate::{Binaries, Options, USER};
use std::collections::hash_map::RandomState;
use std::env;
use std::fmt::Write as _;
use std::fs::{self, OpenOptions};
use std::hash::BuildHasher as _;
use std::io::Write as _;
use std::net::TcpListener;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Below the range of ports for outgoing connections (32768 and up on Linux, 49152 elsewhere), so that the port of a
/// stopped cluster stays free until it starts again.
const PORTS: std::ops::Range<u16> = 20_000..32_000;

/// Another process may take a port between the check and the start of the cluster.
const START_TRIES: usize = 5;

/// The settings of every cluster. `fsync` and `synchronous_commit` stay on, their defaults.
const SETTINGS: &str = "\
listen_addresses = '127.0.0.1'
max_connections = 300
shared_buffers = '128MB'
";

/// The directory, and how programs run on it.
#[derive(Debug)]
pub(crate) struct Home {
    pub(crate) binaries: Binaries,
    directory: PathBuf,
    account: Option<Account>,
    pub(crate) port: u16,
    _watchdog: Watchdog,
}

/// The unprivileged user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Account {
    user: u32,
    group: u32,
}

impl Home {
    /// An empty directory with a watchdog that removes it.
    pub(crate) fn create(binaries: &Binaries) -> Result<Self, String> {
        let random = RandomState::new().hash_one(std::process::id());
        let directory = env::temp_dir().join(format!("larimar-postgres-{random:016x}"));
        fs::create_dir(&directory).map_err(|error| format!("cannot create {}: {error}", directory.display()))?;
        let watchdog = Watchdog::start(&directory).map_err(|error| format!("cannot start a shell: {error}"))?;
        let owner = fs::metadata(&directory)
            .map_err(|error| format!("cannot read the owner of {}: {error}", directory.display()))?
            .uid();
        let account = if owner == 0 { Some(Account::unprivileged()?) } else { None };
        let home = Self { binaries: binaries.clone(), directory, account, port: 0, _watchdog: watchdog };
        home.change_owner(&home.directory)?;
        Ok(home)
    }

    /// Where the cluster's files are.
    pub(crate) fn data(&self) -> PathBuf {
        self.directory.join("data")
    }

    /// Creates the cluster's files and settings.
    pub(crate) fn initialise(&self, options: &Options<'_>) -> Result<(), String> {
        let mut initdb = self.command("initdb");
        initdb.args(["--no-sync", "--auth", "trust", "--encoding", "UTF8", "--locale", "C", "--username", USER]);
        initdb.arg("--pgdata").arg(self.data());
        if let Some(password) = options.password {
            initdb.arg("--pwfile").arg(self.write("password", password)?);
        }
        output_of(&mut initdb)?;
        let mut settings = SETTINGS.to_owned();
        if let Some((certificate, key)) = options.tls {
            self.write("data/server.crt", certificate)?;
            self.write("data/server.key", key)?;
            settings.push_str("ssl = on\n");
        }
        for (name, value) in options.settings {
            let _ = writeln!(settings, "{name} = '{}'", value.replace('\'', "''"));
        }
        self.configure(&settings)?;
        self.write("data/pg_hba.conf", &access_rules(options)).map(drop)
    }

    /// Appends lines to the settings; the last line for a name is the one that PostgreSQL uses.
    fn configure(&self, lines: &str) -> Result<(), String> {
        let path = self.data().join("postgresql.conf");
        let file = OpenOptions::new().append(true).open(&path);
        let written = file.and_then(|mut file| file.write_all(lines.as_bytes()));
        written.map_err(|error| format!("cannot write {}: {error}", path.display()))
    }

    /// Starts the cluster for the first time, on a port that is free.
    pub(crate) fn start_somewhere(&mut self) -> Result<(), String> {
        let mut said = String::new();
        for _ in 0..START_TRIES {
            self.port = free_port()?;
            self.configure(&format!(
                "port = {}\nunix_socket_directories = '{}'\n",
                self.port,
                self.directory.display()
            ))?;
            match self.start() {
                Ok(()) => return Ok(()),
                Err(why) => said = why,
            }
            if !said.contains("could not bind") {
                break;
            }
        }
        Err(said)
    }

    /// Starts the cluster and waits until it accepts connections.
    pub(crate) fn start(&self) -> Result<(), String> {
        let log = self.directory.join("log");
        let started = self.control(&["start", "--wait", "--silent", "--log"], Some(&log));
        started.map_err(|said| format!("{said}\n{}", fs::read_to_string(&log).unwrap_or_default()))
    }

    /// `pg_ctl` on the cluster.
    pub(crate) fn control(&self, arguments: &[&str], path: Option<&Path>) -> Result<(), String> {
        let mut control = self.command("pg_ctl");
        control.args(arguments).args(path).arg("--pgdata").arg(self.data());
        output_of(&mut control).map(drop)
    }

    /// The id of the cluster's main process; `None` while it is stopped.
    pub(crate) fn postmaster(&self) -> Option<u32> {
        fs::read_to_string(self.data().join("postmaster.pid")).ok()?.lines().next()?.trim().parse().ok()
    }

    /// A program of PostgreSQL, run in the directory by its owner.
    pub(crate) fn command(&self, program: &str) -> Command {
        self.run(&self.binaries.program(program))
    }

    /// A shell, run in the same way, that finds PostgreSQL's programs first.
    pub(crate) fn shell(&self) -> Command {
        let others = env::var_os("PATH").unwrap_or_default();
        let folders = std::iter::once(self.binaries.directory().to_owned()).chain(env::split_paths(&others));
        let mut shell = self.run(Path::new("sh"));
        shell.env("PATH", env::join_paths(folders).expect("the parts of a path"));
        shell
    }

    fn run(&self, program: &Path) -> Command {
        let mut command = command(program);
        command.current_dir(&self.directory).stdin(Stdio::null());
        if let Some(account) = self.account {
            // When it changes the user, the standard library also drops root's groups.
            command.uid(account.user).gid(account.group);
        }
        command
    }

    /// Writes a file that only the owner of the directory can read.
    fn write(&self, name: &str, text: &str) -> Result<PathBuf, String> {
        let path = self.directory.join(name);
        let file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&path);
        let written = file.and_then(|mut file| file.write_all(text.as_bytes()));
        written.map_err(|error| format!("cannot write {}: {error}", path.display()))?;
        self.change_owner(&path)?;
        Ok(path)
    }

    /// Makes a file belong to the user that the programs run as.
    fn change_owner(&self, path: &Path) -> Result<(), String> {
        let Some(account) = self.account else { return Ok(()) };
        let given = chown(path, Some(account.user), Some(account.group));
        given.map_err(|error| format!("cannot change the owner of {}: {error}", path.display()))
    }
}

impl Account {
    /// The user of PostgreSQL's package if there is one, otherwise `nobody`.
    fn unprivileged() -> Result<Self, String> {
        let users =
            fs::read_to_string("/etc/passwd").map_err(|error| format!("cannot read the list of users: {error}"))?;
        let found = Self::named("postgres", &users).or_else(|| Self::named("nobody", &users));
        found.ok_or_else(|| "there is no unprivileged user to run PostgreSQL as".to_owned())
    }

    /// A user's line is `name:password:user:group:…`.
    fn named(name: &str, users: &str) -> Option<Self> {
        users.lines().find_map(|line| {
            let mut fields = line.strip_prefix(name)?.strip_prefix(':')?.split(':').skip(1);
            Some(Self { user: fields.next()?.parse().ok()?, group: fields.next()?.parse().ok()? })
        })
    }
}

/// Who may connect, and how. With TLS, connections without it are refused.
fn access_rules(options: &Options<'_>) -> String {
    let connection = if options.tls.is_some() { "hostssl" } else { "host" };
    let method = if options.password.is_some() { "scram-sha-256" } else { "trust" };
    let rule = |database: &str| format!("{connection} {database} all 127.0.0.1/32 {method}\n");
    rule("all") + &rule("replication")
}

fn free_port() -> Result<u16, String> {
    let start = RandomState::new().hash_one(std::process::id());
    let ports = PORTS.len() as u64;
    let mut candidates = (0..ports).filter_map(|step| {
        let offset = (start.wrapping_add(step)) % ports;
        Some(PORTS.start + u16::try_from(offset).ok()?)
    });
    let free = candidates.find(|port| TcpListener::bind(("127.0.0.1", *port)).is_ok());
    free.ok_or_else(|| "no port is free".to_owned())
}

/// A program without environment variables that name another database, and without a home directory, whose certificates
/// it might use.
pub(crate) fn command(program: &Path) -> Command {
    let mut command = Command::new(program);
    for (name, _) in env::vars_os() {
        if name.to_string_lossy().starts_with("PG") {
            command.env_remove(name);
        }
    }
    command.env("LC_ALL", "C").env("HOME", env::temp_dir());
    command
}

/// The standard output of a command, or its error output if it failed.
pub(crate) fn output_of(command: &mut Command) -> Result<String, String> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command.output().map_err(|error| format!("cannot start {program}: {error}"))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    if output.status.success() {
        return Ok(text);
    }
    Err(format!("{program} ended with {}:\n{text}{}", output.status, String::from_utf8_lossy(&output.stderr)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_is_found_by_the_whole_name() {
        let users =
            "root:x:0:0:root:/:/bin/sh\npostgres2:x:9:9::/:\npostgres:x:101:104:,,,:/var/lib:/bin/bash\nbad:x\n";
        assert_eq!(Account::named("postgres", users), Some(Account { user: 101, group: 104 }));
        assert_eq!(Account::named("nobody", users), None);
        assert_eq!(Account::named("bad", users), None);
    }

    #[test]
    fn tls_and_a_password_are_required_when_they_are_set() {
        assert!(access_rules(&Options::default()).starts_with("host all all 127.0.0.1/32 trust\n"));
        let both = Options { tls: Some(("c", "k")), password: Some("p"), ..Options::default() };
        assert!(access_rules(&both).ends_with("hostssl replication all 127.0.0.1/32 scram-sha-256\n"));
    }
}
