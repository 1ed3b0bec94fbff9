//! The numbers of requirements that test names and SDK scenarios cite are all in `docs/guide.md`.

use std::collections::BTreeSet;

use super::Problems;
use super::files::File;

const PAGE: &str = "docs/guide.md";
const SCENARIOS: &str = "tests/sdk/scenarios.toml";

/// Refuses a number that the page does not have.
pub(super) fn numbers(files: &[File], problems: &mut Problems) {
    let page = files.iter().find(|file| file.path == PAGE).and_then(File::text).unwrap_or_default();
    let known: BTreeSet<&str> = page
        .lines()
        .filter_map(|line| line.strip_prefix("| ")?.split(' ').next())
        .filter(|word| is_number(word))
        .collect();
    let letters: BTreeSet<char> = known.iter().filter_map(|number| number.chars().next()).collect();
    for file in files {
        let Some(text) = file.text() else { continue };
        for (index, line) in text.lines().enumerate() {
            let cited = match file.path.as_str() {
                SCENARIOS => cited_by_scenario(line),
                path if path.ends_with(".rs") => cited_by_name(line, &letters).into_iter().collect(),
                _ => Vec::new(),
            };
            for number in cited.iter().filter(|number| !known.contains(number.as_str())) {
                problems.add(
                    &format!("{}:{}", file.path, index + 1),
                    format!("cites {number}, which {PAGE} does not have"),
                );
            }
        }
    }
}

/// The number that the name of a function begins with, as in `fn m8_a_failure_names_its_operation`.
fn cited_by_name(line: &str, letters: &BTreeSet<char>) -> Option<String> {
    let (_, name) = line.trim_start().split_once("fn ")?;
    let (number, _) = name.split_once('_')?;
    let number = number.to_ascii_uppercase();
    (is_number(&number) && name.starts_with(|c: char| letters.contains(&c.to_ascii_uppercase()))).then_some(number)
}

/// The numbers of a line such as `guide = ["D1", "D7"]`.
fn cited_by_scenario(line: &str) -> Vec<String> {
    let list = line.strip_prefix("guide = ").unwrap_or_default();
    list.split('"').skip(1).step_by(2).map(str::to_owned).collect()
}

/// A letter and a number, as in `D1`.
fn is_number(word: &str) -> bool {
    let mut chars = word.chars();
    chars.next().is_some_and(|c| c.is_ascii_uppercase())
        && (1..=2).contains(&chars.as_str().len())
        && chars.as_str().bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_that_the_page_lacks_is_refused() {
        let page = File::new(PAGE, "| number | requirement |\n| --- | --- |\n| D1 | a |\n| D2 | b |\n");
        let test =
            File::new("a.rs", "fn d1_known() {}\n    async fn d3_unknown() {}\nfn z9_other() {}\nfn d_none() {}\n");
        let scenarios = File::new(SCENARIOS, "guide = [\"D2\", \"Q9\"]\nguide = []\n");
        let mut problems = Problems::default();
        numbers(&[page, test, scenarios], &mut problems);
        let text = problems.to_string();
        assert_eq!(problems.len(), 2, "{text}");
        assert!(text.contains("a.rs:2: cites D3") && text.contains("scenarios.toml:1: cites Q9"), "{text}");
    }
}
