//! What a new user meets: refusals that say what to do, private files, help that fits the terminal.

use larimar_testkit::{Launch, TemporaryServer};
use std::path::Path;
use std::process::{Command, Output};

const EXE: &str = env!("CARGO_BIN_EXE_larimar");
const FREE_PORTS: [&str; 4] = ["--table-port=0", "--queue-port=0", "--blob-port=0", "--admin=false"];

/// A command in a directory, with nothing of ours in the environment.
fn command(directory: &Path) -> Command {
    let mut command = Command::new(EXE);
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        if text.starts_with("LARIMAR_") || text.starts_with("AZURITE_") {
            command.env_remove(name);
        }
    }
    command.current_dir(directory);
    command
}

/// Runs a command that is refused, and returns what it said.
fn refused(command: &mut Command) -> String {
    let Output { status, stdout, stderr } = command.output().expect("the binary runs");
    let said = String::from_utf8_lossy(&stderr).into_owned();
    assert_eq!(status.code(), Some(2), "{said}{}", String::from_utf8_lossy(&stdout));
    assert!(stdout.is_empty(), "no banner: {}", String::from_utf8_lossy(&stdout));
    said
}

fn printed(command: &mut Command) -> String {
    let output = command.output().expect("the binary runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

#[test]
fn beyond_loopback_the_well_known_key_is_refused_unless_it_is_allowed() {
    let folder = tempfile::tempdir().expect("a folder");
    let serve = |host: &str| {
        let mut command = command(folder.path());
        command.args(FREE_PORTS).args(["--durability", "memory", "--host", host]);
        command
    };
    for host in ["0.0.0.0", "::"] {
        let said = refused(&mut serve(host));
        for word in ["setting host (flag --host)", "devstoreaccount1", "LARIMAR_ACCOUNTS", "--allow-well-known-key"] {
            assert!(said.contains(word), "{word} in {said}");
        }
    }
    let said = refused(serve("0.0.0.0").env("LARIMAR_ACCOUNTS", ""));
    assert!(said.contains("well-known key"), "{said}");
    let listen = |flags: &[&str]| TemporaryServer::start(EXE, &[&["--host", "0.0.0.0"], flags].concat());
    drop(listen(&["--allow-well-known-key"]));
    let launch = Launch::new(EXE, folder.path().join("data")).argument("--host=0.0.0.0");
    drop(launch.environment("LARIMAR_ACCOUNTS", "shop:c2VjcmV0IG9uZSBvZiBvdXJz").start());
}

#[test]
fn accounts_that_cannot_be_reached_and_short_keys_are_refused_by_name() {
    let folder = tempfile::tempdir().expect("a folder");
    for (accounts, expected) in [
        ("x-secondary:c2VjcmV0", "account 1: \"x-secondary\" cannot be reached"),
        ("shop:c2VjcmV0;Shop:c2VjcmV0", "account 2: \"Shop\" differs from \"shop\" only in case"),
        ("one:c2VjcmV0;two:eA==", "account 2: \"two\": key has 1 bytes"),
        ("one:c2VjcmV0:%", "account 1: \"one\": key2 is not Base64"),
    ] {
        for variable in ["LARIMAR_ACCOUNTS", "AZURITE_ACCOUNTS"] {
            let said = refused(command(folder.path()).args(FREE_PORTS).env(variable, accounts));
            assert!(said.contains(&format!("setting accounts (environment {variable}): {expected}")), "{said}");
            assert!(!said.contains("c2VjcmV0") && !said.contains("eA=="), "{said}");
        }
    }
}

#[test]
fn loose_keys_of_azurite_work() {
    let folder = tempfile::tempdir().expect("a folder");
    let launch = Launch::new(EXE, folder.path().join("data")).argument("--durability=memory");
    // No padding, and the alphabet of URLs.
    let server = launch.environment("AZURITE_ACCOUNTS", "one:b3RoZXI;two:-_-_").start();
    let client = server.client();
    client.of_account("one", "b3RoZXI=").get("/Tables").send().is_status(200);
    client.of_account("two", "+/+/").get("/Tables").send().is_status(200);
}

#[test]
fn settings_that_make_no_sense_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let said = refused(command(folder.path()).args(["--table=false", "--queue=false", "--blob=false"]));
    assert!(said.contains("table, queue and blob are all off"), "{said}");
    let said = refused(command(folder.path()).env("LARIMAR_TABEL_PORT", "1"));
    assert!(
        said.contains("environment LARIMAR_TABEL_PORT: there is no such setting; did you mean LARIMAR_TABLE_PORT?"),
        "{said}"
    );
    let said = refused(command(folder.path()).env("LARIMAR_PORT", "1"));
    assert!(
        said.contains("environment LARIMAR_PORT: there is no such setting; did you mean LARIMAR_TABLE_PORT"),
        "{said}"
    );
    printed(command(folder.path()).arg("config").env("LARIMAR_PORT", "tcp://10.0.0.1:10002"));
    for (text, expected) in [
        ("database_password = ['x']", "setting database_password (file larimar.toml): expected"),
        ("data_dir = ['x', 'y']", "setting data_dir (file larimar.toml): expected"),
        ("table_port = ['1']", "setting table_port (file larimar.toml): expected a port number"),
        ("log_level = ['info']", "setting log_level (file larimar.toml): expected"),
    ] {
        std::fs::write(folder.path().join("larimar.toml"), text).expect("a file");
        let said = refused(&mut command(folder.path()));
        assert!(said.contains(expected), "{expected} in {said}");
    }
    std::fs::remove_file(folder.path().join("larimar.toml")).expect("the file is ours");
    let said = refused(command(folder.path()).args(["--in-memory"]));
    assert!(said.contains("use --durability memory") && !said.contains("--memory"), "{said}");
    let said = refused(command(folder.path()).args(["postgres://larimar:sesame@db/larimar"]));
    assert!(!said.contains("sesame"), "{said}");
    assert!(!folder.path().join("larimar-data").exists());
}

#[test]
fn an_unrelated_directory_is_refused_and_left_alone() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("notes.txt"), "mine").expect("a file");
    let said = refused(command(folder.path()).args(FREE_PORTS).args(["--data-dir", "."]));
    assert!(said.contains("setting data_dir (flag --data-dir)") && said.contains("notes.txt"), "{said}");
    assert_eq!(std::fs::read_dir(folder.path()).expect("a folder").count(), 1, "nothing was made");
}

/// A folder of something else that has names which a store has as well keeps its files and their rights.
#[cfg(unix)]
#[test]
fn names_that_a_store_has_too_do_not_make_a_directory_ours() {
    use std::os::unix::fs::PermissionsExt;
    for name in ["store/docs", "inventory.d/docs"] {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join(name);
        std::fs::create_dir_all(file.parent().expect("a parent")).expect("a folder");
        std::fs::write(&file, "mine").expect("a file");
        std::fs::write(folder.path().join("inventory"), "[web]\nhost").expect("a file");
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).expect("rights");
        let said = refused(command(folder.path()).args(FREE_PORTS).args(["--data-dir", "."]));
        assert!(said.contains("nor a data directory of Larimar"), "{said}");
        assert_eq!(file.metadata().expect("a file").permissions().mode() & 0o777, 0o644);
        assert_eq!(std::fs::read_dir(folder.path()).expect("a folder").count(), 2, "nothing was made");
    }
}

#[test]
fn flags_of_azurite_are_understood() {
    let folder = tempfile::tempdir().expect("a folder");
    let flags = ["config", "--silent", "--location", "here", "--inMemoryPersistence", "--tablePort", "7"];
    let flags = [&flags[..], &["--blobHost", "::1", "--loose", "--skipApiVersionCheck"]].concat();
    let settings: toml::Table = printed(command(folder.path()).args(&flags)).parse().expect("TOML");
    assert_eq!(settings["durability"].as_str(), Some("memory"));
    assert_eq!(settings["table_port"].as_integer(), Some(7));
    assert_eq!(settings["host"].as_str(), Some("::1"));
    assert_eq!(settings["log_level"].as_str(), Some("warn"));
    assert!(settings["data_dir"].as_str().is_some_and(|path| path.ends_with("/here")));
    let said = refused(command(folder.path()).args(["--debug", "log.txt"]));
    assert!(said.contains("--log-level debug"), "{said}");
}

/// Printed settings are a file that means the same from anywhere, but for the secrets.
#[test]
fn what_config_prints_is_a_configuration_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let (first, second) = (folder.path().join("first"), folder.path().join("second"));
    for directory in [&first, &second] {
        std::fs::create_dir(directory).expect("a folder");
    }
    let text = "data_dir = 'data'\nstrict = true\nmemory = '32MiB'\n[[accounts]]\nname = 'shop'\nkey = 'c2VjcmV0'\n";
    std::fs::write(first.join("larimar.toml"), text).expect("a file");
    let database = "postgres://larimar:sesame@db/larimar?sslmode=require";
    for flags in [&[][..], &["--engine", database, "--blob-store=s3://sesame@bucket/folder?key=sesame"]] {
        // The file is found from elsewhere, and so is what it names.
        let shown = printed(command(folder.path()).args(["config", "--config", "first/larimar.toml"]).args(flags));
        assert!(!shown.contains("sesame") && !shown.contains("c2VjcmV0"), "{shown}");
        assert!(shown.contains("# accounts: shop with a key (file first/larimar.toml)"), "{shown}");
        std::fs::write(second.join("larimar.toml"), &shown).expect("a file");
        let again = printed(command(&second).arg("config").env("LARIMAR_ACCOUNTS", "shop:c2VjcmV0"));
        let read = |text: &str| text.parse::<toml::Table>().expect("TOML");
        assert_eq!(read(&shown), read(&again));
        assert_eq!(read(&shown)["data_dir"].as_str(), first.join("data").to_str());
    }
}

#[test]
fn help_is_grouped_and_fits_80_columns() {
    let folder = tempfile::tempdir().expect("a folder");
    let commands = [&["--help"][..], &["repair", "--help"], &["migrate", "--help"], &["config", "--help"]];
    for arguments in commands {
        let text = printed(command(folder.path()).args(arguments));
        let longest = text.lines().map(|line| line.chars().count()).max().unwrap_or(0);
        assert!(longest <= 80, "{longest} columns: {text}");
        assert!(text.contains("\nServices and addresses:\n") && text.contains("\nLimits:\n"), "{text}");
    }
    let before = |text: &str, first: &str, second: &str| {
        let place = |word: &str| text.find(word).unwrap_or_else(|| panic!("{word} in {text}"));
        assert!(place(first) < place(second), "{first} before {second} in {text}");
    };
    let repair = printed(command(folder.path()).args(["repair", "--help"]));
    before(&repair, "--force", "--config");
    before(&repair, "--reset-clock", "--host");
    before(&printed(command(folder.path()).args(["migrate", "--help"])), "--verify-only", "--config");
}

#[test]
fn completions_and_the_manual_page_name_every_flag() {
    let folder = tempfile::tempdir().expect("a folder");
    for shell in ["bash", "zsh", "fish"] {
        let script = printed(command(folder.path()).args(["completions", shell]));
        for word in ["table-port", "allow-well-known-key", "verify-only"] {
            assert!(script.contains(word), "{word} for {shell}");
        }
    }
    let page = printed(command(folder.path()).arg("man"));
    for word in [".TH larimar 1", "table\\-port", "verify\\-only", "reset\\-clock", "LARIMAR_ACCOUNTS"] {
        assert!(page.contains(word), "{word} in {page}");
    }
}

#[cfg(unix)]
#[test]
fn data_is_readable_by_its_owner_alone() {
    use std::os::unix::fs::PermissionsExt;
    fn modes(path: &Path, found: &mut Vec<(String, u32)>) {
        let metadata = path.symlink_metadata().expect("it is there");
        found.push((path.display().to_string(), metadata.permissions().mode() & 0o777));
        if metadata.is_dir() {
            for entry in std::fs::read_dir(path).expect("a folder") {
                modes(&entry.expect("an entry").path(), found);
            }
        }
    }
    let check = |data: &Path| {
        let mut found = Vec::new();
        modes(data, &mut found);
        let expected = |path: &str| if Path::new(path).is_dir() { 0o700 } else { 0o600 };
        let wrong: Vec<_> = found.iter().filter(|(path, mode)| *mode != expected(path)).collect();
        assert!(found.len() > 10 && wrong.is_empty(), "{wrong:?} of {}", found.len());
        found
    };
    let folder = tempfile::tempdir().expect("a folder");
    let data = folder.path().join("data");
    let launch = Launch::new(EXE, &data);
    let server = launch.start();
    server.client().create_table("people");
    let blobs = server.blobs();
    blobs.request("PUT", "/photos?restype=container").send().is_status(201);
    for (name, bytes) in [("small", 10), ("large", 5 << 20)] {
        let put = blobs.request("PUT", &format!("/photos/{name}")).header("x-ms-blob-type", "BlockBlob");
        put.body("x".repeat(bytes)).send().is_status(201);
    }
    let (_, status) = server.stop();
    assert!(status.success());
    let found = check(&data);
    // A directory of an earlier release, readable by all.
    for (path, mode) in &found {
        let open = std::fs::Permissions::from_mode(mode | (mode & 0o700) >> 3 | (mode & 0o700) >> 6);
        std::fs::set_permissions(path, open).expect("the file is ours");
    }
    let server = launch.start();
    server.blobs().get("/photos/large").send().is_status(200);
    drop(server);
    check(&data);
}
