//! The crates that may be published: each has the fields that a registry shows, and all can be packaged together.
//!
//! They are those whose manifest has `publish = true`. One depends on the other by version and path, so Cargo packages
//! them in order as if the earlier ones were published already.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use toml::{Table, Value};

use crate::gate;
use crate::shell::Repo;
use crate::tally::Tally;

/// Checks the fields of every publishable crate, and packages all of them without building them again.
pub(crate) fn check(repo: &Repo) -> Tally {
    let mut tally = Tally::default();
    gate::step(&mut tally, "packages to publish", || {
        let names = publishable(&repo.path("crates"))?;
        ensure!(!names.is_empty(), "there are none");
        let mut cargo = repo.cargo(&["package", "--quiet", "--locked", "--no-verify", "--allow-dirty"]);
        gate::succeeds(cargo.args(names.iter().map(|name| format!("--package={name}"))))
    });
    tally
}

/// The names of the publishable crates, all of which have the required fields.
fn publishable(folder: &Path) -> Result<Vec<String>> {
    let mut names = Vec::new();
    let mut missing = Vec::new();
    for entry in fs::read_dir(folder).context("list crates")? {
        let path = entry?.path();
        let Ok(text) = fs::read_to_string(path.join("Cargo.toml")) else { continue };
        let manifest: Table = text.parse().with_context(|| format!("parse the manifest in {}", path.display()))?;
        let Some(package) = manifest.get("package").and_then(Value::as_table) else { continue };
        if package.get("publish") != Some(&Value::Boolean(true)) {
            continue;
        }
        let name = package.get("name").and_then(Value::as_str).context("a package has a name")?;
        missing.extend(unsaid(package, &path).into_iter().map(|field| format!("{name} has no {field}")));
        names.push(name.to_owned());
    }
    ensure!(missing.is_empty(), "{}", missing.join(", "));
    names.sort_unstable();
    Ok(names)
}

/// The required fields that a manifest lacks; the readme must exist.
fn unsaid(package: &Table, folder: &Path) -> Vec<&'static str> {
    const FIELDS: [&str; 6] = ["description", "documentation", "keywords", "categories", "license", "rust-version"];
    let mut fields: Vec<_> = FIELDS.into_iter().filter(|field| !package.contains_key(*field)).collect();
    let readme = package.get("readme").and_then(Value::as_str);
    if !readme.is_some_and(|readme| folder.join(readme).is_file()) {
        fields.push("readme");
    }
    fields
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crate_to_publish_says_what_it_is() {
        let folder = std::env::temp_dir().join(format!("larimar-xtask-packages-{}", std::process::id()));
        let full = "[package]\nname = 'a'\npublish = true\ndescription = 'd'\ndocumentation = 'u'\nkeywords = []\n\
                    categories = []\nlicense = 'MIT'\nrust-version = '1.90'\nreadme = 'README.md'";
        let write = |name: &str, manifest: &str| {
            fs::create_dir_all(folder.join(name)).expect("create");
            fs::write(folder.join(name).join("Cargo.toml"), manifest).expect("write");
        };
        write("a", full);
        write("inner", "[package]\nname = 'inner'\npublish = false");
        let error = publishable(&folder).expect_err("the readme is missing").to_string();
        assert_eq!(error, "a has no readme");
        fs::write(folder.join("a/README.md"), "# a").expect("write");
        assert_eq!(publishable(&folder).expect("complete"), ["a"]);
        write("b", "[package]\nname = 'b'\npublish = true\nlicense.workspace = true");
        let error = publishable(&folder).expect_err("b says little").to_string();
        assert_eq!(
            error,
            "b has no description, b has no documentation, b has no keywords, b has no categories, \
             b has no rust-version, b has no readme"
        );
        fs::remove_dir_all(&folder).expect("remove");
    }

    #[test]
    fn the_crates_for_users_and_what_they_stand_on_can_be_published() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the checkout").join("crates");
        let names = publishable(&folder).expect("all say what they should");
        for name in ["larimar-client", "larimar-client-derive", "larimar-embedded", "larimar-model", "larimar-wire"] {
            assert!(names.iter().any(|publishable| publishable == name), "{name}");
        }
    }
}
