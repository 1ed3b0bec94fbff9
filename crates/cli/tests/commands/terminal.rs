//! Output on a terminal, which `script` makes.

use super::Fixture;

/// What a command shows on a terminal of so many columns.
fn shown(fixture: &Fixture, columns: u16, line: &str) -> String {
    let line = format!("script -qec 'stty cols {columns} rows 24; {line}' /dev/null </dev/null");
    fixture.run(&line).replace('\r', "")
}

#[test]
fn a_table_fits_a_terminal_of_60_columns_and_sends_it_no_commands() {
    if std::process::Command::new("script").arg("--version").output().is_err() {
        eprintln!("skipped: there is no program 'script'");
        return;
    }
    let fixture = Fixture::start();
    fixture.run("larimar table create People");
    let name = "a-rather-long-name-that-does-not-fit-into-sixty-columns";
    fixture.run(&format!("larimar table put People PartitionKey=Sales RowKey=1 Name={name} Age:int32=41"));
    fixture.run(
        r#"larimar table put People '{"PartitionKey":"Sales","RowKey":"2","Name":"\u001b[31mred\u001b[0m","Age":7}'"#,
    );
    let text = shown(&fixture, 60, "larimar table query People --select RowKey,Name,Age");
    assert!(text.lines().all(|line| line.chars().count() <= 60), "{text}");
    assert!(text.contains("\\u{1b}[31mred") && !text.contains('\u{1b}'), "{text:?}");
    let text = shown(&fixture, 60, "larimar table get People Sales 1");
    assert!(text.contains("Age           Int32") && text.lines().all(|line| line.chars().count() <= 60), "{text}");
}
