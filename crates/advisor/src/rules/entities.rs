//! Entities that come near the limits of the service.

use super::{cost, figure, finding};
use crate::finding::{Finding, Severity, Work};
use crate::kind::FindingKind;
use crate::report::TableReport;

pub(super) fn findings(table: &TableReport) -> impl Iterator<Item = Finding> {
    large(table).into_iter().chain(wide(table))
}

fn large(table: &TableReport) -> Option<Finding> {
    let bytes = table.entities.bytes_max;
    if bytes < BYTES_MIN {
        return None;
    }
    let sizes = table.entities.by_size.iter().filter(|size| size.bytes_below > BYTES_MIN);
    let entities = sizes.fold(0_u64, |sum, size| sum.saturating_add(size.entities));
    Some(Finding {
        summary: format!(
            "the largest entity has {bytes} stored bytes; the service takes 1 MiB, in which each character of a text \
             counts 2 bytes"
        ),
        evidence: vec![figure("bytes of the largest entity", bytes), figure("entities of at least 512 KiB", entities)],
        advice: "store the large value as a blob, and its address in the entity".to_owned(),
        cost: cost("a read of the entity with its value", Work::new(1, 1), Work::new(2, 1)),
        ..finding(FindingKind::LargeEntity, Severity::Warning, table)
    })
}

fn wide(table: &TableReport) -> Option<Finding> {
    let properties = table.entities.properties_max;
    if properties < PROPERTIES_MIN {
        return None;
    }
    let rows = properties.div_ceil(PROPERTIES_HALF);
    Some(Finding {
        summary: format!("an entity has {properties} properties, of the 252 that the service takes"),
        evidence: vec![figure("properties of the widest entity, of every eighth", properties)],
        advice: "divide the entity into several with RowKeys that begin alike, and write them in one transaction"
            .to_owned(),
        cost: cost("a write of the entity", Work::new(1, 1), Work::new(1, rows)),
        ..finding(FindingKind::WideEntity, Severity::Warning, table)
    })
}

/// Half of the service's limit: as text, these are 1 MiB as the service counts.
const BYTES_MIN: u64 = 512 << 10;
/// Four fifths of the service's limit.
/// The patterns library fills the parts of a wide entity with up to 240 properties and two of its own: that is no fault.
const PROPERTIES_MIN: u64 = 243;
const PROPERTIES_HALF: u64 = 126;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::{EntitiesReport, SizeReport};

    fn kinds(bytes_max: u64, properties_max: u64) -> Vec<FindingKind> {
        let by_size =
            vec![SizeReport { bytes_below: 1024, entities: 9 }, SizeReport { bytes_below: 1 << 20, entities: 2 }];
        let entities = EntitiesReport { bytes_max, properties_max, by_size };
        let table = TableReport { entities, ..TableReport::default() };
        findings(&table).map(|finding| finding.id).collect()
    }

    #[test]
    fn entities_near_the_limits_are_found() {
        assert_eq!(kinds(524_288, 243), [FindingKind::LargeEntity, FindingKind::WideEntity]);
        assert_eq!(kinds(524_287, 242), []);
        assert_eq!(kinds(1000, 252), [FindingKind::WideEntity]);
    }
}
