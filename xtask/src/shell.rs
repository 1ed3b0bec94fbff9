//! Processes and paths: everything `xtask` starts goes through here, with a time limit.
//!
//! Children stay in the terminal's process group, so Ctrl-C reaches them; past its limit a child is stopped together
//! with its descendants.

use std::collections::BTreeMap;
use std::env;
use std::ffi::OsStr;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

use crate::output;
use crate::say;

/// How long any one child may take before it counts as hung.
pub(crate) const STEP_TIME_MAX: Duration = Duration::from_secs(40 * 60);

const POLL: Duration = Duration::from_millis(50);
/// The first pause of a wait for a child; each further one is twice as long, up to [`POLL`].
const FIRST_POLL: Duration = Duration::from_millis(1);
/// After a child has ended, how long its output may still be held open by something it started.
const OUTPUT_GRACE: Duration = Duration::from_secs(5);

/// The checkout.
pub(crate) struct Repo {
    pub(crate) root: PathBuf,
}

impl Repo {
    /// Cargo names the folder of `xtask`; the checkout is the folder above.
    pub(crate) fn find() -> Result<Self> {
        let manifest_dir = env::var("CARGO_MANIFEST_DIR").context("run this through `cargo xtask`")?;
        let root = Path::new(&manifest_dir).parent().context("xtask has no parent folder")?.to_owned();
        ensure!(root.join("Cargo.toml").is_file(), "{} is not the checkout", root.display());
        Ok(Self { root })
    }

    pub(crate) fn path(&self, relative: &str) -> PathBuf {
        self.root.join(relative)
    }

    /// Cargo in the checkout, free of the variables that `cargo run` set for `xtask` itself: build scripts that watch
    /// them would run again.
    pub(crate) fn cargo(&self, arguments: &[&str]) -> Command {
        let mut command = self.command(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()), ".");
        for (name, _) in env::vars_os() {
            let text = name.to_string_lossy();
            if text.starts_with("CARGO_PKG_") || text.starts_with("CARGO_MANIFEST_") {
                command.env_remove(&name);
            }
        }
        command.args(arguments);
        command
    }

    /// A program started in a folder of the checkout.
    pub(crate) fn command(&self, program: impl AsRef<OsStr>, folder: &str) -> Command {
        let mut command = Command::new(program);
        command.current_dir(self.path(folder)).stdin(Stdio::null());
        command
    }
}

/// Runs a command and prints its output.
pub(crate) fn run(command: &mut Command, limit: Duration) -> Result<ExitStatus> {
    announce(command);
    let mut child = spawn(command.stdout(output::stdio()).stderr(output::stdio()))?;
    wait(&mut child, limit)
}

/// Runs a command and hands each line of its standard output to `on_line`.
pub(crate) fn run_lines(command: &mut Command, limit: Duration, mut on_line: impl FnMut(&str)) -> Result<ExitStatus> {
    announce(command);
    let mut child = spawn(command.stdout(Stdio::piped()).stderr(output::stdio()))?;
    let lines = lines_of(child.stdout.take().context("standard output is piped")?);
    let deadline = Instant::now() + limit;
    let mut ended_at = None;
    loop {
        match lines.recv_timeout(POLL) {
            Ok(line) => on_line(&line),
            Err(RecvTimeoutError::Disconnected) => break,
            Err(RecvTimeoutError::Timeout) => {
                if ended_at.is_none() && child.try_wait()?.is_some() {
                    ended_at = Some(Instant::now());
                }
                if ended_at.is_some_and(|at| at.elapsed() > OUTPUT_GRACE) {
                    break;
                }
            }
        }
        if Instant::now() > deadline {
            break;
        }
    }
    wait(&mut child, deadline.saturating_duration_since(Instant::now()))
}

/// Standard output of a short command that must succeed.
pub(crate) fn output_of(command: &mut Command) -> Result<Vec<u8>> {
    let output = command.stderr(output::stdio()).output().with_context(|| format!("start {}", describe(command)))?;
    ensure!(output.status.success(), "{} ended with {}", describe(command), output.status);
    Ok(output.stdout)
}

pub(crate) fn spawn(command: &mut Command) -> Result<Child> {
    command.spawn().with_context(|| format!("start {}", describe(command)))
}

/// Waits for a child; past the limit it is killed with its descendants and that is an error.
pub(crate) fn wait(child: &mut Child, limit: Duration) -> Result<ExitStatus> {
    let deadline = Instant::now() + limit;
    let mut pause = FIRST_POLL;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        if Instant::now() >= deadline {
            kill_tree(child);
            bail!("stopped: it ran past its time limit");
        }
        thread::sleep(pause);
        pause = POLL.min(pause * 2);
    }
}

/// Reads lines on a thread of its own; the channel closes when the stream does.
pub(crate) fn lines_of(stream: impl Read + Send + 'static) -> Receiver<String> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        let mut stream = BufReader::new(stream);
        let mut line = Vec::new();
        while matches!(stream.read_until(b'\n', &mut line), Ok(read) if read > 0) {
            let text = String::from_utf8_lossy(&line).trim_end_matches(['\r', '\n']).to_owned();
            line.clear();
            if sender.send(text).is_err() {
                return;
            }
        }
    });
    receiver
}

/// Whether a program of this name is on the search path.
pub(crate) fn on_path(program: &str) -> bool {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path).any(|folder| folder.join(program).is_file())
}

/// Asks a process to end, as an operator would.
pub(crate) fn terminate(child: &Child) -> Result<()> {
    signal("-TERM", &[child.id()])
}

pub(crate) fn kill_tree(child: &mut Child) {
    let descendants = descendants_of(child.id());
    // Already gone is what we want.
    let _ = child.kill();
    let _ = signal("-KILL", &descendants);
    let _ = child.wait();
}

fn signal(name: &str, pids: &[u32]) -> Result<()> {
    if pids.is_empty() {
        return Ok(());
    }
    // The shell has `kill` built in; the program of that name is not on every machine.
    let pids = pids.iter().map(u32::to_string).collect::<Vec<_>>().join(" ");
    let script = format!("kill {name} {pids}");
    let status = Command::new("sh").args(["-c", &script]).stderr(Stdio::null()).status().context("start sh")?;
    ensure!(status.success(), "kill {name} ended with {status}");
    Ok(())
}

fn descendants_of(pid: u32) -> Vec<u32> {
    let mut children: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for (child, parent) in processes() {
        children.entry(parent).or_default().push(child);
    }
    let mut found = Vec::new();
    let mut open = vec![pid];
    while let Some(parent) = open.pop() {
        let next = children.remove(&parent).unwrap_or_default();
        found.extend(&next);
        open.extend(next);
    }
    found
}

/// Every process with its parent. Without `/proc` the list is empty, and only the child itself is stopped.
fn processes() -> Vec<(u32, u32)> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    entries
        .flatten()
        .filter_map(|entry| {
            let pid = entry.file_name().to_str()?.parse().ok()?;
            Some((pid, parent_in(&fs::read_to_string(entry.path().join("stat")).ok()?)?))
        })
        .collect()
}

/// The parent in a `stat` line, `pid (name) state parent …`; the name may contain any character.
fn parent_in(stat: &str) -> Option<u32> {
    stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
}

/// The processor time of all children that have ended, and of theirs; none where there is no `/proc`.
pub(crate) fn processor_time() -> Option<Duration> {
    children_time_in(&fs::read_to_string("/proc/self/stat").ok()?)
}

/// The fields `cutime` and `cstime` of a `stat` line, in hundredths of a second: the 14th and 15th after the name.
fn children_time_in(stat: &str) -> Option<Duration> {
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(13);
    let mut next = || fields.next()?.parse::<u64>().ok();
    Some(Duration::from_millis((next()? + next()?) * 10))
}

fn announce(command: &Command) {
    say!("$ {}", describe(command));
}

/// The command as one would type it, programs by name.
fn describe(command: &Command) -> String {
    let program = Path::new(command.get_program());
    let mut text = program.file_name().unwrap_or(program.as_os_str()).to_string_lossy().into_owned();
    for argument in command.get_args() {
        text.push(' ');
        text.push_str(&argument.to_string_lossy());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]).stdin(Stdio::null());
        command
    }

    #[test]
    fn lines_and_exit_code_come_back() {
        let mut lines = Vec::new();
        let status = run_lines(&mut shell("echo one; echo two; exit 3"), STEP_TIME_MAX, |line| {
            lines.push(line.to_owned());
        });
        assert_eq!(status.expect("sh runs").code(), Some(3));
        assert_eq!(lines, ["one", "two"]);
    }

    #[test]
    fn a_hung_child_is_stopped_with_its_descendants() {
        let mut pid = String::new();
        let result = run_lines(&mut shell("sleep 600 & echo $!; wait"), Duration::from_secs(1), |line| {
            line.clone_into(&mut pid);
        });
        assert!(result.expect_err("past its limit").to_string().contains("time limit"));
        // The kill arrives when the system gets to it; a zombie may remain where nothing reaps orphans.
        let runs = || {
            let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            stat.rsplit_once(')').is_some_and(|(_, rest)| !rest.trim_start().starts_with('Z'))
        };
        for _ in 0..200 {
            if !runs() {
                return;
            }
            thread::sleep(POLL);
        }
        panic!("{pid} is still there");
    }

    #[test]
    fn the_parent_of_a_process_is_read_past_any_name() {
        assert_eq!(parent_in("12 (a) b (c) S 7 12 12 0"), Some(7));
        assert_eq!(parent_in("nonsense"), None);
        let stat = "12 (a) b (c) S 7 12 12 0 -1 4194560 100 200 0 0 11 12 150 25 20 0 1 0";
        assert_eq!(children_time_in(stat), Some(Duration::from_millis(1750)));
    }

    #[test]
    fn programs_are_looked_up_on_the_path() {
        assert!(on_path("sh"));
        assert!(!on_path("no-such-program-larimar"));
    }
}
