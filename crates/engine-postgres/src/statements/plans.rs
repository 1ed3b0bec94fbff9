//! The plan of every statement, also under wrong statistics: a statement reads what it returns or changes, and not the
//! whole partition or queue.
//!
//! Each is run by `EXPLAIN (ANALYZE)` in tables with 20,000 rows in one partition, in one queue and in one account, and
//! rolled back. Rows are counted where they are read; pages show index entries that are passed over.

use super::*;
use crate::connection::Connection;
use crate::connections::Connections;
use crate::core::LOCK_TIMEOUT;
use crate::schema;
use crate::settings::Settings;
use larimar_testkit::postgres::Cluster;
use std::sync::Arc;
use tokio_postgres::SimpleQueryMessage;

const ROWS: u64 = 20_000;
/// Pages of an index on the way to a row, and for a row that is written.
const PAGES_PER_ROW: u64 = 12;
const PAGES_FREE: u64 = 40;

/// Every statement.
const ALL: [&[Sql]; 8] =
    [backup::ALL, entities::ALL, jobs::ALL, messages::ALL, pages::ALL, spaces::ALL, system::ALL, transactions::ALL];

/// Statistics that the planner may have, each with the statement that sets them.
const STATISTICS: [(&str, &str); 5] = [
    ("the table had one row", "UPDATE pg_class SET reltuples = 1, relpages = 1 WHERE relnamespace = larimar_here()"),
    ("pages are empty", "UPDATE pg_class SET reltuples = 1, relpages = 9999 WHERE relnamespace = larimar_here()"),
    (
        "analysed while empty",
        "DELETE FROM pg_statistic USING pg_class WHERE starelid = oid AND relnamespace = larimar_here(); \
         UPDATE pg_class SET reltuples = 0, relpages = 0 WHERE relnamespace = larimar_here()",
    ),
    ("never analysed", "UPDATE pg_class SET reltuples = -1, relpages = 0 WHERE relnamespace = larimar_here()"),
    ("true", "ANALYZE larimar_entity, larimar_message, larimar_space, larimar_purge"),
];

/// Creates tables with ten rows each and analyses them; more rows follow.
const TABLES: &str = "\
    ALTER TABLE larimar_entity SET (autovacuum_enabled = off); \
    ALTER TABLE larimar_message SET (autovacuum_enabled = off); \
    ALTER TABLE larimar_space SET (autovacuum_enabled = off); \
    CREATE FUNCTION larimar_here() RETURNS oid LANGUAGE sql AS 'SELECT current_schema()::regnamespace::oid'; \
    CREATE FUNCTION larimar_fill(first int8, last int8) RETURNS void LANGUAGE sql AS $$ \
    INSERT INTO larimar_space (account, kind, name, id, tok, meta) \
    SELECT '\\x6d', 1, decode(lpad(to_hex(n), 8, '0'), 'hex'), n + 1000, 0, '' FROM generate_series(first, last) AS n; \
    INSERT INTO larimar_entity (pk, rk, ver, tok, body) \
    SELECT '\\x05', decode(lpad(to_hex(n), 8, '0'), 'hex'), 1, 1, '\\x01' FROM generate_series(first, last) AS n; \
    INSERT INTO larimar_message (q, id, vis, exp, deq, pop, ins, body) \
    SELECT 7, decode(lpad(to_hex(n), 32, '0'), 'hex'), n, 3155378975999999999, 0, 1, 1, '\\x01' \
    FROM generate_series(first, last) AS n $$; \
    INSERT INTO larimar_space (account, kind, name, id, tok, meta) \
    VALUES ('\\x61', 1, '\\x05', 5, 0, ''), ('\\x61', 2, '\\x07', 7, 0, ''); \
    INSERT INTO larimar_message (q, id, vis, exp, deq, pop, ins, body) \
    SELECT 8, decode(lpad(to_hex(n), 32, '0'), 'hex'), n, 1, 0, 1, 1, '\\x01' FROM generate_series(1, 5) AS n; \
    INSERT INTO larimar_purge (id, since) SELECT n, 1 FROM generate_series(1, 5) AS n; \
    SELECT setval('larimar_space_id', 100000); \
    SELECT larimar_fill(1, 10); \
    ANALYZE larimar_entity, larimar_message, larimar_space, larimar_purge; ";

#[tokio::test]
async fn a_statement_reads_what_it_returns_whatever_the_statistics_say() {
    let settings = Settings::new(Cluster::shared().fresh_url());
    let connection = Connection::open(
        &settings.target().expect("a URL"),
        LOCK_TIMEOUT,
        &Arc::default(),
        Connections::default().count(),
    )
    .await
    .expect("a connection");
    schema::prepare(&connection, settings.dialect).await.expect("the tables");
    connection.run(TABLES).await.expect("tables with few rows");
    connection.run(&format!("SELECT larimar_fill(11, {ROWS})")).await.expect("tables with many rows");
    let (mut wrong, mut first) = (Vec::new(), None);
    for (statistics, make) in STATISTICS {
        connection.run(make).await.expect("other statistics");
        for mode in ["force_generic_plan", "force_custom_plan"] {
            connection.run(&format!("SET plan_cache_mode = {mode}")).await.expect("a setting");
            for Sql { name, text } in ALL.iter().copied().flatten() {
                let Asked { arguments, rows } = Asked::of(name);
                let plan = plan(&connection, name, text, &arguments).await;
                let read = Read::of(&plan["Plan"]);
                if read.rows > rows || read.pages > rows * PAGES_PER_ROW + PAGES_FREE {
                    wrong.push(format!("{name}, {statistics}, {mode}: {read:?} instead of {rows} rows"));
                    first.get_or_insert(plan);
                }
            }
        }
    }
    assert!(wrong.is_empty(), "these read too much:\n{}\nthe first of them: {first:#?}", wrong.join("\n"));
}

/// Runs a statement, rolls it back, and returns its plan.
async fn plan(connection: &Connection, name: &str, sql: &str, arguments: &str) -> serde_json::Value {
    let arguments = if arguments.is_empty() { String::new() } else { format!("({arguments})") };
    let script = format!(
        "PREPARE asked AS {sql}; BEGIN; EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) EXECUTE asked{arguments}; \
         ROLLBACK; DEALLOCATE asked"
    );
    let answers = connection.client().simple_query(&script).await.unwrap_or_else(|error| panic!("{name}: {error:?}"));
    let text = answers.iter().find_map(|answer| match answer {
        SimpleQueryMessage::Row(row) => row.get(0),
        _ => None,
    });
    let plans: serde_json::Value = serde_json::from_str(text.expect("a plan")).expect("a plan as JSON");
    plans[0].clone()
}

/// What a statement has read from our tables.
#[derive(Debug, Default)]
struct Read {
    rows: u64,
    pages: u64,
}

impl Read {
    fn of(node: &serde_json::Value) -> Self {
        let number = |name: &str| node[name].as_f64().unwrap_or(0.0).ceil() as u64;
        let mut read = Self { rows: 0, pages: number("Shared Hit Blocks") + number("Shared Read Blocks") };
        let is_scan = node["Node Type"].as_str().is_some_and(|kind| kind.ends_with("Scan"));
        if is_scan && node["Relation Name"].as_str().is_some_and(|name| name.starts_with("larimar_")) {
            let each = ["Actual Rows", "Rows Removed by Filter", "Rows Removed by Index Recheck"].map(number);
            read.rows += number("Actual Loops") * each.iter().sum::<u64>();
        }
        for child in node["Plans"].as_array().into_iter().flatten() {
            // The pages of a node include those of its children.
            read.rows += Self::of(child).rows;
        }
        read
    }
}

/// A statement's arguments, and how many rows of tables it may read then.
struct Asked {
    arguments: String,
    rows: u64,
}

impl Asked {
    fn of(name: &str) -> Self {
        let asked = of_entities(name).or_else(|| of_spaces(name)).or_else(|| of_messages(name));
        let (arguments, rows) =
            asked.unwrap_or_else(|| panic!("{name} is a new statement: say here how many rows it may read"));
        Self { arguments, rows }
    }
}

fn of_entities(name: &str) -> Option<(String, u64)> {
    let pks = array(vec![PK.to_owned(); 3]);
    let (rks, new_rks) = (array(OLD.map(row).into()), array(NEW.map(row).into()));
    Some(match name {
        "GetRows" => (format!("ARRAY[0, 1, 2]::int8[], {FIVES}, {pks}, {rks}, ARRAY[5]"), 4),
        "InsertRows" => (format!("{FIVES}, {pks}, {new_rks}, {ONES}, {BYTES}, ARRAY[5]"), 1),
        "UpsertRows" => (format!("{FIVES}, {pks}, {rks}, {ONES}, {BYTES}, ARRAY[5]"), 1),
        "UpdateRows" => (format!("{FIVES}, {pks}, {rks}, {ONES}, {BYTES}, ARRAY[5], {ANY}"), 4),
        "DeleteRows" => (format!("{FIVES}, {pks}, {rks}, {ONES}, {ANY}, ARRAY[5]"), 4),
        "ConfirmRows" => (format!("{pks}, {rks}, {ONES}"), 3),
        "LockRows" | "DeleteAny" => (format!("{PK}, {rks}"), 3),
        "InsertAll" => (format!("{PK}, 1, {new_rks}, {BYTES}, 5, 3"), 1),
        "UpsertAll" => (format!("{PK}, 1, {rks}, {BYTES}, 5, 3"), 1),
        "UpdateAll" => (format!("{PK}, 1, {rks}, {BYTES}, 5, 3, {ANY}"), 4),
        "DeleteAll" | "GuardPresent" => (format!("{PK}, {rks}, {ANY}, 3"), 3),
        "RestoreRows" => (format!("5, {pks}, {rks}, {ONES}, {BYTES}"), 1),
        "Points" => (format!("3, 1000, {pks}, {rks}"), 3),
        "Tail" => (format!("3, 1000, {PK}, {}", row(7000)), 3),
        "Slice" => (format!("3, 1000, {PK}, {}, {}", row(7000), row(8000)), 3),
        "TailAndMore" => (format!("3, 1000, {PK}, {}, '\\x06'", row(7000)), 6),
        "TailAndMoreAndHead" => (format!("3, 1000, {PK}, {}, '\\x06', {}", row(7000), row(8000)), 9),
        _ => return None,
    })
}

fn of_spaces(name: &str) -> Option<(String, u64)> {
    Some(match name {
        "GuardSpace" | "HasSpace" => ("5".to_owned(), 1),
        "FindSpace" => (format!("'\\x6d', 1, {}", row(7000)), 1),
        "ListSpaces" => (format!("'\\x6d', 1, {}, 3", row(7000)), 3),
        "CreateSpace" => ("'\\x61', 1, '\\x99', 1, ''".to_owned(), 0),
        "ChangeSpace" => (format!("'\\x6d', 1, {}, 'a', 1, ''", row(7000)), 1),
        "RenameSpace" => (format!("'\\x6d', 1, {}, '\\x62', '\\x01', '', 1", row(7000)), 2),
        "DropSpace" => (format!("'\\x6d', 1, {}, NULL", row(7000)), 1),
        "ListAccounts" => (String::new(), 2),
        "TakeLease" => ("'\\x01', 1, 1".to_owned(), 1),
        "ReleaseLease" => ("'\\x01', 1".to_owned(), 1),
        "DroppedContainers" => ("'a', 'b', 1".to_owned(), 0),
        "DroppedRows" => (format!("3, '\\x05'::bytea, {}, '\\x06'", row(7000)), 6),
        "TakeDroppedContainer" => ("'a', 1, 1".to_owned(), 0),
        "DroppedSpaces" | "CountDroppedSpaces" => (String::new(), 5),
        "ForgetDroppedSpace" => ("1".to_owned(), 1),
        "LastOfSlice" => ("'\\x05', '\\x06', 2".to_owned(), 3),
        "DeletePartitions" => ("'\\x06', '\\x07'".to_owned(), 0),
        "DeletePartitionUpTo" => (format!("{PK}, {}", row(3)), 3),
        "Now" | "HasFormat" | "StoreSize" | "FreeSlots" => (String::new(), 1),
        "BackupLock" | "IsBackedUp" | "BackupMoment" => (String::new(), 0),
        "SpacesAfter" => (format!("'\\x6d', 1, {}, 3", row(7000)), 4),
        "FoundFormat" | "LockFormat" => (String::new(), 1),
        _ => return None,
    })
}

fn of_messages(name: &str) -> Option<(String, u64)> {
    let (ids, new_ids) = (array(OLD.map(id).into()), array(NEW.map(id).into()));
    Some(match name {
        "PutMessages" => (format!("{SEVENS}, {new_ids}, {ONES}, {ANY}, {ONES}, {BYTES}, ARRAY[7]"), 3),
        "ConfirmMessages" => (format!("{SEVENS}, {ids}"), 6),
        "ClaimMessages" => ("7, 3, 1, 1, 0".to_owned(), 8),
        "PeekMessages" => ("7, 3".to_owned(), 4),
        "UpdateMessage" => (format!("7, {}, 1, 100, 1, 1, NULL", id(100)), 3),
        "DeleteMessages" => (format!("7, {ids}, {ONES}, ARRAY[100, 7000, 15000]"), 7),
        "ExplainMessage" => (format!("7, {}, 1, 15000", id(15_000)), 2),
        // A count reads all messages.
        "CountMessages" => ("7".to_owned(), ROWS + 1),
        "Contents" => (format!("7, {}, 3", id(100)), 3),
        "Deliveries" => (format!("7, 100, {}, 3", id(100)), 4),
        "ReadMessages" => (format!("7, 100, {}, 3", id(100)), 4),
        "RestoreMessages" => (format!("7, {ids}, {ONES}, {ONES}, {ONES}, {ONES}, {ONES}, {BYTES}"), 1),
        "LastMessage" => ("7".to_owned(), 1),
        "ClearMessages" => (format!("7, {}, 3", id(10)), 6),
        "HasExpiredMessages" => (String::new(), 1),
        "DeleteExpiredMessages" => ("3".to_owned(), 6),
        _ => return None,
    })
}

fn row(n: u32) -> String {
    format!("'\\x{n:08x}'::bytea")
}

fn id(n: u32) -> String {
    format!("'\\x{n:032x}'::bytea")
}

fn array(parts: Vec<String>) -> String {
    format!("ARRAY[{}]", parts.join(", "))
}

/// The partition, rows that are in it, and rows that are not.
const PK: &str = "'\\x05'::bytea";
const OLD: [u32; 3] = [100, 7000, 15_000];
const NEW: [u32; 3] = [30_000, 30_001, 30_002];
/// Columns of three rows.
const BYTES: &str = "ARRAY['\\x01', '\\x02', '\\x03']::bytea[]";
const FIVES: &str = "ARRAY[5, 5, 5]::int8[]";
const SEVENS: &str = "ARRAY[7, 7, 7]::int8[]";
const ONES: &str = "ARRAY[1, 1, 1]::int8[]";
const ANY: &str = "ARRAY[-1, -1, -1]::int8[]";
