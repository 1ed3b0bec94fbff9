//! Removes a cluster when its owner is dropped or killed: also after `kill -9`, when no destructor runs.

use std::io;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{ChildStdin, Command, Stdio};
use std::time::{Duration, Instant};

/// Waits for the end of its input, which is the end of the owner, then stops the cluster and removes its directory.
///
/// It runs in the background of a shell that ends at once, in a process group of its own, so that neither Ctrl-C nor a
/// kill of the owner with all its children ends it. Where there is `/proc`, the process is stopped only if it works in
/// the cluster's directory: the id in an old file may belong to another process by now. If the owner is killed while it
/// creates or starts the cluster, programs are still at work in the directory, hence the rounds.
const SCRIPT: &str = r#"
exec 3<&0
(
    trap '' HUP INT TERM
    read -r _ <&3
    file="$1/data/postmaster.pid"
    rounds=0
    while [ -e "$1" ] && [ "$rounds" -lt 100 ]; do
        if read -r pid <"$file" && { [ ! -d /proc/self ] || [ "/proc/$pid/cwd" -ef "$1/data" ]; }; then
            kill -CONT "$pid"
            kill -QUIT "$pid"
            tries=0
            while [ -e "$file" ] && [ "$tries" -lt 100 ]; do
                sleep 0.1
                tries=$((tries + 1))
            done
            [ -e "$file" ] && kill -KILL "$pid"
        fi
        rm -rf "$1" || sleep 0.1
        rounds=$((rounds + 1))
    done
) </dev/null >/dev/null 2>&1 &
"#;

/// How long the script may take to stop the cluster and remove the files.
const WAIT_MAX: Duration = Duration::from_secs(30);

/// Keeps a cluster's directory until dropped.
#[derive(Debug)]
pub(crate) struct Watchdog {
    directory: PathBuf,
    input: Option<ChildStdin>,
}

impl Watchdog {
    /// Starts to watch the directory.
    pub(crate) fn start(directory: &Path) -> io::Result<Self> {
        let mut shell = Command::new("sh");
        shell.args(["-c", SCRIPT, "watchdog"]).arg(directory).process_group(0);
        let mut shell = shell.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
        let input = shell.stdin.take();
        shell.wait()?;
        Ok(Self { directory: directory.to_owned(), input })
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        drop(self.input.take());
        let until = Instant::now() + WAIT_MAX;
        while self.directory.exists() && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}
