//! What was copied, as a table for people.

use larimar_engine::SpaceKind;
use larimar_engine::migration::{Part, PartReport};
use std::fmt::Write;

/// The parts with their items, bytes and checksums, and the sums.
pub(super) fn table(reports: &[PartReport]) -> String {
    let heading = ["kind", "name", "items", "bytes", "checksum"].map(str::to_owned);
    let (mut items, mut bytes) = (0, 0);
    let mut lines = vec![heading];
    for PartReport { part, digest } in reports {
        items += digest.items;
        bytes += digest.bytes;
        let (kind, name) = match part {
            Part::Settings { account } => ("settings", account.clone()),
            Part::Space { kind: SpaceKind::Table, account, name } => ("table", format!("{account}/{name}")),
            Part::Space { kind: SpaceKind::Queue, account, name } => ("queue", format!("{account}/{name}")),
            Part::Space { kind: SpaceKind::Container, account, name } => ("container", format!("{account}/{name}")),
        };
        let figures = [digest.items.to_string(), digest.bytes.to_string(), digest.checksum.to_string()];
        let [items, bytes, checksum] = figures;
        lines.push([kind.to_owned(), name, items, bytes, checksum]);
    }
    lines.push(["total".to_owned(), String::new(), items.to_string(), bytes.to_string(), String::new()]);
    let width = |column: usize| lines.iter().map(|line| line[column].chars().count()).max().unwrap_or(0);
    let [first, second, third, fourth] = [width(0), width(1), width(2), width(3)];
    let mut text = String::new();
    for [kind, name, items, bytes, checksum] in &lines {
        let line = format!("{kind:<first$}  {name:<second$}  {items:>third$}  {bytes:>fourth$}  {checksum}");
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
        let report = |part, items, bytes| {
            let digest = Digest { items, bytes, checksum: Checksum([0xab; 32]) };
            PartReport { part, digest }
        };
        let space = |kind, name: &str| Part::Space { kind, account: "shop".into(), name: name.into() };
        let reports = [
            report(Part::Settings { account: "shop".into() }, 1, 20),
            report(space(SpaceKind::Table, "orders"), 1000, 99_980),
            report(space(SpaceKind::Queue, "mail"), 2, 30),
            report(space(SpaceKind::Container, "photos"), 3, 4_000_000),
        ];
        let checksum = "ab".repeat(32);
        let expected = format!(
            "kind       name         items    bytes  checksum\n\
             settings   shop             1       20  {checksum}\n\
             table      shop/orders   1000    99980  {checksum}\n\
             queue      shop/mail        2       30  {checksum}\n\
             container  shop/photos      3  4000000  {checksum}\n\
             total                    1006  4100030\n"
        );
        assert_eq!(table(&reports), expected);
    }
}
