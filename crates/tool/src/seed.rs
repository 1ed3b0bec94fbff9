//! The files that `larimar serve --seed DIRECTORY` fills an empty store with: those of `larimar export --all`.
//!
//! `DIRECTORY/TABLE.csv`, `.jsonl` or `.parquet` is a table of the server's first account, `DIRECTORY/ACCOUNT/TABLE.csv` one of
//! the account that the directory is named after. Every row has to be good: the first that is not ends the filling.

use crate::format::Format;
use crate::{Error, Result, import};
use larimar_client::Account;
use larimar_model::TableName;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// A file with the rows of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeedFile {
    /// The account that it is for.
    pub account: String,
    /// The table that it fills.
    pub table: TableName,
    path: PathBuf,
    format: Format,
}

impl SeedFile {
    /// The file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Creates the table and writes the rows of the file to it. Logs how far it is. Returns the number of rows.
    ///
    /// # Errors
    /// A row or a file that cannot be written, named with its line.
    pub async fn import(&self, connection_string: &str) -> Result<u64> {
        let account = Account::builder().connection_string(connection_string).build()?;
        import::import_whole(account.table(self.table.as_str()), &self.path, self.format).await
    }
}

/// The files of a directory for a server with these accounts, in the order of their names.
///
/// # Errors
/// A directory that cannot be read, and entries that are not files of tables.
pub fn find(directory: &Path, accounts: &[&str]) -> Result<Vec<SeedFile>> {
    let mut files = Vec::new();
    for path in entries(directory)? {
        let name = name_of(&path);
        if !path.is_dir() {
            files.push(of_table(&path, accounts.first().copied().unwrap_or_default())?);
        } else if accounts.contains(&name) {
            for file in entries(&path)? {
                files.push(of_table(&file, name)?);
            }
        } else {
            let expected = format!("expected directories named after accounts of the server ({})", accounts.join(", "));
            return Err(Error::Usage(format!("{}: {expected}", path.display())));
        }
    }
    let mut files: Vec<SeedFile> = files.into_iter().flatten().collect();
    files.sort_by(|one, other| (&one.account, &one.path).cmp(&(&other.account, &other.path)));
    check_tables(&files)?;
    Ok(files)
}

/// The entries of a directory but for hidden ones.
fn entries(directory: &Path) -> Result<Vec<PathBuf>> {
    let failed = |error| Error::io(directory.display(), error);
    let mut paths = Vec::new();
    for entry in std::fs::read_dir(directory).map_err(failed)? {
        paths.push(entry.map_err(failed)?.path());
        if paths.len() > FILES_MAX {
            return Err(Error::Usage(format!("{}: expected at most {FILES_MAX} files", directory.display())));
        }
    }
    paths.retain(|path| !name_of(path).starts_with('.'));
    Ok(paths)
}

/// The file of a table; none if it has the types of the CSV file beside it, which the import reads.
fn of_table(path: &Path, account: &str) -> Result<Option<SeedFile>> {
    let name = name_of(path);
    if name.strip_suffix(".schema.csv").is_some_and(|stem| path.with_file_name(format!("{stem}.csv")).is_file()) {
        return Ok(None);
    }
    let expected = "expected files TABLE.csv, TABLE.jsonl or TABLE.parquet, as `larimar export --all` writes them";
    let refused = |reason: &dyn std::fmt::Display| Error::Usage(format!("{}: {reason}", path.display()));
    let (Some(format), true) = (Format::from_name(name), path.is_file()) else { return Err(refused(&expected)) };
    let table = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
    let table: TableName = table.parse().map_err(|error| refused(&format!("{expected}: {error}")))?;
    if table.is_system() {
        return Err(refused(&"expected a table that clients can create, found one of storage analytics"));
    }
    Ok(Some(SeedFile { account: account.to_owned(), table, path: path.to_owned(), format }))
}

/// Refuses two files for one table: names of tables have no case.
fn check_tables(files: &[SeedFile]) -> Result<()> {
    let mut tables: BTreeMap<(&str, String), &Path> = BTreeMap::new();
    for file in files {
        let key = (file.account.as_str(), file.table.to_folded());
        if let Some(other) = tables.insert(key, &file.path) {
            let (one, other) = (other.display(), file.path.display());
            return Err(Error::Usage(format!("expected one file for each table, found {one} and {other}")));
        }
    }
    Ok(())
}

/// The name of a file; empty if it is not Unicode.
fn name_of(path: &Path) -> &str {
    path.file_name().and_then(|name| name.to_str()).unwrap_or_default()
}

/// Files of a directory; their tables are listed in one record of the store.
const FILES_MAX: usize = 10_000;

#[cfg(test)]
mod tests {
    use super::*;

    fn directory(names: &[&str]) -> tempfile::TempDir {
        let directory = tempfile::tempdir().expect("a directory");
        for name in names {
            let path = directory.path().join(name);
            std::fs::create_dir_all(path.parent().expect("a parent")).expect("a directory");
            std::fs::write(path, "").expect("a file");
        }
        directory
    }

    #[test]
    fn files_are_tables_of_the_first_account_or_of_the_one_that_is_named() {
        let names = [
            "bananas.parquet",
            "Apples.csv",
            "Apples.schema.csv",
            "two/bananas.jsonl",
            "two/Pears.json",
            ".git/x",
            ".gitkeep",
        ];
        let directory = directory(&names);
        let found = find(directory.path(), &["one", "two"]).expect("files");
        let found: Vec<_> =
            found.iter().map(|file| (file.account.as_str(), file.table.as_str(), file.format)).collect();
        assert_eq!(
            found,
            [
                ("one", "Apples", Format::Csv),
                ("one", "bananas", Format::Parquet),
                ("two", "Pears", Format::JsonLines),
                ("two", "bananas", Format::JsonLines),
            ]
        );
        assert_eq!(find(self::directory(&[]).path(), &["one"]).expect("no files"), []);
    }

    #[test]
    fn everything_else_is_refused_by_name() {
        for (names, word) in [
            (vec!["orders.cvs"], "orders.cvs: expected files TABLE.csv"),
            (vec!["orders"], "orders: expected files"),
            (vec!["orders.csv.import-state"], "orders.csv.import-state"),
            (vec!["orders.schema.csv"], "orders.schema.csv"),
            (vec!["1st.csv"], "1st.csv"),
            (vec!["$MetricsX.csv"], "$MetricsX.csv: expected a table that clients can create"),
            (vec!["one/deeper/orders.csv"], "deeper: expected files"),
            (vec!["orders.csv", "Orders.jsonl"], "one file for each table"),
            (vec!["orders.csv", "one/orders.csv"], "one file for each table"),
            (vec!["three/orders.csv"], "three: expected directories named after accounts of the server (one, two)"),
        ] {
            let directory = directory(&names);
            let error = find(directory.path(), &["one", "two"]).expect_err("refused").to_string();
            assert!(error.contains(word), "{error}");
        }
        let error = find(Path::new("/no/such/directory"), &["one"]).expect_err("missing").to_string();
        assert!(error.contains("/no/such/directory"), "{error}");
    }
}
