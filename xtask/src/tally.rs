//! Counts of what passed, failed and was skipped, how long each step took, and the last line that reports the counts.

use std::fmt;
use std::ops::AddAssign;
use std::time::Duration;

use crate::say;
use crate::shell;

/// Outcomes counted so far, with a line for each failure.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Tally {
    passed: u64,
    failed: u64,
    skipped: u64,
    failures: Vec<String>,
    /// The steps in the order in which they ended.
    steps: Vec<(String, Duration)>,
}

impl Tally {
    pub(crate) fn pass(&mut self) {
        self.passed += 1;
    }

    pub(crate) fn fail(&mut self, what: impl Into<String>) {
        self.failed += 1;
        self.failures.push(what.into());
    }

    /// Counts a skip and prints the reason.
    pub(crate) fn skip(&mut self, what: &str, why: &str) {
        say!("SKIPPED: {what}: {why}");
        self.skipped += 1;
    }

    /// Counts tests that are marked as ignored.
    pub(crate) fn skip_quietly(&mut self, tests: usize) {
        self.skipped += tests as u64;
    }

    /// Counts tests as run that were counted as skipped before: another test ran them in a process of its own.
    pub(crate) fn unskip(&mut self, tests: u64) {
        self.skipped = self.skipped.saturating_sub(tests);
    }

    /// Adds tests that an earlier run had to ignore, and counted as skipped.
    pub(crate) fn ran_after_all(&mut self, tests: Self) {
        self.unskip(tests.passed + tests.failed);
        *self += tests;
    }

    /// Records how long a step took.
    pub(crate) fn took(&mut self, step: impl Into<String>, time: Duration) {
        self.steps.push((step.into(), time));
    }

    /// Adds the place to every failure and step.
    #[must_use]
    pub(crate) fn on(mut self, place: &str) -> Self {
        for (step, _) in &mut self.steps {
            *step = format!("{step} on {place}");
        }
        self.map_failures(|failure| format!("on {place}: {failure}"))
    }

    #[must_use]
    pub(crate) fn map_failures(mut self, change: impl Fn(&str) -> String) -> Self {
        for failure in &mut self.failures {
            *failure = change(failure);
        }
        self
    }

    pub(crate) fn passed(&self) -> u64 {
        self.passed
    }

    pub(crate) fn failed(&self) -> u64 {
        self.failed
    }

    #[cfg(test)]
    pub(crate) fn failures(&self) -> &[String] {
        &self.failures
    }

    /// Prints the durations, the failures and, alone on the last line, the counts; true if nothing failed.
    pub(crate) fn finish(&self) -> bool {
        say!("\nSteps of a second or more:");
        for (step, time) in self.steps.iter().filter(|(_, time)| time.as_secs() > 0) {
            say!("{:7.0} s  {step}", time.as_secs_f64());
        }
        if let Some(time) = shell::processor_time() {
            say!("{:7.0} s  of processor time in all steps", time.as_secs_f64());
        }
        say!();
        for failure in &self.failures {
            say!("FAILED: {failure}");
        }
        say!("{self}");
        self.failed == 0
    }
}

/// Counts what Rust test binaries print, line by line.
///
/// A test may start its own binary again for a test that is otherwise ignored (on a small file system, say). Such a
/// run prints its result inside the outer one's; the test that ran there is no longer a skipped one.
#[derive(Debug, Default)]
pub(crate) struct CargoLines {
    runs_open: u64,
    ran_inside: u64,
}

impl CargoLines {
    pub(crate) fn add(&mut self, line: &str, tally: &mut Tally) {
        if line.starts_with("running ") && (line.ends_with(" tests") || line.ends_with(" test")) {
            self.runs_open += 1;
        } else if let Some(counts) = line.strip_prefix("test result:") {
            self.add_result(counts, tally);
        } else if let Some(name) = line.strip_prefix("test ").and_then(|rest| rest.strip_suffix(" ... FAILED")) {
            // Counted by the result line that follows.
            tally.failures.push(name.to_owned());
        }
    }

    fn add_result(&mut self, counts: &str, tally: &mut Tally) {
        let count_of = |word: &str| -> u64 {
            let parts = counts.split([';', '.']);
            let mut numbers = parts.filter_map(|part| part.trim().strip_suffix(word));
            numbers.find_map(|number| number.trim().parse().ok()).unwrap_or(0)
        };
        let (passed, failed, ignored) = (count_of("passed"), count_of("failed"), count_of("ignored"));
        tally.passed += passed;
        tally.failed += failed;
        if self.runs_open > 1 {
            self.ran_inside += passed + failed;
        } else {
            tally.skipped += ignored.saturating_sub(self.ran_inside);
            self.ran_inside = 0;
        }
        self.runs_open = self.runs_open.saturating_sub(1);
    }
}

impl AddAssign for Tally {
    fn add_assign(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.skipped += other.skipped;
        self.failures.extend(other.failures);
        self.steps.extend(other.steps);
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} passed, {} failed, {} skipped", self.passed, self.failed, self.skipped)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(lines: &[&str]) -> Tally {
        let mut tally = Tally::default();
        let mut cargo = CargoLines::default();
        for line in lines {
            cargo.add(line, &mut tally);
        }
        tally
    }

    #[test]
    fn counts_of_test_binaries_add_up() {
        let tally = counted(&[
            "running 13 tests",
            "test names::are_kept ... ok",
            "test result: ok. 12 passed; 0 failed; 1 ignored; 0 measured; 3 filtered out; finished in 0.02s",
            "running 6 tests",
            "test keys::are_ordered ... FAILED",
            "test result: FAILED. 4 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out; finished in 10.41s",
        ]);
        assert_eq!(tally.to_string(), "16 passed, 2 failed, 1 skipped");
        assert_eq!(tally.failures, ["keys::are_ordered"]);
        assert!(!tally.finish());
    }

    #[test]
    fn an_ignored_test_that_another_starts_is_not_skipped() {
        let inner = ["running 1 test", "test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 7 filtered out"];
        let outer = ["running 2 tests", "test result: ok. 1 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out"];
        let nested = counted(&[outer[0], inner[0], inner[1], outer[1], outer[0], outer[1]]);
        assert_eq!(nested.to_string(), "3 passed, 0 failed, 1 skipped");
        let broken = "test result: FAILED. 0 passed; 1 failed; 0 ignored; 0 measured; 7 filtered out";
        assert_eq!(counted(&[outer[0], inner[0], broken, outer[1]]).to_string(), "1 passed, 1 failed, 0 skipped");
    }

    #[test]
    fn a_skip_is_neither_a_pass_nor_a_failure() {
        let mut tally = Tally::default();
        tally.skip("go SDK suite", "no 'go' on this machine");
        tally.pass();
        assert_eq!(tally.to_string(), "1 passed, 0 failed, 1 skipped");
        assert!(tally.finish());
    }

    #[test]
    fn a_test_that_runs_after_all_is_no_longer_skipped() {
        let mut all = counted(&["test result: ok. 7 passed; 0 failed; 3 ignored; 0 measured; 0 filtered out"]);
        all.ran_after_all(counted(&["test result: FAILED. 1 passed; 1 failed; 0 ignored; 0 measured; 7 filtered out"]));
        assert_eq!(all.to_string(), "8 passed, 1 failed, 1 skipped");
    }

    #[test]
    fn tallies_add_with_their_failures() {
        let mut all = Tally::default();
        let mut one = Tally::default();
        one.fail("clippy");
        all += one.clone();
        all += one.on("PostgreSQL");
        assert_eq!(all.failed(), 2);
        assert_eq!(all.failures, ["clippy", "on PostgreSQL: clippy"]);
    }
}
