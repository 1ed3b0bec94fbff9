//! The examples of `docs/commands.md`, run one after the other against a fresh server.
//!
//! In a fenced block of the language `console`, a line that begins with `$ ` is run by a shell and the lines after it are
//! what it prints, standard error included. `…` stands for any text within a line, and alone on a line for any lines.

use super::Fixture;
use std::path::Path;

/// A command of the page and what it prints.
#[derive(Debug)]
struct Example {
    line: usize,
    command: String,
    expected: Vec<String>,
}

fn examples(page: &str) -> Vec<Example> {
    let mut examples: Vec<Example> = Vec::new();
    let mut is_inside = false;
    for (number, line) in page.lines().enumerate() {
        match (line.strip_prefix("```"), line.strip_prefix("$ ")) {
            (Some(language), _) => is_inside = language == "console",
            (None, _) if !is_inside => {}
            (None, Some(command)) => {
                examples.push(Example { line: number + 1, command: command.to_owned(), expected: Vec::new() });
            }
            (None, None) => examples.last_mut().expect("a command comes first").expected.push(line.to_owned()),
        }
    }
    examples
}

/// Whether the lines are as expected.
fn is_as_expected(expected: &[String], found: &[&str]) -> bool {
    match (expected.split_first(), found.split_first()) {
        (None, None) => true,
        (Some((first, rest)), _) if first == "…" => {
            (0..=found.len()).any(|passed| is_as_expected(rest, &found[passed..]))
        }
        (Some((first, rest)), Some((line, others))) => is_line(first, line) && is_as_expected(rest, others),
        _ => false,
    }
}

fn is_line(expected: &str, found: &str) -> bool {
    let mut parts = expected.split('…');
    let Some(mut rest) = parts.next().and_then(|first| found.strip_prefix(first)) else { return false };
    let parts: Vec<&str> = parts.collect();
    let Some((last, between)) = parts.split_last() else { return rest.is_empty() };
    for part in between {
        let Some(place) = rest.find(part) else { return false };
        rest = &rest[place + part.len()..];
    }
    rest.ends_with(last)
}

#[test]
fn the_examples_of_the_command_reference_are_true() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/commands.md");
    let mut examples = examples(&std::fs::read_to_string(path).expect("the page"));
    if std::env::var("LARIMAR_TEST_ENGINE").is_ok_and(|engine| engine == "postgres") {
        // The examples of backups have the numbers of commits, which only the embedded engine has.
        examples
            .retain(|example| !["larimar backup", "larimar restore"].iter().any(|name| example.command.contains(name)));
    }
    assert!(examples.len() >= 20, "{} examples", examples.len());
    let fixture = Fixture::start();
    for Example { line, command, expected } in examples {
        let mut shell = fixture.shell(&format!("({command}) 2>&1"));
        // What finds the server's admin endpoint.
        shell.env("LARIMAR_ADMIN_PORT", fixture.server.admin_address().port().to_string());
        shell.env("XDG_RUNTIME_DIR", fixture.server.runtime_directory());
        let output = shell.output().expect("a shell");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let found: Vec<&str> = text.lines().collect();
        let expected_text = expected.join("\n");
        assert!(
            is_as_expected(&expected, &found),
            "line {line}: $ {command}\nexpected:\n{expected_text}\nfound:\n{text}"
        );
    }
}

#[test]
fn placeholders_stand_for_text_and_lines() {
    let lines = |text: &str| text.lines().map(str::to_owned).collect::<Vec<_>>();
    for (expected, found, is_good) in [
        ("a…c", "abc", true),
        ("a…c…e", "abcde", true),
        ("a…c", "abcd", false),
        ("…", "x\ny\nz", true),
        ("…", "", true),
        ("x\n…\nz", "x\ny\ny\nz", true),
        ("x\n…\nz", "x\ny", false),
        ("x", "x\ny", false),
        ("x", "y", false),
    ] {
        assert_eq!(
            is_as_expected(&lines(expected), &found.lines().collect::<Vec<_>>()),
            is_good,
            "{expected:?} {found:?}"
        );
    }
}
