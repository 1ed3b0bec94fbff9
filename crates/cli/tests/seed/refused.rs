//! Seeds that cannot be used end the start with a message that names the file and the line.

use super::{folder, launch, lines, shown, tables, write};
use larimar_testkit::Launch;

/// What a server says that does not start.
fn refusal(launch: &Launch) -> String {
    match launch.try_start() {
        Ok(_) => panic!("it started"),
        Err(said) => said,
    }
}

#[test]
fn a_row_that_cannot_be_written_is_named_and_the_next_start_begins_anew() {
    let broken = format!("{}{{\"PartitionKey\":\"p\"\n{}", lines(2), lines(2));
    let twice = format!("{}{}", lines(250), lines(1));
    for (name, text, line) in [
        ("Orders.jsonl", broken.as_str(), 3),
        ("Orders.jsonl", &twice, 251),
        ("Orders.csv", "PartitionKey,RowKey,Age,Age@type\np,1,1,Edm.Int32\np,2,one,Edm.Int32\n", 3),
        ("Orders.csv", "PartitionKey,RowKey,Age\np,a/b,1\n", 2),
    ] {
        let folder = folder();
        write(&folder, "Before.jsonl", lines(3));
        write(&folder, name, text);
        let said = refusal(&launch(&folder));
        assert!(said.contains(&format!("{}: line {line}: ", shown(&folder, name))), "{said}");
        assert!(said.contains("exit status: 1"), "{said}");
        // What is there is not all, and nothing takes it for all.
        let without = Launch::new(super::EXE, folder.path().join("data"));
        if without.database().is_none() {
            let said = refusal(&without);
            assert!(said.contains("holds only a part") && said.contains("--seed"), "{said}");
        }
        std::fs::remove_file(shown(&folder, name)).expect("a file");
        std::fs::remove_file(shown(&folder, "Before.jsonl")).expect("a file");
        write(&folder, "After.jsonl", lines(2));
        if without.database().is_none() {
            let server = launch(&folder).start();
            assert_eq!(tables(&server).keys().collect::<Vec<_>>(), ["After"]);
            drop(server);
            drop(without.start());
        }
    }
}

#[test]
fn what_is_not_a_table_is_refused_before_anything_is_opened() {
    for (name, reason) in [
        ("orders.cvs", "orders.cvs: expected files TABLE.csv, TABLE.jsonl or TABLE.parquet"),
        ("no-table.csv", "no-table.csv: expected files"),
        ("nobody/Orders.csv", "nobody: expected directories named after accounts of the server (devstoreaccount1)"),
        ("devstoreaccount1/Orders.csv", "expected one file for each table"),
    ] {
        let folder = folder();
        write(&folder, "Orders.jsonl", lines(1));
        write(&folder, name, "");
        let said = refusal(&launch(&folder));
        assert!(said.contains("setting seed (flag --seed): ") && said.contains(reason), "{said}");
        assert!(said.contains("exit status: 2"), "{said}");
        assert!(!folder.path().join("data").exists(), "nothing was opened");
    }
    let folder = folder();
    let said = refusal(&launch(&folder));
    assert!(said.contains("setting seed (flag --seed): ") && said.contains("files: No such file"), "{said}");
    assert!(said.contains("exit status: 2"), "{said}");
}

#[cfg(not(windows))]
#[test]
fn a_file_that_is_not_of_its_format_is_named() {
    for (name, text, reason) in [
        ("Orders.parquet", "no Parquet at all", "Orders.parquet: "),
        ("Orders.csv", "Name,Age\nx,1\n", "Orders.csv: "),
        ("Orders.csv", "\u{feff}", "Orders.csv: "),
    ] {
        let folder = folder();
        write(&folder, name, text);
        let said = refusal(&launch(&folder).argument("--durability=memory"));
        assert!(said.contains(reason), "{said}");
    }
}
