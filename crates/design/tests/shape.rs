//! Designs as tests compare them: keys as lists of parts with the names of properties.

use larimar_design::{Description, Design, Part, Proposal, Role, Structure, examples, propose};

/// A description, and what is proposed for it.
pub(crate) struct Proposed {
    pub(crate) description: Description,
    pub(crate) proposal: Proposal,
}

/// What is proposed for an example.
pub(crate) fn example(name: &str) -> Proposed {
    changed(name, |_| {})
}

/// What is proposed for an example with a change.
pub(crate) fn changed(name: &str, change: impl FnOnce(&mut Description)) -> Proposed {
    let mut description = described(name);
    change(&mut description);
    let proposal = propose(&description).expect(name);
    Proposed { description, proposal }
}

pub(crate) fn described(name: &str) -> Description {
    Description::from_toml(examples::find(name).expect(name).text).expect(name)
}

impl Proposed {
    /// The first design that the test looks for.
    pub(crate) fn find(&self, what: &str, is_it: impl Fn(&Design) -> bool) -> &Design {
        let found = self.proposal.designs.iter().find(|design| is_it(design));
        found.unwrap_or_else(|| panic!("no design {what} among {:#?}", self.proposal.designs))
    }

    /// The parts of a partition key.
    pub(crate) fn partition(&self, structure: &Structure) -> Vec<String> {
        structure.template.partition.iter().map(|part| self.part(*part)).collect()
    }

    /// The parts of a row key, without tags.
    pub(crate) fn row(&self, structure: &Structure) -> Vec<String> {
        structure.template.row.iter().map(|part| self.part(*part)).collect()
    }

    /// Whether the entity itself has these keys; of the row key the first parts count.
    pub(crate) fn has_primary(&self, design: &Design, partition: &[&str], row: &[&str]) -> bool {
        self.has_keys(&design.layout.structures[0], partition, row)
    }

    /// Whether a structure of this role has these keys.
    pub(crate) fn has(&self, design: &Design, role: Role, partition: &[&str], row: &[&str]) -> bool {
        design.layout.structures.iter().any(|it| it.role == role && self.has_keys(it, partition, row))
    }

    fn has_keys(&self, structure: &Structure, partition: &[&str], row: &[&str]) -> bool {
        self.partition(structure) == partition
            && self.row(structure).iter().zip(row).filter(|(a, b)| a == b).count() == row.len()
    }

    fn part(&self, part: Part) -> String {
        let name = |property: u8| match self.description.properties.get(usize::from(property)) {
            Some(property) => property.name.clone(),
            None => "id".to_owned(),
        };
        match part {
            Part::Fixed => "fixed".to_owned(),
            Part::Tag(_) => "tag".to_owned(),
            Part::Value(property) => name(property),
            Part::Inverted(property) => format!("-{}", name(property)),
            Part::Period(property, period) => format!("{} of {}", period.name(), name(property)),
            Part::Bucket(property, _) => format!("hash of {}", name(property)),
        }
    }
}
