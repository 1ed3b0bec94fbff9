//! What was copied, as a table for people.

use larimar_engine::migration::{Part, PartReport};
use std::fmt::Write;

/// The parts with their rows, bytes and checksums, and the sums.
pub(super) fn table(reports: &[PartReport]) -> String {
    let name = |part: &Part| match part {
        Part::Settings { account } => format!("{account} (settings)"),
        Part::Table { account, name } => format!("{account}/{name}"),
    };
    let heading = ["table", "rows", "bytes", "checksum"].map(str::to_owned);
    let (mut rows, mut bytes) = (0, 0);
    let mut lines = vec![heading];
    for PartReport { part, digest } in reports {
        rows += digest.rows;
        bytes += digest.bytes;
        let checksum = digest.checksum.to_string();
        lines.push([name(part), digest.rows.to_string(), digest.bytes.to_string(), checksum]);
    }
    lines.push(["total".to_owned(), rows.to_string(), bytes.to_string(), String::new()]);
    let width = |column: usize| lines.iter().map(|line| line[column].chars().count()).max().unwrap_or(0);
    let [first, second, third] = [width(0), width(1), width(2)];
    let mut text = String::new();
    for [name, rows, bytes, checksum] in &lines {
        let line = format!("{name:<first$}  {rows:>second$}  {bytes:>third$}  {checksum}");
        writeln!(text, "{}", line.trim_end()).expect("a string takes every write");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use larimar_engine::migration::{Checksum, Digest};

    #[test]
    fn columns_are_aligned_and_summed() {
        let digest = |rows, bytes| Digest { rows, bytes, checksum: Checksum([0xab; 32]) };
        let settings = Part::Settings { account: "shop".into() };
        let orders = Part::Table { account: "shop".into(), name: "orders".into() };
        let reports = [
            PartReport { part: settings, digest: digest(1, 20) },
            PartReport { part: orders, digest: digest(1000, 99_980) },
        ];
        let checksum = "ab".repeat(32);
        let expected = format!(
            "table            rows   bytes  checksum\n\
             shop (settings)     1      20  {checksum}\n\
             shop/orders      1000   99980  {checksum}\n\
             total            1001  100000\n"
        );
        assert_eq!(table(&reports), expected);
    }
}
