//! Counts of what passed, failed and was skipped, and the plain last line that reports them.

use std::fmt;
use std::ops::AddAssign;

/// Outcomes counted so far, with a line for each failure.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Tally {
    passed: u64,
    failed: u64,
    skipped: u64,
    failures: Vec<String>,
}

impl Tally {
    pub(crate) fn pass(&mut self) {
        self.passed += 1;
    }

    pub(crate) fn fail(&mut self, what: impl Into<String>) {
        self.failed += 1;
        self.failures.push(what.into());
    }

    /// Skips are never silent: the line is printed where it happens.
    pub(crate) fn skip(&mut self, what: &str, why: &str) {
        println!("SKIPPED: {what}: {why}");
        self.skip_quietly();
    }

    /// Counts a skip that a test runner has already reported.
    pub(crate) fn skip_quietly(&mut self) {
        self.skipped += 1;
    }

    /// Adds tests that an earlier run had to ignore, and counted as skipped.
    pub(crate) fn ran_after_all(&mut self, tests: Self) {
        self.skipped = self.skipped.saturating_sub(tests.passed + tests.failed);
        *self += tests;
    }

    /// Says of every failure where it was.
    #[must_use]
    pub(crate) fn on(mut self, place: &str) -> Self {
        for failure in &mut self.failures {
            *failure = format!("on {place}: {failure}");
        }
        self
    }

    pub(crate) fn failed(&self) -> u64 {
        self.failed
    }

    /// Prints the failures and, alone on the last line, the counts; true if nothing failed.
    pub(crate) fn finish(&self) -> bool {
        println!();
        for failure in &self.failures {
            println!("FAILED: {failure}");
        }
        println!("{self}");
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
