//! Finds PostgreSQL's programs on this machine.

use crate::BINARIES_VARIABLE;
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The oldest version that Larimar supports.
const VERSION_MIN: u32 = 15;

/// Where Debian and its derivatives install each version's programs, in `<version>/bin`.
const DEBIAN: &str = "/usr/lib/postgresql";

/// The directory of PostgreSQL's programs.
#[derive(Clone, Debug)]
pub struct Binaries {
    directory: PathBuf,
}

impl Binaries {
    /// Looks for PostgreSQL 15 or newer: in the directory that `LARIMAR_POSTGRES_BIN` names and, without it, in
    /// Debian's directories (the newest version first), where `pg_config` points, and on the search path.
    #[must_use]
    pub fn find() -> Option<Self> {
        let named = env::var_os(BINARIES_VARIABLE).filter(|folder| !folder.is_empty());
        let folders = named.map_or_else(usual_directories, |folder| vec![folder.into()]);
        folders.into_iter().map(|directory| Self { directory }).find(Self::is_complete)
    }

    /// The path of one program.
    #[must_use]
    pub fn program(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    pub(crate) fn directory(&self) -> &Path {
        &self.directory
    }

    /// Whether all programs that a cluster needs are here, in a supported version.
    fn is_complete(&self) -> bool {
        let all = ["initdb", "pg_basebackup", "pg_ctl", "postgres", "psql"];
        all.iter().all(|name| self.program(name).is_file())
            && first_line(&self.program("initdb"), "--version")
                .and_then(|line| version_in(&line))
                .is_some_and(|version| version >= VERSION_MIN)
    }
}

fn usual_directories() -> Vec<PathBuf> {
    let entries = fs::read_dir(DEBIAN).into_iter().flatten().flatten();
    let mut versions: Vec<u32> = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    versions.sort_unstable_by(|a, b| b.cmp(a));
    let mut folders: Vec<PathBuf> =
        versions.iter().map(|version| Path::new(DEBIAN).join(version.to_string()).join("bin")).collect();
    folders.extend(first_line(Path::new("pg_config"), "--bindir").map(PathBuf::from));
    folders.extend(env::split_paths(&env::var_os("PATH").unwrap_or_default()));
    folders
}

/// The first line that a program prints when run with one argument, if it succeeds.
fn first_line(program: &Path, argument: &str) -> Option<String> {
    let output = Command::new(program).arg(argument).stdin(Stdio::null()).stderr(Stdio::null()).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.lines().next().map(str::to_owned))?
}

/// The major version in `initdb (PostgreSQL) 15.19 (Debian 15.19-1)`.
fn version_in(line: &str) -> Option<u32> {
    let (_, version) = line.split_once("(PostgreSQL) ")?;
    let end = version.find(|c: char| !c.is_ascii_digit()).unwrap_or(version.len());
    version[..end].parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_major_version_is_read_from_what_a_program_prints() {
        let cases = [
            ("initdb (PostgreSQL) 15.19 (Debian 15.19-0+deb12u1)", Some(15)),
            ("initdb (PostgreSQL) 18beta1", Some(18)),
            ("initdb (PostgreSQL) 9.6.24", Some(9)),
            ("initdb 15", None),
            ("", None),
        ];
        for (line, version) in cases {
            assert_eq!(version_in(line), version, "{line}");
        }
    }

    #[test]
    fn a_directory_without_the_programs_is_not_used() {
        assert!(!Binaries { directory: env::temp_dir() }.is_complete());
    }
}
