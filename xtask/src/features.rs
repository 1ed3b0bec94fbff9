//! Which features every build of a run takes: all there are, so that everything is built once, linted and tested.
//!
//! A feature named `test-…` builds tests that need something of the machine; the others are what users can turn on.

use std::fs;

use anyhow::{Context, Result};
use toml::Table;

use crate::shell::Repo;

/// Builds the tests on PostgreSQL.
const POSTGRES: &str = "test-postgres";

/// The features of all crates as Cargo takes them, with the tests on PostgreSQL or without.
pub(crate) fn of_all(repo: &Repo, with_postgres: bool) -> Result<String> {
    let mut features = Vec::new();
    for entry in fs::read_dir(repo.path("crates")).context("list crates")? {
        let manifest = entry?.path().join("Cargo.toml");
        // A folder that a crate has left behind has none.
        let Ok(text) = fs::read_to_string(&manifest) else { continue };
        let manifest: Table = text.parse().with_context(|| format!("parse {}", manifest.display()))?;
        features.extend(of_crate(&manifest, with_postgres));
    }
    features.sort_unstable();
    Ok(features.join(","))
}

fn of_crate(manifest: &Table, with_postgres: bool) -> Vec<String> {
    let name = manifest.get("package").and_then(|package| package.get("name")?.as_str());
    let features = manifest.get("features").and_then(|features| features.as_table());
    let (Some(name), Some(features)) = (name, features) else { return Vec::new() };
    let is_on = |feature: &&String| match feature.as_str() {
        POSTGRES => with_postgres,
        "default" => false,
        other => !other.starts_with("test-"),
    };
    features.keys().filter(is_on).map(|feature| format!("{name}/{feature}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crate_says_itself_which_features_it_has() {
        let features = |text: &str, postgres| of_crate(&text.parse().expect("a manifest"), postgres).join(",");
        let engine = "[package]\nname = 'engine'\n[features]\ntest-postgres = []";
        assert_eq!((features(engine, true).as_str(), features(engine, false).as_str()), ("engine/test-postgres", ""));
        let client = "[package]\nname = 'client'\n[features]\ndefault = ['tls']\ntls = []\ntime = []\ntest-cloud = []";
        let both = [features(client, true), features(client, false)];
        assert_eq!(both, ["client/time,client/tls", "client/time,client/tls"]);
        assert_eq!(features("[package]\nname = 'model'", true), "");
        assert_eq!(features("[workspace]", true), "");
    }
}
