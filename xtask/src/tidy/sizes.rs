//! Sizes of files and functions, held by a ratchet: what is above a limit may only shrink.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::files::File;
use super::{Problems, source};

/// The limits, from `tidy.toml`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Limits {
    file_code_lines_max: usize,
    function_code_lines_max: usize,
    binary_bytes_max: usize,
    text_bytes_max: usize,
    screenshot_bytes_max: usize,
}

/// Sizes above the limits, by file or by `file: function`.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Ratchet {
    files: BTreeMap<String, usize>,
    functions: BTreeMap<String, usize>,
}

impl Ratchet {
    /// What is above the limits now.
    pub(super) fn measure(files: &[File], limits: &Limits) -> Self {
        let mut over = Self::default();
        for file in files {
            let Some(text) = file.source_text() else { continue };
            if !file.path.ends_with(".rs") {
                over.note_file(file, plain_code_lines(text), limits);
                continue;
            }
            let masked = source::masked(text);
            over.note_file(file, source::code_lines(&masked), limits);
            for function in source::functions(&masked) {
                if function.code_lines > limits.function_code_lines_max {
                    let longest = over
                        .functions
                        .entry(format!("{}: {}", file.path, function.name))
                        .or_insert(function.code_lines);
                    *longest = function.code_lines.max(*longest);
                }
            }
        }
        over
    }

    fn note_file(&mut self, file: &File, code_lines: usize, limits: &Limits) {
        if code_lines > limits.file_code_lines_max {
            self.files.insert(file.path.clone(), code_lines);
        }
    }

    /// Complaints about what grew past its entry, and about entries that could be lower.
    pub(super) fn hold(&self, measured: &Self, problems: &mut Problems) {
        hold_one("file", &self.files, &measured.files, problems);
        hold_one("function", &self.functions, &measured.functions, problems);
    }

    /// Entries lowered to what was measured; nothing is added or raised.
    pub(super) fn tightened(&self, measured: &Self) -> Self {
        Self {
            files: tightened(&self.files, &measured.files),
            functions: tightened(&self.functions, &measured.functions),
        }
    }
}

/// Refuses generated blobs: binary files past a few KiB and very large texts. Screenshots of the console may be larger: the
/// documentation shows them.
pub(super) fn blobs(files: &[File], limits: &Limits, problems: &mut Problems) {
    for file in files {
        let (kind, bytes_max) = match file.text() {
            Some(_) => ("text", limits.text_bytes_max),
            None if is_screenshot(&file.path) => ("binary", limits.screenshot_bytes_max),
            None => ("binary", limits.binary_bytes_max),
        };
        if file.bytes.len() > bytes_max {
            problems.add(&file.path, format!("{kind} file of {} bytes; at most {bytes_max}", file.bytes.len()));
        }
    }
}

fn is_screenshot(path: &str) -> bool {
    path.strip_prefix("docs/console/").is_some_and(|name| name.ends_with(".png") && !name.contains('/'))
}

/// Lines of a script or a page's code that are neither blank nor a comment of their own.
fn plain_code_lines(text: &str) -> usize {
    let comment = |line: &str| ["//", "#", "*", "/*"].iter().any(|start| line.starts_with(start));
    text.lines().map(str::trim).filter(|line| !line.is_empty() && !comment(line)).count()
}

fn hold_one(
    kind: &str,
    allowed: &BTreeMap<String, usize>,
    measured: &BTreeMap<String, usize>,
    problems: &mut Problems,
) {
    for (name, &lines) in measured {
        match allowed.get(name) {
            None => problems.add(name, format!("{kind} of {lines} code lines is past the limit; split it")),
            Some(&before) if lines > before => {
                problems.add(name, format!("{kind} grew from {before} to {lines} code lines; it may only shrink"));
            }
            Some(_) => {}
        }
    }
    for (name, &before) in allowed {
        if measured.get(name).is_none_or(|&lines| lines < before) {
            problems.add(name, format!("{kind} shrank below {before}; run `cargo xtask tidy --tighten`"));
        }
    }
}

fn tightened(allowed: &BTreeMap<String, usize>, measured: &BTreeMap<String, usize>) -> BTreeMap<String, usize> {
    let lowered = |(name, &before): (&String, &usize)| Some((name.clone(), before.min(*measured.get(name)?)));
    allowed.iter().filter_map(lowered).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits {
        file_code_lines_max: 4,
        function_code_lines_max: 3,
        binary_bytes_max: 8,
        text_bytes_max: 40,
        screenshot_bytes_max: 16,
    };

    fn ratchet(files: &[(&str, usize)], functions: &[(&str, usize)]) -> Ratchet {
        let map = |list: &[(&str, usize)]| list.iter().map(|&(name, lines)| (name.to_owned(), lines)).collect();
        Ratchet { files: map(files), functions: map(functions) }
    }

    #[test]
    fn only_what_is_past_a_limit_is_measured() {
        let long = "fn a() {\n1;\n2;\n}\nfn b() {\n}\n";
        let short = "// one\n\nfn a() {\n1;\n}\n";
        let files = [File::new("a.rs", long), File::new("b.rs", short), File::new("c.py", "a\n# b\n\nc\nd\ne\n")];
        assert_eq!(Ratchet::measure(&files, &LIMITS), ratchet(&[("a.rs", 6)], &[("a.rs: a", 4)]));
    }

    #[test]
    fn new_growth_is_refused_and_shrinking_must_be_recorded() {
        let cases = [
            (ratchet(&[], &[]), ratchet(&[("a", 7)], &[]), "past the limit"),
            (ratchet(&[("a", 6)], &[]), ratchet(&[("a", 7)], &[]), "grew from 6 to 7"),
            (ratchet(&[("a", 8)], &[]), ratchet(&[("a", 7)], &[]), "shrank below 8"),
            (ratchet(&[], &[("a: f", 8)]), ratchet(&[], &[]), "shrank below 8"),
        ];
        for (allowed, measured, complaint) in cases {
            let mut problems = Problems::default();
            allowed.hold(&measured, &mut problems);
            assert_eq!(problems.len(), 1);
            assert!(problems.to_string().contains(complaint), "{problems}");
        }
    }

    #[test]
    fn the_same_sizes_are_no_problem() {
        let same = ratchet(&[("a", 7)], &[("a: f", 5)]);
        let mut problems = Problems::default();
        same.hold(&same, &mut problems);
        assert_eq!(problems.len(), 0, "{problems}");
    }

    #[test]
    fn tightening_lowers_and_removes_but_never_raises() {
        let allowed = ratchet(&[("a", 7), ("b", 9), ("c", 9)], &[]);
        let measured = ratchet(&[("a", 8), ("b", 8), ("d", 10)], &[]);
        assert_eq!(allowed.tightened(&measured), ratchet(&[("a", 7), ("b", 8)], &[]));
    }

    #[test]
    fn blobs_are_refused_by_kind() {
        let files = [
            File { path: "small.bin".into(), bytes: vec![0; 8] },
            File { path: "large.bin".into(), bytes: vec![0; 9] },
            File::new("small.svg", &"x".repeat(40)),
            File::new("large.svg", &"x".repeat(41)),
        ];
        let mut problems = Problems::default();
        blobs(&files, &LIMITS, &mut problems);
        assert_eq!(problems.len(), 2);
        assert!(problems.to_string().contains("large.bin") && problems.to_string().contains("large.svg"));
    }

    #[test]
    fn screenshots_of_the_console_may_be_larger_than_other_binary_files() {
        let bytes = [0xff; 12];
        let complaints = |path: &str, bytes: &[u8]| {
            let mut problems = Problems::default();
            blobs(&[File { path: path.to_owned(), bytes: bytes.to_vec() }], &LIMITS, &mut problems);
            problems.len()
        };
        assert_eq!(complaints("docs/console/table.png", &bytes), 0);
        assert_eq!(complaints("docs/console/table.png", &[0xff; 17]), 1);
        for path in ["docs/table.png", "docs/console/table.bin", "docs/console/more/table.png"] {
            assert_eq!(complaints(path, &bytes), 1, "{path}");
        }
    }
}
