//! Rust text without its comments and string contents, and what is counted in it: code lines and functions.
//!
//! This is not a parser. It knows enough of the lexical grammar to find the end of a function, which is all the
//! size rules of `sizes.rs` need.

/// A function and its length in code lines, from its signature to its closing brace.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Function {
    pub(super) name: String,
    pub(super) line: usize,
    pub(super) code_lines: usize,
}

/// The source with comments blanked and the insides of literals replaced by `_`; line breaks stay.
pub(super) fn masked(source: &str) -> String {
    let mut scanner = Scanner { rest: source, masked: String::with_capacity(source.len()), in_word: false };
    while !scanner.rest.is_empty() {
        scanner.step();
    }
    scanner.masked
}

/// Lines that hold anything but white space and comments.
pub(super) fn code_lines(masked: &str) -> usize {
    masked.lines().filter(|line| !line.trim().is_empty()).count()
}

/// Every function with a body, nested ones too.
pub(super) fn functions(masked: &str) -> Vec<Function> {
    let mut found = Vec::new();
    let mut from = 0;
    while let Some(offset) = masked[from..].find("fn ") {
        let start = from + offset;
        from = start + "fn ".len();
        let starts_word = !masked[..start].ends_with(is_word);
        let name: String = masked[from..].trim_start().chars().take_while(|&c| is_word(c)).collect();
        if !starts_word || name.is_empty() {
            continue;
        }
        if let Some(end) = body_end(&masked[from..]) {
            let line_start = masked[..start].rfind('\n').map_or(0, |at| at + 1);
            found.push(Function {
                name,
                line: masked[..start].matches('\n').count() + 1,
                code_lines: code_lines(&masked[line_start..from + end]),
            });
        }
    }
    found
}

/// Where the body after this signature ends; none for a declaration without one.
fn body_end(text: &str) -> Option<usize> {
    let mut brackets = 0i32;
    let mut braces = 0i32;
    for (at, c) in text.char_indices() {
        match c {
            '(' | '[' => brackets += 1,
            ')' | ']' => brackets -= 1,
            ';' if braces == 0 && brackets == 0 => return None,
            '{' => braces += 1,
            '}' => {
                braces -= 1;
                if braces <= 0 && brackets == 0 {
                    return Some(at + 1);
                }
            }
            _ => {}
        }
    }
    None
}

struct Scanner<'a> {
    rest: &'a str,
    masked: String,
    /// The character before is part of a word, so an `r` here starts no raw string.
    in_word: bool,
}

impl Scanner<'_> {
    fn step(&mut self) {
        if self.rest.starts_with("//") {
            self.blank(self.rest.find('\n').unwrap_or(self.rest.len()));
        } else if self.rest.starts_with("/*") {
            self.blank(block_comment_bytes(self.rest));
        } else if let Some(bytes) = self.literal_bytes() {
            self.fill(bytes);
        } else if let Some(c) = self.rest.chars().next() {
            self.masked.push(c);
            self.rest = &self.rest[c.len_utf8()..];
            self.in_word = is_word(c);
        }
    }

    fn literal_bytes(&self) -> Option<usize> {
        if self.rest.starts_with('"') {
            return Some(string_bytes(self.rest));
        }
        if self.rest.starts_with('\'') {
            return char_bytes(self.rest);
        }
        if self.in_word {
            return None;
        }
        let prefix = ["br", "cr", "r"].into_iter().find(|prefix| self.rest.starts_with(prefix))?;
        raw_string_bytes(&self.rest[prefix.len()..]).map(|bytes| prefix.len() + bytes)
    }

    fn blank(&mut self, bytes: usize) {
        self.replace(bytes, ' ');
    }

    fn fill(&mut self, bytes: usize) {
        self.replace(bytes, '_');
    }

    fn replace(&mut self, bytes: usize, with: char) {
        let (taken, rest) = self.rest.split_at(bytes);
        self.masked.extend(taken.chars().map(|c| if c == '\n' { c } else { with }));
        self.rest = rest;
        self.in_word = false;
    }
}

fn block_comment_bytes(text: &str) -> usize {
    let mut depth = 0usize;
    let mut at = 0;
    while at < text.len() {
        let rest = &text.as_bytes()[at..];
        if rest.starts_with(b"/*") {
            depth += 1;
            at += 2;
        } else if rest.starts_with(b"*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += 1;
        }
    }
    text.len()
}

fn string_bytes(text: &str) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return at + 1,
            _ => {}
        }
    }
    text.len()
}

/// A character literal; none for a lifetime or a label.
fn char_bytes(text: &str) -> Option<usize> {
    let mut chars = text.char_indices().skip(1);
    let (_, first) = chars.next()?;
    if first == '\\' {
        let (after, _) = chars.nth(1)?;
        return text[after..].find('\'').map(|at| after + at + 1);
    }
    let (at, second) = chars.next()?;
    (second == '\'').then_some(at + 1)
}

/// What follows the prefix of a raw string: hashes, quote, contents; none if it is something else.
fn raw_string_bytes(text: &str) -> Option<usize> {
    let hashes = text.len() - text.trim_start_matches('#').len();
    let contents = text[hashes..].strip_prefix('"')?;
    let end = format!("\"{}", &text[..hashes]);
    let length = contents.find(&end).map_or(contents.len(), |at| at + end.len());
    Some(hashes + 1 + length)
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names_and_lines(source: &str) -> Vec<(String, usize, usize)> {
        functions(&masked(source)).into_iter().map(|f| (f.name, f.line, f.code_lines)).collect()
    }

    #[test]
    fn comments_and_blank_lines_are_no_code() {
        let source = "//! Doc.\n\n/* a\n b */\nfn a() {} // end\n\n\"two\nlines\";\n";
        assert_eq!(code_lines(&masked(source)), 3);
    }

    #[test]
    fn a_function_ends_at_its_own_brace() {
        let source = "fn a(x: [u8; 2]) -> u8\nwhere\n    u8: Copy,\n{\n    // why\n\n    if true { 1 } else { 2 }\n}\nfn b() {}\n";
        assert_eq!(names_and_lines(source), [("a".into(), 1, 6), ("b".into(), 9, 1)]);
    }

    #[test]
    fn braces_in_literals_and_comments_do_not_count() {
        let source = "fn a() {\n    let _ = (\"}\", '}', '\\'', b'}', r#\"}\"}\"#, \"\\\"}\"); // }\n    /* } /* } */ } */\n    x::<'static>();\n}\n";
        assert_eq!(names_and_lines(source), [("a".into(), 1, 4)]);
    }

    #[test]
    fn declarations_and_function_types_have_no_length() {
        assert_eq!(names_and_lines("trait T { fn a(&self) -> [u8; 4]; }\ntype F = fn (u8) -> u8;\n"), []);
    }

    #[test]
    fn nested_functions_count_for_both() {
        let source = "fn outer() {\n    fn inner() {\n    }\n}\n";
        assert_eq!(names_and_lines(source), [("outer".into(), 1, 4), ("inner".into(), 2, 2)]);
    }

    #[test]
    fn unfinished_text_ends_quietly() {
        for source in ["\"open", "/* open", "r#\"open", "'", "fn a() {", "fn "] {
            assert_eq!(names_and_lines(source), [], "{source}");
        }
    }
}
