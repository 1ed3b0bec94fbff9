//! Which source wins, what is refused and how it is said: tables over the plain function.

use super::*;

const KEY: &str = "a2V5";

type Flags<'a> = &'a [(&'static str, &'a str)];

fn file(text: &str) -> ConfigFile {
    ConfigFile { path: "larimar.toml".into(), text: text.to_owned() }
}

fn resolve_all(
    text: &str,
    environment: &[(&str, &str)],
    flags: &[(&'static str, &str)],
) -> Result<Resolved, SettingsError> {
    let environment = environment.iter().map(|(name, text)| (OsString::from(name), OsString::from(text))).collect();
    let flags: Vec<_> = flags.iter().map(|(name, text)| (*name, OsString::from(text))).collect();
    resolve(Some(&file(text)), &environment, &flags)
}

fn resolved(text: &str, environment: &[(&str, &str)], flags: &[(&'static str, &str)]) -> Settings {
    resolve_all(text, environment, flags).unwrap_or_else(|error| panic!("{error}")).settings
}

#[test]
fn without_sources_the_defaults_hold() {
    let resolved = resolve(None, &Environment::new(), &[]).expect("good defaults");
    assert_eq!(resolved.settings, Settings::default());
    assert!(all_settings().all(|setting| resolved.source(setting.name) == Source::Default));
}

#[test]
fn flags_beat_the_environment_and_the_environment_beats_the_file() {
    let text = "table_port = 1";
    let environment = [("LARIMAR_TABLE_PORT", "2")];
    let flags = [("table_port", "3")];
    for (settings, port) in [
        (resolved(text, &[], &[]), 1),
        (resolved(text, &environment, &[]), 2),
        (resolved(text, &environment, &flags), 3),
        (resolved(text, &[], &flags), 3),
        (resolved("", &environment, &flags), 3),
        (resolved("", &environment, &[]), 2),
        (resolved(text, &[("LARIMAR_TABLE_PORT", "")], &[]), 1),
    ] {
        assert_eq!(settings.table_port, port);
    }
}

/// A value for each setting that differs from its default, as text.
const VALUES: &[(&str, &str)] = &[
    ("host", "::1"),
    ("table", "false"),
    ("table_port", "0"),
    ("queue", "false"),
    ("queue_port", "0"),
    ("blob", "false"),
    ("blob_port", "0"),
    ("blob_store", "s3://bucket/folder"),
    ("blob_grace", "1m"),
    ("admin", "false"),
    ("admin_host", "localhost"),
    ("admin_port", "0"),
    ("admin_names", "larimar,admin.example.com"),
    ("admin_token", "a-token-without-spaces"),
    ("admin_token_file", "token.txt"),
    ("console", "false"),
    ("allow_reset", "true"),
    ("engine", "postgres://larimar@db.example:5432,db2.example/larimar?sslmode=require"),
    ("data_dir", "/somewhere/else"),
    ("durability", "async"),
    ("memory", "512MiB"),
    ("reserve", "16MiB"),
    ("seed", "/exported"),
    ("archive", "/archive"),
    ("archive_spool_bytes_max", "64MiB"),
    ("archive_backup_every", "7d"),
    ("backup_key_file", "backup.key"),
    ("backup_keep_time", "30d"),
    ("backup_keep_count", "7"),
    ("dialect", "cockroach"),
    ("database_password", "open sesame"),
    ("database_password_file", "password.txt"),
    ("database_connections", "64"),
    ("database_timeout", "30s"),
    ("accounts", "one:a2V5;two:a2V5:b3RoZXI="),
    ("allow_well_known_key", "true"),
    ("host_suffixes", "table.example.com,other.example"),
    ("tls_certificate", "cert.pem"),
    ("tls_key", "key.pem"),
    ("sas_version_min", "2018-11-09"),
    ("strict", "true"),
    ("connections_max", "7"),
    ("header_bytes_max", "16KiB"),
    ("header_timeout", "5s"),
    ("idle_timeout", "2m"),
    ("answer_timeout", "90s"),
    ("client_rate_min", "2KiB"),
    ("shutdown_grace", "500ms"),
    ("body_bytes_max", "1MiB"),
    ("body_timeout", "1m"),
    ("page_entities_max", "10"),
    ("page_bytes_max", "2MiB"),
    ("page_time_max", "1s"),
    ("rehydration_time", "7s"),
    ("in_flight_bytes_max", "32MiB"),
    ("in_flight_wait", "2s"),
    ("analytics_flush", "30s"),
    ("insights", "false"),
    ("access_log", "/var/log/larimar.access"),
    ("slow_query_time", "250ms"),
    ("slow_query_ratio", "50"),
    ("log_level", "warn,larimar_server=debug"),
    ("log_format", "json"),
];

/// The same without accounts.
const VALUES_WITHOUT_ACCOUNTS: Flags = &[("table_port", "0"), ("strict", "true")];

#[test]
fn every_setting_can_come_from_every_source_and_is_shown() {
    assert_eq!(VALUES.iter().map(|(name, _)| *name).collect::<Vec<_>>(), names().split(", ").collect::<Vec<_>>());
    let from_file = VALUES.iter().map(|(name, text)| format!("{name} = {text:?}\n")).collect::<String>();
    let variables: Vec<_> = all_settings().map(Setting::variable).collect();
    let environment: Vec<_> =
        variables.iter().zip(VALUES).map(|(variable, (_, text))| (variable.as_str(), *text)).collect();
    let by_file = resolve_all(&from_file, &[], &[]).expect("good settings");
    let by_environment = resolve_all("", &environment, &[]).expect("good settings");
    let by_flags = resolve_all("", &[], VALUES).expect("good settings");
    assert_eq!(by_file.settings, by_environment.settings);
    assert_eq!(by_file.settings, by_flags.settings);
    let defaults = Settings::default();
    for setting in all_settings() {
        let shown = setting.shown(&by_file.settings);
        assert!(shown.is_some() && shown != setting.shown(&defaults), "{} does not change", setting.name);
        assert_eq!(by_file.source(setting.name), Source::File("larimar.toml".into()));
        assert_eq!(by_environment.source(setting.name), Source::Environment(setting.variable()));
        assert_eq!(by_flags.source(setting.name), Source::Flag(setting.flag()));
    }
}

#[test]
fn what_is_shown_can_be_read_again_but_for_the_secrets() {
    let is_secret = |name: &str| ["accounts", "admin_token", "database_password"].contains(&name);
    for values in [VALUES, &[]] {
        let resolved = resolve_all("", &[], values).expect("good settings");
        let shown = resolved.to_string();
        for secret in ["a2V5", "b3RoZXI=", "open sesame", "a-token-without-spaces"] {
            assert!(!shown.contains(secret), "{shown}");
        }
        let secrets: Vec<_> = values.iter().filter(|(name, _)| is_secret(name)).copied().collect();
        let again = resolve_all(&shown, &[], &secrets).expect("good settings");
        // Paths are shown so that they mean the same from anywhere.
        let mut expected = resolved.settings.clone();
        for path in [
            &mut expected.admin_token_file,
            &mut expected.backup_key_file,
            &mut expected.database_password_file,
            &mut expected.tls_certificate,
            &mut expected.tls_key,
        ] {
            *path = path.take().map(|path| std::path::absolute(path).expect("a path"));
        }
        expected.data_dir = std::path::absolute(expected.data_dir).expect("a path");
        assert_eq!(again.settings, expected);
    }
    let shown = resolve_all("", &[("LARIMAR_ACCOUNTS", "one:a2V5;two:a2V5:b3Ro")], VALUES_WITHOUT_ACCOUNTS);
    let shown = shown.expect("good settings").to_string();
    assert!(
        shown.contains("# accounts: one with a key, two with two keys (environment LARIMAR_ACCOUNTS)\n"),
        "{shown}"
    );
    assert!(shown.contains("table_port = 0 # flag --table-port\n"), "{shown}");
}

#[test]
fn the_password_of_a_database_is_shown_nowhere() {
    let url = "postgres://larimar:sesame@db/larimar?password=sesame";
    let store = "s3://sesame@bucket/folder?sig=sesame";
    let good = resolve_all("", &[("LARIMAR_DATABASE_PASSWORD", "sesame")], &[("engine", url), ("blob_store", store)]);
    let good = good.expect("good settings");
    let wrong = resolve_all("", &[], &[("engine", "postgres://larimar:sesame/@db/larimar")]).expect_err("a slash");
    let pairs = resolve_all("", &[], &[("engine", "host=db password=sesame")]).expect_err("not a URL");
    let store = resolve_all("", &[], &[("blob_store", "s3://key:sesame@bucket")]).expect_err("a password");
    let open = resolve_all("engine = 'postgres://larimar:sesame@db/larimar", &[], &[]).expect_err("no end of text");
    let refusals = [wrong, pairs, store, open].map(|error| format!("{error} {error:?}"));
    for text in [good.to_string(), format!("{good:?}")].iter().chain(&refusals) {
        assert!(!text.contains("sesame"), "{text}");
    }
    for shown in [
        "# engine holds a secret, which is left out here (flag --engine):\nengine = \"postgres://larimar@db/larimar\" # flag --engine\n",
        "\nblob_store = \"s3://bucket/folder\" # flag --blob-store\n",
        "# database_password: set and not shown (environment LARIMAR_DATABASE_PASSWORD)\n",
    ] {
        assert!(good.to_string().contains(shown), "{shown} in {good}");
    }
}

#[test]
fn a_misspelt_variable_is_refused_with_the_one_that_is_meant() {
    for (variable, value, meant) in [
        ("LARIMAR_TABEL_PORT", "1", "LARIMAR_TABLE_PORT"),
        ("LARIMAR_DATADIR", "x", "LARIMAR_DATA_DIR"),
        ("LARIMAR_DATA", "x", "LARIMAR_DATA_DIR"),
        ("LARIMAR_ACCOUNT", "one:a2V5", "LARIMAR_ACCOUNTS"),
        ("LARIMAR_LOGLEVEL", "debug", "LARIMAR_LOG_LEVEL"),
    ] {
        let said = resolve_all("", &[(variable, value)], &[]).expect_err(variable).to_string();
        assert_eq!(said, format!("environment {variable}: there is no such setting; did you mean {meant}?"));
    }
    let said = resolve_all("", &[("AZURITE_DB", "mysql://u:sesame@h/d")], &[]).expect_err("not ours").to_string();
    assert!(said.contains("AZURITE_DB") && said.contains("LARIMAR_ENGINE") && !said.contains("sesame"), "{said}");
}

#[test]
fn paths_of_the_file_are_meant_from_where_the_file_is() {
    let text = "data_dir = 'data'\ntls_certificate = 'tls/cert.pem'\ntls_key = '/keys/key.pem'\n\
                database_password_file = '../password'";
    let file = ConfigFile { path: "/etc/larimar/settings.toml".into(), text: text.to_owned() };
    let environment = [("LARIMAR_TLS_KEY".into(), "key.pem".into())].into();
    let by_file = resolve(Some(&file), &Environment::new(), &[]).expect("good settings").settings;
    let with_variable = resolve(Some(&file), &environment, &[]).expect("good settings").settings;
    assert_eq!(by_file.data_dir, PathBuf::from("/etc/larimar/data"));
    assert_eq!(by_file.tls_certificate, Some("/etc/larimar/tls/cert.pem".into()));
    assert_eq!(by_file.tls_key, Some("/keys/key.pem".into()));
    assert_eq!(by_file.database_password_file, Some("/etc/larimar/../password".into()));
    assert_eq!(with_variable.tls_key, Some("key.pem".into()));
}

#[test]
fn accounts_replace_the_default_one_and_may_have_two_keys() {
    let account = |name: &str, key2: Option<&str>| Account {
        name: name.to_owned(),
        key: KEY.to_owned(),
        key2: key2.map(str::to_owned),
    };
    let tables =
        "[[accounts]]\nname = 'one'\nkey = 'a2V5'\n[[accounts]]\nname = 'two'\nkey = 'a2V5'\nkey2 = 'b3RoZXI='";
    let both = vec![account("one", None), account("two", Some("b3RoZXI="))];
    let text = "one:a2V5;two:a2V5:b3RoZXI=;";
    assert_eq!(resolved(tables, &[], &[]).accounts, both);
    assert_eq!(resolved("", &[("AZURITE_ACCOUNTS", text)], &[]).accounts, both);
    assert_eq!(resolved("", &[("LARIMAR_ACCOUNTS", text)], &[]).accounts, both);
    let ours_and_theirs = [("AZURITE_ACCOUNTS", "three:a2V5"), ("LARIMAR_ACCOUNTS", "four:a2V5")];
    assert_eq!(resolved(tables, &ours_and_theirs, &[]).accounts, [account("four", None)]);
    assert_eq!(resolved(tables, &ours_and_theirs[..1], &[]).accounts, [account("three", None)]);
    assert_eq!(resolved("", &[], &[]).accounts, [Account::development()]);
}

#[test]
fn lists_and_numbers_of_the_file_may_be_plain_toml() {
    let text = "host_suffixes = ['a.example', 'b.example']\nstrict = true\nmemory = 67108864\nidle_timeout = 60";
    let settings = resolved(text, &[], &[]);
    assert_eq!(settings.host_suffixes, ["a.example", "b.example"]);
    assert!(settings.strict);
    assert_eq!(settings.memory, Some(64 << 20));
    assert_eq!(settings.idle_timeout, Duration::from_secs(60));
    assert!(resolved("host_suffixes = []", &[], &[]).host_suffixes.is_empty());
}

/// Texts that each setting refuses.
const WRONG: &[(&str, &[&str])] = &[
    ("host", &["", "1.2.3", "a b", "-x", "http://x", "127.0.0.1:80"]),
    ("table", &["some"]),
    ("table_port", &["", "x", "-1", "65536", "1.5"]),
    ("queue", &["-"]),
    ("queue_port", &["65536"]),
    ("blob", &["2"]),
    ("blob_port", &["one"]),
    ("blob_store", &["", "bucket", "s3://", "S3://x", "s3://a b", "s3://key:secret@bucket/folder"]),
    ("blob_grace", &["31d", "721h", "soon"]),
    ("admin", &["maybe", "2"]),
    ("admin_host", &["a_b"]),
    ("admin_port", &["http"]),
    ("admin_names", &[".example.com", "http://larimar", "larimar:10003"]),
    ("admin_token", &["", "short", "a token with spaces", "a-token-with-ü-in-it"]),
    ("admin_token_file", &[""]),
    ("console", &["maybe"]),
    ("allow_reset", &["yes please"]),
    ("engine", &["", "Local", "mysql://u:pw@h/d", "postgres://", "postgres://u:p/w@h/d", "localhost:5432"]),
    ("data_dir", &[""]),
    ("durability", &["", "fast", "Sync"]),
    ("memory", &["", "much", "512XB", "1MiB", "-1", "99999999999999999999"]),
    ("reserve", &["", "much", "512XB", "-1", "2000GiB", "99999999999999999999"]),
    ("seed", &[""]),
    ("archive", &["", "s3://key:secret@bucket/folder", "s3://bucket/folder?secret_access_key=secret"]),
    ("archive_spool_bytes_max", &["", "15MiB", "1001GiB", "much", "-1"]),
    ("archive_backup_every", &["", "59s", "366d", "soon", "1w"]),
    ("backup_key_file", &[""]),
    ("backup_keep_time", &["", "59m", "10001d", "soon", "30D", "99999999999999999999d"]),
    ("backup_keep_count", &["", "0", "-1", "100001", "few"]),
    ("dialect", &["", "mysql", "Postgres"]),
    ("database_password", &[""]),
    ("database_password_file", &[""]),
    ("database_connections", &["7", "1001", "some"]),
    ("database_timeout", &["999ms", "301s", "soon"]),
    ("accounts", &[]), // see account.rs
    ("allow_well_known_key", &["perhaps"]),
    ("host_suffixes", &[".example.com", "a..b", "a/b"]),
    ("tls_certificate", &[""]),
    ("tls_key", &[""]),
    ("sas_version_min", &["", "2018", "2018-11-9x", "18-11-2009"]),
    ("strict", &["very"]),
    ("connections_max", &["0", "1000001", "x"]),
    ("header_bytes_max", &["1KiB", "1MiB"]),
    ("header_timeout", &["0", "10ms", "25h", "soon", "5d"]),
    ("idle_timeout", &["0s", "-1s"]),
    ("answer_timeout", &["0s", "25h"]),
    ("client_rate_min", &["0", "65MiB", "fast"]),
    ("shutdown_grace", &["2h", ""]),
    ("body_bytes_max", &["1KiB", "65MiB"]),
    ("body_timeout", &["1ms"]),
    ("page_entities_max", &["0", "1001"]),
    ("page_bytes_max", &["0", "1GiB"]),
    ("page_time_max", &["50ms", "31s"]),
    ("rehydration_time", &["25h", "soon"]),
    ("in_flight_bytes_max", &["1MiB", "much"]),
    ("in_flight_wait", &["10ms", "6m"]),
    ("analytics_flush", &["500ms", "2h", "soon"]),
    ("insights", &["some"]),
    ("access_log", &[""]),
    ("slow_query_time", &["2h", "soon"]),
    ("slow_query_ratio", &["-1", "many", "1000000001"]),
    ("log_level", &["", "loud", "info,", "=debug", "x=loud"]),
    ("log_format", &["xml"]),
];

#[test]
fn a_wrong_value_is_refused_with_its_name_its_source_and_what_was_expected() {
    assert_eq!(WRONG.iter().map(|(name, _)| *name).collect::<Vec<_>>(), names().split(", ").collect::<Vec<_>>());
    for (name, texts) in WRONG.iter().filter(|(name, _)| *name != "accounts") {
        let setting = find(name).expect("a setting");
        for text in *texts {
            let flag = resolve_all("", &[], &[(setting.name, text)]).expect_err(&format!("{name} = {text:?}"));
            let in_file =
                resolve_all(&format!("{name} = {text:?}"), &[], &[]).expect_err(&format!("{name} = {text:?}"));
            let mut refusals =
                vec![(flag, format!("flag --{}", setting.flag())), (in_file, "file larimar.toml".into())];
            if !text.is_empty() {
                let variable = setting.variable();
                let error = resolve_all("", &[(&variable, text)], &[]).expect_err(&format!("{variable}={text}"));
                refusals.push((error, format!("environment {variable}")));
            }
            for (error, origin) in refusals {
                let said = error.to_string();
                assert!(
                    said.starts_with(&format!("setting {name} ({origin}): expected {}", setting.expected)),
                    "{said}"
                );
                let is_secret = matches!(setting.kind, Kind::Secret | Kind::Private);
                assert_eq!(said.contains(&format!("found {text:?}")), !is_secret, "{said}");
            }
        }
    }
}

#[test]
fn settings_that_do_not_fit_together_are_refused() {
    let cases: &[(&str, Flags, &str)] = &[
        (
            "",
            &[("table_port", "10001")],
            "setting table_port (flag --table-port): expected a port other than queue_port's",
        ),
        (
            "",
            &[("table_port", "10003")],
            "setting table_port (flag --table-port): expected a port other than admin_port's",
        ),
        (
            "",
            &[("blob_port", "10002")],
            "setting blob_port (flag --blob-port): expected a port other than table_port's",
        ),
        (
            "queue_port = 5\nblob_port = 5",
            &[],
            "setting blob_port (file larimar.toml): expected a port other than queue_port's",
        ),
        ("tls_key = 'k'", &[], "setting tls_key (file larimar.toml): expected tls_certificate to be set as well"),
        (
            "",
            &[("tls_certificate", "c")],
            "setting tls_certificate (flag --tls-certificate): expected tls_key to be set",
        ),
    ];
    for (text, flags, expected) in cases {
        let said = resolve_all(text, &[], flags).expect_err(expected).to_string();
        assert!(said.starts_with(expected), "{said}");
    }
    resolved("", &[], &[("table_port", "0"), ("queue_port", "0"), ("blob_port", "0"), ("admin_port", "0")]);
    let shared = [("table_port", "1"), ("queue_port", "1"), ("blob_port", "1")];
    let said = resolve_all("", &[], &shared).expect_err("no host style").to_string();
    assert!(said.contains("or host_suffixes"), "{said}");
    resolved("host_suffixes = ['example.com']", &[], &shared);
    let said = resolve_all("host_suffixes = ['example.com']\nadmin_port = 1", &[], &shared).expect_err("admin");
    assert!(said.to_string().contains("a port other than table_port's, found 1"), "{said}");
    resolved("", &[], &[("table_port", "10003"), ("admin", "false")]);
    resolved("", &[], &[("table_port", "10000"), ("blob", "false")]);
}

#[test]
fn a_wrong_file_is_refused() {
    let cases = [
        (
            "tabel_port = 1",
            "setting tabel_port (file larimar.toml): there is no such setting; did you mean table_port?",
        ),
        (
            "[limits]\nx = 1",
            "setting limits (file larimar.toml): there is no such setting; expected one of host, table, table_port",
        ),
        ("strict = true\ntable_port = ", "larimar.toml: expected TOML: line 2: "),
        ("table_port = 1\ntable_port = 2", "larimar.toml: expected TOML: "),
        (
            "table_port = 1.5",
            "setting table_port (file larimar.toml): expected a port number from 0 to 65535, found float",
        ),
        ("host_suffixes = [1]", "setting host_suffixes (file larimar.toml): expected domains"),
        ("[[accounts]]\nname = 'one'", "setting accounts (file larimar.toml): account 1: it has no key"),
        (
            "[[accounts]]\nname = 'one'\nkey = 'a2V5'\nkey3 = 'a2V5'",
            "setting accounts (file larimar.toml): account 1: there is no field \"key3\"",
        ),
        ("[[accounts]]\nname = 'one'\nkey = 5", "setting accounts (file larimar.toml): account 1: key is not a text"),
        (
            "[[accounts]]\nname = 'one;two'\nkey = 'a2V5'",
            "setting accounts (file larimar.toml): account 1: name holds a colon or a semicolon",
        ),
    ];
    for (text, expected) in cases {
        let said = resolve_all(text, &[], &[]).expect_err(text).to_string();
        assert!(said.starts_with(expected), "{text:?}: {said}");
    }
}

#[test]
fn variables_that_are_not_ours_are_left_alone() {
    let environment =
        [("LARIMAR_SERVICE_HOST", "10.0.0.1"), ("LARIMAR_PORT", "tcp://10.0.0.1:80"), ("LARIMAR_KEY", "x")];
    assert_eq!(resolved("", &environment, &[]), Settings::default());
}

#[test]
fn sizes_and_spans_are_shown_as_they_can_be_read() {
    for (text, bytes, shown) in [
        ("0", 0, "0"),
        ("1000", 1000, "1000"),
        ("2 KiB", 2048, "2KiB"),
        ("512MiB", 512 << 20, "512MiB"),
        ("1g", 1 << 30, "1GiB"),
        ("1GB", 1_000_000_000, "1000000000"),
    ] {
        assert_eq!(value::bytes(text), Some(bytes), "{text}");
        assert_eq!(value::show_bytes(bytes), shown);
        assert_eq!(value::bytes(shown), Some(bytes));
    }
    for (text, millis, shown) in [
        ("0", 0, "0ms"),
        ("90", 90_000, "90s"),
        ("120s", 120_000, "2m"),
        ("1h", 3_600_000, "1h"),
        ("1500ms", 1500, "1500ms"),
    ] {
        let span = Duration::from_millis(millis);
        assert_eq!(value::span(text), Some(span), "{text}");
        assert_eq!(value::show_span(span), shown);
        assert_eq!(value::span(shown), Some(span));
    }
}
