//! The files of the checkout: what git tracks and what it would, and the comment each source file opens with.

use std::fs;

use anyhow::{Context, Result};

use super::Problems;
use crate::console;
use crate::shell::{self, Repo};

/// A file with its path from the root of the checkout.
pub(super) struct File {
    pub(super) path: String,
    pub(super) bytes: Vec<u8>,
}

impl File {
    #[cfg(test)]
    pub(super) fn new(path: &str, text: &str) -> Self {
        Self { path: path.to_owned(), bytes: text.as_bytes().to_vec() }
    }

    /// The contents, unless the file is binary.
    pub(super) fn text(&self) -> Option<&str> {
        std::str::from_utf8(&self.bytes).ok().filter(|text| !text.contains('\0'))
    }

    /// The text of a file that people write code in.
    pub(super) fn source_text(&self) -> Option<&str> {
        opening_of(&self.path).and_then(|_| self.text())
    }
}

/// Tracked files and new ones that are not ignored.
pub(super) fn all(repo: &Repo) -> Result<Vec<File>> {
    let mut git = repo.command("git", ".");
    let listing = shell::output_of(git.args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"]))?;
    let listing = String::from_utf8(listing).context("file names are UTF-8")?;
    let mut paths: Vec<&str> = listing.split('\0').filter(|path| !path.is_empty()).collect();
    paths.sort_unstable();
    paths.dedup();
    let mut files = Vec::with_capacity(paths.len());
    for path in paths {
        let full = repo.path(path);
        // Deleted but not yet committed, or a link to somewhere else: nothing to read here.
        if fs::symlink_metadata(&full).is_ok_and(|metadata| metadata.is_file()) {
            let bytes = fs::read(&full).with_context(|| format!("read {path}"))?;
            files.push(File { path: path.to_owned(), bytes });
        }
    }
    Ok(files)
}

/// Every source file says at its top what it is for.
pub(super) fn openings(files: &[File], problems: &mut Problems) {
    for file in files {
        let (Some(openings), Some(text)) = (opening_of(&file.path), file.text()) else { continue };
        let first = text.lines().map(str::trim).find(|line| !line.is_empty() && !goes_before(&file.path, line));
        let Some(first) = first else {
            problems.add(&file.path, "is empty");
            continue;
        };
        let said = openings.iter().find_map(|opening| first.strip_prefix(opening));
        if said.is_none() {
            problems.add(&file.path, format!("opens without a comment ({}) on what it is for", openings[0]));
        } else if file.path.ends_with(".rs") && said.is_some_and(|words| words.trim().len() < 3) {
            problems.add(&file.path, "opens with a comment that says nothing");
        }
    }
}

/// A crate has one program of integration tests, `tests/main.rs`; a file that it does not name as a module would never
/// be compiled.
pub(super) fn test_modules(files: &[File], problems: &mut Problems) {
    for main in files.iter().filter(|file| file.path.ends_with("/tests/main.rs")) {
        let folder = main.path.strip_suffix("main.rs").expect("it was filtered by this ending");
        let text = main.text().unwrap_or_default();
        for file in files {
            let Some(inside) = file.path.strip_prefix(folder).and_then(|path| path.strip_suffix(".rs")) else {
                continue;
            };
            let module = inside.strip_suffix("/mod").unwrap_or(inside);
            if module != "main" && !module.contains('/') && !text.contains(&format!("mod {module};\n")) {
                problems.add(&file.path, format!("is not a module of {}", main.path));
            }
        }
    }
}

/// What its language puts above a file's first comment: a script's interpreter, a Java class's package and imports.
fn goes_before(path: &str, line: &str) -> bool {
    line.starts_with("#!") || (path.ends_with(".java") && (line.starts_with("package ") || line.starts_with("import ")))
}

/// How a file of this kind opens its first comment; none for files without such a rule, and for the built page.
fn opening_of(path: &str) -> Option<&'static [&'static str]> {
    if path.starts_with(console::COMMITTED) {
        return None;
    }
    match path.rsplit_once('.')?.1 {
        "rs" => Some(&["//!"]),
        "py" => Some(&["\"\"\"", "#"]),
        "js" | "mjs" | "cjs" | "ts" | "go" | "java" => Some(&["//", "/*"]),
        "sh" => Some(&["#"]),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complaints(path: &str, text: &str) -> usize {
        let mut problems = Problems::default();
        openings(&[File::new(path, text)], &mut problems);
        problems.len()
    }

    #[test]
    fn source_files_open_with_what_they_are_for() {
        let good = [
            ("a.rs", "//! Names of tables.\n"),
            ("a.py", "\"\"\"Fixtures.\"\"\"\n"),
            ("a.py", "#!/usr/bin/env python3\n# Fixtures.\n"),
            ("a.mjs", "// Fixtures.\n"),
            ("A.java", "package a;\n\nimport b;\n\n/** Fixtures. */\nclass A {}\n"),
            ("a.md", "Anything"),
        ];
        for (path, text) in good {
            assert_eq!(complaints(path, text), 0, "{path}: {text}");
        }
        let bad = [
            ("a.rs", "use std::fs;\n"),
            ("a.rs", "// not a doc comment\n"),
            ("a.rs", "//! .\n"),
            ("a.rs", ""),
            ("a.py", "import os\n"),
            ("a.go", "package a\n"),
            ("A.java", "package a;\nclass A {}\n"),
        ];
        for (path, text) in bad {
            assert_eq!(complaints(path, text), 1, "{path}: {text}");
        }
    }

    #[test]
    fn every_file_of_integration_tests_is_a_module_of_their_program() {
        let main = File::new("crates/a/tests/main.rs", "//! Tests.\n\nmod keys;\npub mod pages;\n");
        let others = ["keys.rs", "pages/mod.rs", "pages/part.rs", "data.txt", "lost.rs", "forgotten/mod.rs"];
        let others = others.map(|name| File::new(&format!("crates/a/tests/{name}"), "//! Some."));
        let elsewhere = File::new("crates/b/tests/lost.rs", "//! Another crate.");
        let files: Vec<_> = [main, elsewhere].into_iter().chain(others).collect();
        let mut problems = Problems::default();
        test_modules(&files, &mut problems);
        let expected = ["lost.rs", "forgotten/mod.rs"];
        assert_eq!(
            problems.0,
            expected.map(|name| format!("crates/a/tests/{name}: is not a module of crates/a/tests/main.rs"))
        );
    }

    #[test]
    fn binary_files_have_no_text() {
        assert_eq!(File { path: "a".into(), bytes: vec![0xff, 0xfe] }.text(), None);
        assert_eq!(File { path: "a".into(), bytes: vec![b'a', 0] }.text(), None);
        assert_eq!(File::new("a", "é").text(), Some("é"));
    }
}
