//! Strict mode knows every version that today's SDKs send, and says which header it refuses and why.

use larimar_testkit::Launch;
use std::path::{Path, PathBuf};

const EXE: &str = env!("CARGO_BIN_EXE_larimar");

/// A line of `tests/sdk/versions.toml`.
struct Sdk {
    suite: String,
    pin: String,
    sends: String,
    source: Option<String>,
}

fn suites() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/sdk")
}

fn sdks() -> Vec<Sdk> {
    let text = std::fs::read_to_string(suites().join("versions.toml")).expect("the list of versions");
    let list: toml::Table = text.parse().expect("TOML");
    let field = |sdk: &toml::Value, name: &str| sdk.get(name).and_then(toml::Value::as_str).map(str::to_owned);
    let sdks = list["sdk"].as_array().expect("a list").iter();
    sdks.map(|sdk| Sdk {
        suite: field(sdk, "suite").expect("a suite"),
        pin: field(sdk, "pin").expect("a pin"),
        sends: field(sdk, "sends").expect("a version"),
        source: field(sdk, "source"),
    })
    .collect()
}

/// The packages of a suite, each spelled as `pin` is.
fn packages(suite: &str) -> Vec<String> {
    let (file, starts): (_, &[&str]) = match suite {
        "python" => ("requirements.txt", &["azure-data-", "azure-storage-"]),
        "javascript" => ("package.json", &["\"@azure/"]),
        "javascript-legacy" => ("package.json", &["\"azure-storage"]),
        "go" => ("go.mod", &["sdk/data/", "sdk/storage/"]),
        "java" => ("pom.xml", &["azure-data-tables", "azure-storage-queue", "azure-storage-blob:"]),
        other => panic!("no such suite: {other}"),
    };
    let text = std::fs::read_to_string(suites().join(suite).join(file)).expect("the suite's packages");
    let text = text.replace("</artifactId>\n      <version>", ":").replace("github.com/Azure/azure-sdk-for-go/", "");
    let clean = |line: &str| {
        let line = line.trim().trim_start_matches("<artifactId>").trim_end_matches("</version>");
        line.trim_end_matches(',').to_owned()
    };
    text.lines().map(clean).filter(|line| starts.iter().any(|start| line.starts_with(start))).collect()
}

/// The installed file that a source names, whose path may hold one `*`.
fn installed(suite: &str, source: &str) -> Option<String> {
    let folder = suites().join(suite);
    let path = match source.split_once('*') {
        None => folder.join(source),
        Some((before, after)) => {
            let (parent, start) = before.rsplit_once('/').expect("a folder before the star");
            let entries = std::fs::read_dir(folder.join(parent)).ok()?.filter_map(Result::ok);
            let found = entries
                .map(|entry| entry.path())
                .find(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(start)))?;
            found.join(after.split_once('/').expect("a folder after the star").1)
        }
    };
    std::fs::read_to_string(path).ok()
}

/// Two lists: the suites' packages and the versions. None has what the other lacks.
#[test]
fn the_list_of_versions_covers_the_packages_of_every_suite() {
    let sdks = sdks();
    for suite in ["python", "javascript", "javascript-legacy", "go", "java"] {
        let mut listed: Vec<_> = sdks.iter().filter(|sdk| sdk.suite == suite).map(|sdk| sdk.pin.clone()).collect();
        let mut found = packages(suite);
        listed.sort();
        found.sort();
        assert_eq!(found, listed, "tests/sdk/{suite} and tests/sdk/versions.toml");
    }
    for Sdk { suite, pin, sends, source } in &sdks {
        if let Some(text) = source.as_ref().and_then(|source| installed(suite, source)) {
            assert!(text.contains(sends.as_str()), "{pin} is installed and does not send {sends}");
        }
    }
}

#[test]
fn strict_mode_knows_the_versions_of_every_sdk_in_our_suites() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = Launch::new(EXE, folder.path().join("data")).argument("--strict").start();
    for sdk in sdks() {
        let reply = server.client().get("/Tables").header("x-ms-version", &sdk.sends).send();
        assert_eq!(reply.status, 200, "{}: {reply}", sdk.pin);
    }
}

#[test]
fn the_refusal_names_the_header_the_version_and_the_switch() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = Launch::new(EXE, folder.path().join("data")).argument("--strict").start();
    let paths = [(server.client(), "/Tables"), (server.queues(), "/?comp=list"), (server.blobs(), "/?comp=list")];
    for (client, path) in paths {
        let reply = client.get(path).header("x-ms-version", "2099-01-01").send();
        reply.is_error(400, "InvalidHeaderValue");
        for word in ["x-ms-version", "2099-01-01", "--strict"] {
            assert!(reply.text().contains(word), "{word} in {reply}");
        }
    }
}
