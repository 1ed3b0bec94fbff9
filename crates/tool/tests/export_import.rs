//! Tables to files and back, by the commands as the binary runs them.

use clap::Command;
use futures_util::TryStreamExt as _;
use larimar_client::{Account, BulkOperation, DynamicEntity, Guid, Table, Timestamp, Value};
use larimar_embedded::Larimar;
use larimar_tool::{Context, Environment, Error, LocalServer};
use std::fs;
use std::path::{Path, PathBuf};

pub(crate) struct Fixture {
    server: Larimar,
    folder: tempfile::TempDir,
}

impl Fixture {
    pub(crate) async fn new() -> Self {
        let server = Larimar::ephemeral().await.expect("a server");
        Self { server, folder: tempfile::tempdir().expect("a directory") }
    }

    pub(crate) fn table(&self, name: &str) -> Table {
        Account::connect(&self.server.connection_string()).expect("an account").table(name)
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn write(&self, name: &str, text: impl AsRef<[u8]>) -> String {
        fs::write(self.path(name), text).expect("a file");
        self.path(name).display().to_string()
    }

    pub(crate) fn context(&self, environment: Environment) -> Context {
        let local = LocalServer { connection_string: self.server.connection_string(), certificate: None };
        Context::new(environment, Ok(local))
    }

    pub(crate) async fn run(&self, arguments: &[&str]) -> Result<(), Error> {
        self.run_in(self.context(Environment::new()), arguments).await
    }

    pub(crate) async fn run_in(&self, context: Context, arguments: &[&str]) -> Result<(), Error> {
        let line = std::iter::once("larimar").chain(arguments.iter().copied());
        let matches = larimar_tool::add_commands(Command::new("larimar")).try_get_matches_from(line);
        let matches = matches.map_err(|error| Error::Usage(error.to_string()))?;
        larimar_tool::run(matches, context).await
    }
}

/// The entities of a table in the order of their keys, as texts in which NaN equals NaN.
pub(crate) async fn rows(table: &Table) -> Vec<String> {
    let entities: Vec<DynamicEntity> = table.query().stream().try_collect().await.expect("entities");
    let text = |entity: &DynamicEntity| {
        let properties: Vec<_> = entity.properties().map(|(name, value)| format!("{name}={value:?}")).collect();
        format!("{:?} {:?} {properties:?}", entity.partition_key, entity.row_key)
    };
    entities.iter().map(text).collect()
}

/// A value of every type and at its limits, properties of several types, and keys that are unusual.
fn entities() -> Vec<DynamicEntity> {
    let time = |text: &str| text.parse::<Timestamp>().expect("a time");
    let mut entities = vec![
        DynamicEntity::new("", ""),
        DynamicEntity::new("a b'c%20+&\"", "=1+1"),
        DynamicEntity::new("日本", "😀").with("größe", 1.5).with("Mixed", "text"),
        DynamicEntity::new("p", "1").with("S", "").with("Mixed", 1).with("B", Vec::<u8>::new()),
        DynamicEntity::new("p", "2")
            .with("S", "a,\"b\"\r\nc\u{feff}")
            .with("Mixed", 1_i64 << 40)
            .with("B", vec![0, 255]),
        DynamicEntity::new("p", "3").with("S", "'=x").with("Mixed", time("2024-01-02T03:04:05.1234567Z")),
        DynamicEntity::new("p", "4").with("Mixed", Guid::from_bytes([7; 16])).with("Tab", true).with("D", -0.0),
        DynamicEntity::new("p", "5").with("Mixed", f64::NAN).with("Tab", false).with("D", f64::NEG_INFINITY),
        DynamicEntity::new("p", "6").with("When", Timestamp::MIN).with("I", i32::MIN).with("L", i64::MIN),
        DynamicEntity::new("p", "7").with("When", Timestamp::MAX).with("I", i32::MAX).with("L", i64::MAX),
    ];
    entities.extend((0..2500).map(|row| DynamicEntity::new("many", format!("{row:06}")).with("I", row).with("S", "x")));
    entities
}

async fn filled(fixture: &Fixture, name: &str) -> Table {
    let table = fixture.table(name);
    table.create().await.expect("created");
    let operations = entities().into_iter().map(|entity| BulkOperation::insert(&entity).expect("an entity"));
    assert!(table.bulk().submit(operations).await.is_success());
    table
}

#[tokio::test(flavor = "multi_thread")]
async fn every_value_and_key_survives_every_format() {
    let fixture = Fixture::new().await;
    let expected = rows(&filled(&fixture, "Source").await).await;
    let formats: &[&str] = if cfg!(feature = "parquet") { &["csv", "jsonl", "parquet"] } else { &["csv", "jsonl"] };
    for format in formats {
        let path = fixture.path(&format!("out.{format}")).display().to_string();
        let safe: &[&str] = if *format == "csv" { &["--formula-safe"] } else { &[] };
        fixture.run(&[&["export", "Source", "--to", &path], safe].concat()).await.expect("exported");
        let copy = format!("Copy{format}");
        fixture.run(&[&["import", &copy, &path], safe].concat()).await.expect("imported");
        assert_eq!(rows(&fixture.table(&copy)).await, expected, "{format}");
    }
    let left: Vec<_> = fs::read_dir(fixture.folder.path()).expect("a directory").collect();
    assert_eq!(left.len(), formats.len(), "no state, no refused rows, no temporary files: {left:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn filters_selections_and_all_tables() {
    let fixture = Fixture::new().await;
    filled(&fixture, "Source").await;
    let path = fixture.path("some.csv");
    let to = path.display().to_string();
    let some = ["--filter", "PartitionKey eq 'many' and I lt 3", "--select", "I", "--no-types", "--parallel", "1"];
    fixture.run(&[&["export", "Source", "--to", &to][..], &some].concat()).await.expect("exported");
    let text = fs::read_to_string(&path).expect("a file");
    let lines: Vec<_> = text.lines().collect();
    assert_eq!(lines[0], "PartitionKey,RowKey,Timestamp,I");
    assert!(lines[1].starts_with("many,000000,20") && lines[1].ends_with("Z,0"), "{}", lines[1]);
    assert_eq!(lines.len(), 4);

    fixture.table("Empty").create().await.expect("created");
    let all = fixture.path("all").display().to_string();
    fixture.run(&["export", "--all", "--to", &all]).await.expect("exported");
    let lines = |name: &str| fs::read_to_string(Path::new(&all).join(name)).expect("a file").lines().count();
    assert_eq!((lines("Source.jsonl"), lines("Empty.jsonl")), (entities().len(), 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_come_from_templates_and_types_from_the_values() {
    let fixture = Fixture::new().await;
    let csv = fixture.write(
        "people.csv",
        "id,country,First Name,zip,age,joined\r\n7,DE,Jörg,01234,41,2024-02-03\r\n8,DE,\"Ana, B.\",00001,,\r\n",
    );
    let keys = ["--partition-key", "{country}", "--row-key", "{id:08}"];
    let dry = [&["import", "People", &csv, "--dry-run"][..], &keys].concat();
    fixture.run(&dry).await.expect("shown");
    assert!(fixture.table("People").get::<DynamicEntity>("DE", "00000007").await.is_err(), "nothing was written");
    fixture.run(&[&["import", "People", &csv][..], &keys].concat()).await.expect("imported");
    let read = |row: &'static str| {
        let table = fixture.table("People");
        async move { table.get::<DynamicEntity>("DE", row).await.expect("an answer").expect("an entity") }
    };
    let first = read("00000007").await;
    let value = |name: &str| first.value(name).cloned();
    assert_eq!(value("First_Name"), Some(Value::from("Jörg")));
    assert_eq!(value("zip"), Some(Value::from("01234")));
    assert_eq!(value("age"), Some(Value::Int32(41)));
    assert_eq!(value("joined"), Some(Value::DateTime("2024-02-03".parse().expect("a time"))));
    assert_eq!(
        read("00000008").await.properties().map(|(name, _)| name).collect::<Vec<_>>(),
        ["First_Name", "country", "id", "zip"]
    );

    let schema = fixture.write("schema.json", r#"{"age": "Double", "zip": null}"#);
    let typed = [&["import", "Typed", &csv, "--schema", &schema][..], &keys].concat();
    fixture.run(&typed).await.expect("imported");
    let first = fixture.table("Typed").get::<DynamicEntity>("DE", "00000007").await.expect("an answer").expect("one");
    assert_eq!((first.value("age"), first.value("zip")), (Some(&Value::Double(41.0)), None));
}

#[tokio::test(flavor = "multi_thread")]
async fn refused_rows_are_named_and_the_others_written() {
    let fixture = Fixture::new().await;
    let table = fixture.table("Tab");
    table.create().await.expect("created");
    table.insert(&DynamicEntity::new("p", "000150").with("Old", true)).await.expect("inserted");
    let mut csv = "PartitionKey,RowKey,Text\n".to_owned();
    for row in 0..300 {
        let text = if row == 20 { "x".repeat(40_000) } else { row.to_string() };
        let key = if row == 30 { "a/b".to_owned() } else { format!("{row:06}") };
        csv += &format!("p,{key},{text}\n");
    }
    let path = fixture.write("t.csv", csv);
    let error = fixture.run(&["import", "Tab", &path]).await.expect_err("refused rows");
    assert_eq!(error.exit_code(), 5);
    let refused = fs::read_to_string(fixture.path("t.csv.refused.jsonl")).expect("a file");
    let mut lines: Vec<(u64, String)> = refused
        .lines()
        .map(|line| {
            let line: serde_json::Value = serde_json::from_str(line).expect("JSON");
            (line["line"].as_u64().expect("a line"), line["reason"].as_str().expect("a reason").to_owned())
        })
        .collect();
    lines.sort();
    assert_eq!(lines.iter().map(|(line, _)| *line).collect::<Vec<_>>(), [22, 32, 152]);
    assert!(lines[0].1.contains("at most 64 KiB"), "{}", lines[0].1);
    assert!(lines[1].1.contains("RowKey 'a/b'"), "{}", lines[1].1);
    assert!(lines[2].1.starts_with("409 EntityAlreadyExists: "), "{}", lines[2].1);
    assert_eq!(rows(&table).await.len(), 298);
    assert!(table.get::<DynamicEntity>("p", "000150").await.expect("an answer").expect("one").value("Old").is_some());

    let error = fixture.run(&["import", "Tab", &path, "--mode", "merge"]).await.expect_err("refused rows");
    assert_eq!(error.exit_code(), 5);
    let merged = table.get::<DynamicEntity>("p", "000150").await.expect("an answer").expect("one");
    assert_eq!(merged.properties().len(), 2);
    let error = fixture.run(&["import", "Tab", &path, "--mode", "replace"]).await.expect_err("refused rows");
    assert_eq!(error.exit_code(), 5);
    let replaced = table.get::<DynamicEntity>("p", "000150").await.expect("an answer").expect("one");
    assert_eq!(replaced.properties().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_last_of_rows_with_equal_keys_stays() {
    let fixture = Fixture::new().await;
    let rows: String = (0..500).map(|row| format!("p,{},{row}\n", row % 50)).collect();
    let path = fixture.write("t.csv", format!("PartitionKey,RowKey,N\n{rows}"));
    fixture.run(&["import", "Tab", &path, "--mode", "replace"]).await.expect("imported");
    let entities: Vec<DynamicEntity> = fixture.table("Tab").query().stream().try_collect().await.expect("entities");
    assert_eq!(entities.len(), 50);
    for entity in entities {
        let row: i32 = entity.row_key.parse().expect("a number");
        assert_eq!(entity.value("N"), Some(&Value::Int32(450 + row)));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn files_of_azcopy_are_read_by_their_manifest() {
    let fixture = Fixture::new().await;
    let manifest = fixture.write("acct_Tab_2020.manifest", "{}");
    let entity = |row: u32| {
        format!(
            r#"{{"PartitionKey":"p","RowKey":"{row}","Timestamp@odata.type":"Edm.DateTime","Timestamp":"2020-01-01T00:00:00Z","N@odata.type":"Edm.Int64","N":"{row}"}}"#
        )
    };
    fixture.write("acct_Tab_2020_AB12.json", format!("{{\"value\":[{},{}]}}", entity(1), entity(2)));
    fixture.write("acct_Tab_2020_CD34.json", format!("[{}]", entity(3)));
    fixture.run(&["import", "Tab", &manifest]).await.expect("imported");
    let expected: Vec<_> = (1..4).map(|row| format!("\"p\" \"{row}\" [\"N=Int64({row})\"]")).collect();
    assert_eq!(rows(&fixture.table("Tab")).await, expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_usage_says_what_was_expected() {
    let fixture = Fixture::new().await;
    let csv = fixture.write("t.csv", "id,name\n1,x\n");
    let odd = fixture.write("t.odd", "");
    let wide = fixture.write("t.jsonl", "\u{0}");
    for (arguments, expected) in [
        (&["export"][..], "TABLE"),
        (&["export", "Tab", "--to", "x.odd"], "expected --format"),
        (&["export", "Tab", "--to", "ftp://x/y"], "s3://, az:// or gs://"),
        (&["export", "--all"], "--to"),
        (&["export", "--all", "--to", "-"], "--all needs a directory"),
        (&["export", "Tab", "--format", "jsonl", "--no-types"], "--format csv"),
        (&["import", "Tab", &csv], "expected a column 'PartitionKey'"),
        (&["import", "Tab", &odd], "expected --format"),
        (&["import", "Tab", &csv, "--row-key", "{id:8}"], "expected a width"),
        (&["import", "Tab", "none.csv"], "none.csv"),
        (&["import", "Tab", &csv, "--schema", &wide], "t.jsonl"),
    ] {
        let error = fixture.run(arguments).await.expect_err("refused").to_string();
        assert!(error.contains(expected), "{arguments:?}: {error}");
    }
    let error = fixture.run(&["export", "Missing", "--to", &fixture.path("x.csv").display().to_string()]).await;
    assert_eq!(error.expect_err("refused").exit_code(), 3);
    assert!(!fixture.path("x.csv").exists());
}
