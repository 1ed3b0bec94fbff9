//! Every dependency has a licence that `deny.toml` allows and comes from the registry.

use std::collections::BTreeSet;

use anyhow::{Context, Result};
use serde::Deserialize;

use super::Problems;
use crate::shell::{self, Repo};

/// The part of `deny.toml` that is checked here.
#[derive(Deserialize)]
struct Policy {
    licenses: Allowed,
}

#[derive(Deserialize)]
struct Allowed {
    allow: BTreeSet<String>,
}

/// What `cargo metadata` lists of the packages in the lock file.
#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
}

#[derive(Deserialize)]
struct Package {
    name: String,
    version: String,
    license: Option<String>,
    source: Option<String>,
}

/// Lists this machine's dependencies and compares the licence of each with the policy.
pub(super) fn check(repo: &Repo, problems: &mut Problems) -> Result<()> {
    let policy = std::fs::read_to_string(repo.path("deny.toml")).context("read deny.toml")?;
    let policy: Policy = toml::from_str(&policy).context("parse deny.toml")?;
    let host = host_triple(repo)?;
    let metadata = shell::output_of(&mut repo.cargo(&[
        "metadata",
        "--quiet",
        "--format-version=1",
        "--locked",
        "--filter-platform",
        &host,
    ]))?;
    let metadata: Metadata = serde_json::from_slice(&metadata).context("parse cargo metadata")?;
    hold(&metadata.packages, &policy.licenses.allow, problems);
    Ok(())
}

fn host_triple(repo: &Repo) -> Result<String> {
    let version = String::from_utf8(shell::output_of(repo.command("rustc", ".").arg("-vV"))?)?;
    let host = version.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_owned).context("rustc -vV names the host")
}

fn hold(packages: &[Package], allowed: &BTreeSet<String>, problems: &mut Problems) {
    for package in packages {
        let name = format!("{} {}", package.name, package.version);
        match &package.license {
            None => problems.add(&name, "declares no licence"),
            Some(licence) if !admits(licence, allowed) => {
                problems.add(&name, format!("has the licence {licence}, which deny.toml does not allow"));
            }
            Some(_) => {}
        }
        if let Some(source) = package.source.as_deref().filter(|source| !source.starts_with("registry+")) {
            problems.add(&name, format!("comes from {source}, not from the registry"));
        }
    }
}

/// Whether the allowed licences satisfy an SPDX expression; `/` is the old spelling of `OR`.
fn admits(expression: &str, allowed: &BTreeSet<String>) -> bool {
    let spaced = expression.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ");
    let tokens: Vec<&str> = spaced.split_whitespace().collect();
    let mut rest = tokens.as_slice();
    any_of(&mut rest, allowed) == Some(true) && rest.is_empty()
}

/// `a OR b …`; none if the expression is malformed. Both sides are always read.
fn any_of(tokens: &mut &[&str], allowed: &BTreeSet<String>) -> Option<bool> {
    let mut good = all_of(tokens, allowed)?;
    while take(tokens, "OR") {
        good |= all_of(tokens, allowed)?;
    }
    Some(good)
}

fn all_of(tokens: &mut &[&str], allowed: &BTreeSet<String>) -> Option<bool> {
    let mut good = licence(tokens, allowed)?;
    while take(tokens, "AND") {
        good &= licence(tokens, allowed)?;
    }
    Some(good)
}

fn licence(tokens: &mut &[&str], allowed: &BTreeSet<String>) -> Option<bool> {
    if take(tokens, "(") {
        let good = any_of(tokens, allowed)?;
        return take(tokens, ")").then_some(good);
    }
    let (name, rest) = tokens.split_first()?;
    *tokens = rest;
    if take(tokens, "WITH") {
        let (exception, rest) = tokens.split_first()?;
        *tokens = rest;
        return Some(allowed.contains(&format!("{name} WITH {exception}")));
    }
    Some(allowed.contains(*name))
}

fn take(tokens: &mut &[&str], word: &str) -> bool {
    let found = tokens.first() == Some(&word);
    if found {
        *tokens = &tokens[1..];
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allowed() -> BTreeSet<String> {
        ["MIT", "ISC", "Apache-2.0 WITH LLVM-exception"].map(str::to_owned).into()
    }

    #[test]
    fn expressions_are_satisfied_by_allowed_licences() {
        for good in ["MIT", "MIT/Apache-2.0", "GPL-2.0 OR MIT", "(MIT OR GPL-2.0) AND ISC", "MIT AND ISC"] {
            assert!(admits(good, &allowed()), "{good}");
        }
        assert!(admits("Apache-2.0 WITH LLVM-exception OR GPL-2.0", &allowed()));
        for bad in ["GPL-2.0", "MIT AND GPL-2.0", "Apache-2.0", "Apache-2.0 WITH other", "", "MIT OR", "(MIT", "MIT)"] {
            assert!(!admits(bad, &allowed()), "{bad}");
        }
    }

    #[test]
    fn packages_without_licence_or_from_elsewhere_are_refused() {
        let package = |name: &str, license: Option<&str>, source: Option<&str>| Package {
            name: name.to_owned(),
            version: "1.0.0".to_owned(),
            license: license.map(str::to_owned),
            source: source.map(str::to_owned),
        };
        let packages = [
            package("ours", Some("MIT"), None),
            package("good", Some("MIT"), Some("registry+somewhere")),
            package("bare", None, Some("registry+somewhere")),
            package("forked", Some("MIT"), Some("git+somewhere")),
            package("viral", Some("GPL-3.0"), Some("registry+somewhere")),
        ];
        let mut problems = Problems::default();
        hold(&packages, &allowed(), &mut problems);
        let text = problems.to_string();
        assert_eq!(problems.len(), 3, "{text}");
        assert!(text.contains("bare 1.0.0") && text.contains("forked 1.0.0") && text.contains("viral 1.0.0"));
    }
}
