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

    pub(crate) fn failed(&self) -> u64 {
        self.failed
    }

    /// Adds the counts of one `test result:` line of a Rust test binary; false for any other line.
    pub(crate) fn add_cargo_line(&mut self, line: &str) -> bool {
        let Some(counts) = line.trim_start().strip_prefix("test result:") else { return false };
        let count_of = |word: &str| -> u64 {
            counts
                .split([';', '.'])
                .filter_map(|part| part.trim().strip_suffix(word))
                .find_map(|number| number.trim().parse().ok())
                .unwrap_or(0)
        };
        self.passed += count_of("passed");
        self.failed += count_of("failed");
        self.skipped += count_of("ignored");
        true
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

    #[test]
    fn counts_of_test_binaries_add_up() {
        let mut tally = Tally::default();
        assert!(tally.add_cargo_line(
            "test result: ok. 12 passed; 0 failed; 1 ignored; 0 measured; 3 filtered out; finished in 0.02s"
        ));
        assert!(tally.add_cargo_line(
            "test result: FAILED. 4 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out; finished in 10.41s"
        ));
        assert!(!tally.add_cargo_line("running 4 tests"));
        assert_eq!(tally.to_string(), "16 passed, 2 failed, 1 skipped");
        assert!(!tally.finish());
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
    fn tallies_add_with_their_failures() {
        let mut all = Tally::default();
        let mut one = Tally::default();
        one.fail("clippy");
        all += one;
        assert_eq!(all.failed(), 1);
        assert_eq!(all.failures, ["clippy"]);
    }
}
