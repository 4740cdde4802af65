//! Counting tests in what the runners print.

use std::fmt;
use std::ops::AddAssign;

/// How many tests passed, failed and were left out.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(crate) struct Tally {
    pub(crate) passed: u64,
    pub(crate) failed: u64,
    pub(crate) skipped: u64,
}

impl Tally {
    /// So many passed.
    pub(crate) fn passed(passed: u64) -> Self {
        Self { passed, ..Self::default() }
    }

    /// So many failed.
    pub(crate) fn failed(failed: u64) -> Self {
        Self { failed, ..Self::default() }
    }

    /// Where nothing may be left out.
    pub(crate) fn with_skipped_as_failed(self) -> Self {
        Self { failed: self.failed + self.skipped, skipped: 0, ..self }
    }

    /// Adds up what cargo's test harness, Node's test runner and our own scripts say in their last lines.
    pub(crate) fn read(output: &str) -> Self {
        let mut tally = Self::default();
        for line in output.lines() {
            let line = line.trim();
            if let Some(counts) = line.strip_prefix("test result: ") {
                tally.add_counts(counts.split_once(". ").map_or(counts, |(_, rest)| rest));
            } else if let Some(count) = line.strip_prefix("# ").or_else(|| line.strip_prefix("ℹ "))
            {
                tally.add_node_count(count);
            } else if line.ends_with(" failed") && line.contains(" passed, ") {
                tally.add_counts(line);
            }
        }
        tally
    }

    /// `3 passed; 0 failed; 1 ignored; …` or `3 passed, 0 failed`.
    fn add_counts(&mut self, counts: &str) {
        for count in counts.split([';', ',']) {
            let mut words = count.split_whitespace();
            let number = words.next().and_then(|word| word.parse::<u64>().ok());
            match (number, words.next()) {
                (Some(number), Some("passed")) => self.passed += number,
                (Some(number), Some("failed")) => self.failed += number,
                (Some(number), Some("ignored")) => self.skipped += number,
                _ => {}
            }
        }
    }

    /// `pass 3`, with the kind in front.
    fn add_node_count(&mut self, count: &str) {
        match count.split_once(' ').map(|(kind, number)| (kind, number.parse::<u64>())) {
            Some(("pass", Ok(number))) => self.passed += number,
            Some(("fail" | "cancelled", Ok(number))) => self.failed += number,
            Some(("skipped" | "todo", Ok(number))) => self.skipped += number,
            _ => {}
        }
    }
}

impl AddAssign for Tally {
    fn add_assign(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.skipped += other.skipped;
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} passed, {} failed", self.passed, self.failed)?;
        if self.skipped > 0 {
            write!(f, ", {} skipped", self.skipped)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_of_cargo_are_added_up() {
        let output = "test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 2 filtered out; finished in 0.1s\n\
             noise\ntest result: FAILED. 4 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out\n";
        assert_eq!(Tally::read(output), Tally { passed: 7, failed: 2, skipped: 1 });
    }

    #[test]
    fn counts_of_node_are_read_in_both_of_its_forms() {
        let tap = "1..2\n# tests 5\n# suites 1\n# pass 3\n# fail 1\n# cancelled 1\n# skipped 0\n# todo 0\n";
        let spec = tap.replace("# ", "ℹ ");
        let expected = Tally { passed: 3, failed: 2, skipped: 0 };
        assert_eq!(Tally::read(tap), expected);
        assert_eq!(Tally::read(&spec), expected);
    }

    #[test]
    fn counts_of_a_closing_line_are_read() {
        assert_eq!(
            Tally::read("hello\n12 passed, 1 failed\n"),
            Tally { passed: 12, failed: 1, skipped: 0 }
        );
    }

    #[test]
    fn prose_counts_nothing() {
        assert_eq!(
            Tally::read("the pass 3 of the mountain\n# passing by\nit failed\n"),
            Tally::default()
        );
    }
}
