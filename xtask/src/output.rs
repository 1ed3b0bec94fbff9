//! What a run prints. Steps that run beside each other must not mix their lines: each prints into a file of its own
//! thread, which is shown in one piece when the step ends.
//!
//! Use [`say!`](crate::say) instead of `println!`, and [`stdio`] for the output of child processes.

use std::cell::RefCell;
use std::fmt;
use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::process::Stdio;
use std::thread::{Scope, ScopedJoinHandle};

use anyhow::{Context, Result};

use crate::tally::Tally;

thread_local! {
    static FILE: RefCell<Option<File>> = const { RefCell::new(None) };
}

/// Prints a line: to the terminal, or to the file of the step that runs on this thread.
#[macro_export]
macro_rules! say {
    () => { $crate::output::print_line(format_args!("")) };
    ($($text:tt)*) => { $crate::output::print_line(format_args!($($text)*)) };
}

pub(crate) fn print_line(line: fmt::Arguments<'_>) {
    FILE.with_borrow_mut(|file| match file {
        // One call, so that lines of child processes do not get in between.
        Some(file) => file.write_all(format!("{line}\n").as_bytes()).expect("the temporary file can be written"),
        None => println!("{line}"),
    });
}

/// Where a child process that is started on this thread prints.
pub(crate) fn stdio() -> Stdio {
    FILE.with_borrow(|file| match file {
        Some(file) => file.try_clone().expect("the temporary file can be opened again").into(),
        None => Stdio::inherit(),
    })
}

/// Does some work and returns what it printed on this thread, child processes included.
pub(crate) fn capture<T>(work: impl FnOnce() -> T) -> Result<(T, String)> {
    let file = temporary_file()?;
    let outer = FILE.replace(Some(file.try_clone()?));
    let result = work();
    FILE.set(outer);
    let mut bytes = Vec::new();
    let mut file = file;
    file.seek(SeekFrom::Start(0))?;
    file.read_to_end(&mut bytes)?;
    Ok((result, String::from_utf8_lossy(&bytes).into_owned()))
}

/// Starts work on a thread of its own. What it printed is shown when it has ended: all of it if something failed,
/// otherwise the lines that say which steps ran and what was skipped.
pub(crate) fn beside<'scope, T: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    work: impl FnOnce() -> (Tally, T) + Send + 'scope,
) -> ScopedJoinHandle<'scope, Result<(Tally, T)>> {
    scope.spawn(move || {
        let (result, printed) = capture(work)?;
        let shown = if result.0.failed() > 0 { printed } else { headlines(&printed) };
        print!("{shown}");
        Ok(result)
    })
}

fn headlines(printed: &str) -> String {
    let is_headline = |line: &&str| line.starts_with("<==") || line.starts_with("SKIPPED");
    printed.lines().filter(is_headline).map(|line| format!("{line}\n")).collect()
}

/// A file without a name, which is gone when it is closed.
fn temporary_file() -> Result<File> {
    use std::sync::atomic::{AtomicU64, Ordering};
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let name = format!("larimar-xtask-output-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
    let path = std::env::temp_dir().join(name);
    let mut options = File::options();
    let file = options.create_new(true).read(true).append(true).open(&path);
    let file = file.with_context(|| format!("create {}", path.display()))?;
    std::fs::remove_file(&path).with_context(|| format!("remove {}", path.display()))?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use std::process::Command;
    use std::thread;

    use super::*;

    #[test]
    fn lines_of_a_step_and_of_its_children_are_kept_in_order() {
        let (code, printed) = capture(|| {
            crate::say!("first");
            let mut command = Command::new("sh");
            command.args(["-c", "echo second; echo third >&2; exit 3"]).stdout(stdio()).stderr(stdio());
            let status = command.status().expect("sh runs");
            crate::say!("last");
            status.code()
        })
        .expect("captured");
        assert_eq!(code, Some(3));
        assert_eq!(printed, "first\nsecond\nthird\nlast\n");
    }

    #[test]
    fn a_step_that_failed_shows_everything_and_another_only_its_headlines() {
        let printed = "==> a\n$ cmd\nnoise\n<== a: ok in 1 s\nSKIPPED: b: no 'b'\n";
        assert_eq!(headlines(printed), "<== a: ok in 1 s\nSKIPPED: b: no 'b'\n");
        let tally = thread::scope(|scope| {
            let step = beside(scope, || {
                let mut tally = Tally::default();
                tally.pass();
                (tally, 7)
            });
            step.join().expect("it does not panic").expect("captured")
        });
        assert_eq!((tally.0.to_string().as_str(), tally.1), ("1 passed, 0 failed, 0 skipped", 7));
    }
}
