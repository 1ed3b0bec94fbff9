//! What is shown of a design.

use crate::access::{Access, Kind};
use crate::heat::{self, Costed};
use crate::key::Part;
use crate::layout::{Layout, Role};
use crate::model::Model;
use crate::value::part_text;
use crate::writes::{self, Consistency};
use serde::Serialize;

/// A pattern of the table design guide, by its number in `docs/guide.md`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[expect(missing_docs, reason = "the numbers of the guide")]
pub enum Pattern {
    T1,
    T2,
    T3,
    T4,
    T5,
    T6,
    T7,
    T8,
    T9,
    T10,
    T11,
    T12,
    T13,
    R1,
}

impl Pattern {
    /// What the guide calls it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::T1 => "secondary index within the partition",
            Self::T2 => "secondary index in other partitions",
            Self::T3 => "eventually consistent transactions",
            Self::T4 => "index entities",
            Self::T5 => "denormalisation",
            Self::T6 => "compound key",
            Self::T7 => "log tail",
            Self::T8 => "a table for each period",
            Self::T9 => "data series",
            Self::T10 => "wide entities",
            Self::T11 => "large entities in blobs",
            Self::T12 => "spread keys",
            Self::T13 => "logs in blobs",
            Self::R1 => "one-to-many in one partition",
        }
    }
}

/// The designs for a description.
#[derive(Clone, Debug, Serialize)]
pub struct Proposal {
    /// The designs, the one with the least cost first.
    pub designs: Vec<Design>,
    /// How many times a query or write was compared with a structure.
    pub evaluations: u64,
}

/// A key design with its costs.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Design {
    /// What it is best at among those shown.
    pub best_at: Vec<&'static str>,
    /// The patterns that it uses.
    pub patterns: Vec<Pattern>,
    /// The structures; the first is the entity itself.
    pub structures: Vec<StructureReport>,
    /// Queries, in the order of the description.
    pub queries: Vec<QueryCost>,
    /// Writes, in the order of the description; expiry comes last.
    pub writes: Vec<WriteCost>,
    /// Partitions of the primary.
    pub partitions: f64,
    /// Rows of such a partition, on average.
    pub rows_per_partition: f64,
    /// Bytes in all.
    pub bytes: f64,
    /// Entities a second in the busiest partition.
    pub partition_entities_per_second: f64,
    /// Requests a second in all.
    pub requests_per_second: f64,
    /// Requests a second that queries and writes cost, with rows and bytes counted in.
    pub cost: f64,
    /// Why the design is as it is.
    pub reasons: Vec<String>,
    /// What to mind.
    pub warnings: Vec<String>,
    /// The design as data, for trials.
    #[serde(skip)]
    pub layout: Layout,
}

/// A structure of a design.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct StructureReport {
    /// Its table.
    pub table: String,
    /// What it is.
    pub is: &'static str,
    /// The template of its PartitionKey.
    pub partition_key: String,
    /// The template of its RowKey.
    pub row_key: String,
    /// An example of its PartitionKey.
    pub example_partition_key: String,
    /// An example of its RowKey.
    pub example_row_key: String,
    /// The properties that it has besides the keys, if not all.
    pub stores: Option<Vec<String>>,
}

/// What a query costs.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct QueryCost {
    /// Its name.
    pub name: String,
    /// How it is answered.
    #[serde(flatten)]
    pub access: Access,
    /// Whether it reads far more than it returns, often.
    pub is_wasteful: bool,
}

/// What a write costs.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct WriteCost {
    /// Its name.
    pub name: String,
    /// Requests, those of a worker included.
    pub requests: f64,
    /// Rows that are written.
    pub rows: f64,
    /// Whether everything changes at once.
    pub consistency: Consistency,
    /// Whether the transaction that is wanted is possible; none if none is wanted.
    pub is_transaction_possible: Option<bool>,
}

impl Design {
    pub(crate) fn new(model: &Model<'_>, costed: &Costed, best_at: Vec<&'static str>) -> Self {
        let layout = &costed.layout;
        let queries = model.queries.iter().zip(&costed.queries).zip(&model.description.queries);
        let queries = queries.map(|((query, access), described)| QueryCost {
            name: described.name.clone(),
            access: *access,
            is_wasteful: heat::is_wasteful(access, query.rate),
        });
        let names = model.description.writes.iter().map(|write| write.name.as_str()).chain(["expiry"]);
        let writes = names.zip(costed.writes.iter().chain(&costed.expiry)).map(|(name, write)| WriteCost {
            name: name.to_owned(),
            requests: write.requests,
            rows: write.rows,
            consistency: write.consistency,
            is_transaction_possible: write.is_transaction_possible,
        });
        let partitions = writes::partitions(model, &layout.primary().partition);
        Self {
            best_at,
            patterns: patterns(model, costed),
            structures: structures(model, layout),
            queries: queries.collect(),
            writes: writes.collect(),
            partitions,
            rows_per_partition: model.entities / partitions * layout.rows_per_entity(model),
            bytes: costed.bytes,
            partition_entities_per_second: costed.partition_heat,
            requests_per_second: costed.account_heat,
            cost: costed.total(),
            reasons: crate::explain::reasons(model, costed),
            warnings: crate::explain::warnings(model, costed),
            layout: layout.clone(),
        }
    }

    /// Whether the design uses a pattern.
    #[must_use]
    pub fn uses(&self, pattern: Pattern) -> bool {
        self.patterns.contains(&pattern)
    }
}

/// The patterns that a layout uses.
pub(crate) fn patterns(model: &Model<'_>, costed: &Costed) -> Vec<Pattern> {
    use crate::layout::Placement;
    use crate::model::Relation;
    let layout = &costed.layout;
    if layout.is_in_blobs {
        return vec![Pattern::T13];
    }
    let has = |role: Role| layout.structures.iter().any(|structure| structure.role == role);
    let parts = || layout.structures.iter().flat_map(|it| it.template.partition.iter().chain(&it.template.row));
    let compound = |it: &crate::layout::Structure| {
        let count = |parts: &[Part]| parts.iter().filter(|part| part.property().is_some()).count();
        count(&it.template.row) > 1 || count(&it.template.partition) > 1
    };
    let placed = |wanted: Placement| {
        let relations = model.relations.iter().enumerate();
        relations.filter(|(it, _)| layout.placement(model, *it) == wanted).map(|(_, it)| *it).collect::<Vec<_>>()
    };
    let together = placed(Placement::Together);
    let is_parent = |it: &Relation| matches!(it, Relation::Parent(_));
    let is_log_tail = parts().any(|part| matches!(part, Part::Inverted(property) if model.is_growing(*property)));
    let found = [
        (Pattern::T1, has(Role::Copy)),
        (Pattern::T2, has(Role::OtherCopy)),
        (Pattern::T3, costed.eventual > 0),
        (Pattern::T4, has(Role::List) || has(Role::OtherList)),
        (Pattern::T5, !placed(Placement::Inside).is_empty()),
        (Pattern::T6, layout.structures.iter().any(compound) || together.iter().any(|it| !is_parent(it))),
        (Pattern::T7, is_log_tail),
        (Pattern::T8, layout.tables.is_some()),
        (Pattern::T9, layout.packed.is_some()),
        (Pattern::T10, model.parts() > 1.0),
        (Pattern::T11, !model.large().is_empty()),
        (Pattern::T12, parts().any(|part| matches!(part, Part::Bucket(..)))),
        (Pattern::R1, together.iter().any(is_parent)),
    ];
    found.into_iter().filter_map(|(pattern, is_used)| is_used.then_some(pattern)).collect()
}

/// The texts that tell the structures of one partition apart.
pub(crate) fn tags(model: &Model<'_>, layout: &Layout) -> Vec<String> {
    let tag = |(index, structure): (usize, &crate::layout::Structure)| {
        let first = structure.template.row.iter().find_map(|part| part.property());
        let name = first.map_or("all", |property| model.name(property)).to_lowercase();
        let is_taken = |it: &crate::layout::Structure| it.template.row.iter().find_map(|part| part.property()) == first;
        let is_again = layout.structures[..index].iter().any(is_taken);
        if is_again { format!("{name}{index}") } else { name }
    };
    layout.structures.iter().enumerate().map(tag).collect()
}

/// What the table of a copy is named after: the first property of its keys that is not in the entity's partition key, and
/// a number if another copy has that already.
fn by(model: &Model<'_>, layout: &Layout, index: usize) -> String {
    let known = layout.primary().partition_properties();
    let first = |it: &crate::layout::Structure| {
        let parts = it.template.partition.iter().chain(&it.template.row);
        parts.filter_map(|part| part.property()).find(|property| !known.has(*property))
    };
    let own = first(&layout.structures[index]);
    let others = layout.structures[1..].iter().take(index.saturating_sub(1));
    let is_taken = others.into_iter().any(|it| !it.role.is_in_partition() && first(it) == own);
    let name = own.map_or("", |property| model.name(property));
    if is_taken || name.is_empty() { format!("{name}{index}") } else { name.to_owned() }
}

fn structures(model: &Model<'_>, layout: &Layout) -> Vec<StructureReport> {
    let entity: String = model.description.entity.chars().filter(char::is_ascii_alphanumeric).collect();
    if layout.is_in_blobs {
        return vec![StructureReport {
            table: format!("{}-logs (a container)", entity.to_lowercase()),
            is: "blobs",
            partition_key: "YYYY/MM/DD/hhmm/".to_owned(),
            row_key: "{number}.log".to_owned(),
            example_partition_key: "2026/01/01/0000/".to_owned(),
            example_row_key: "000001.log".to_owned(),
            stores: None,
        }];
    }
    let tags = tags(model, layout);
    let of_structure = |(index, structure): (usize, &crate::layout::Structure)| {
        let template =
            crate::key::Template { partition: structure.template.partition.clone(), row: layout.row_parts(index) };
        let example = |parts: &[Part]| {
            let texts: Vec<String> = parts.iter().map(|part| part_text(model, *part, &tags, |_| 0)).collect();
            texts.join("_")
        };
        let by = by(model, layout, index);
        let period = layout.tables.map_or("", |period| match period {
            crate::key::Period::Hour => "YYYYMMDDhh",
            crate::key::Period::Day => "YYYYMMDD",
            crate::key::Period::Month => "YYYYMM",
        });
        let table = if structure.role.is_in_partition() {
            format!("{entity}{period}")
        } else {
            format!("{entity}By{by}{period}")
        };
        let stores = structure.stores.map(|stores| {
            let besides = stores.without(structure.template.whole_properties());
            besides.iter().map(|property| model.name(property).to_owned()).collect()
        });
        StructureReport {
            table,
            is: match structure.role {
                Role::Primary => "entity",
                Role::Copy => "copy in the partition (T1)",
                Role::OtherCopy => "copy in another table (T2)",
                Role::List => "list of keys in the partition (T4)",
                Role::OtherList => "list of keys in another table (T4)",
            },
            partition_key: template.partition_text(model, &tags),
            row_key: template.row_text(model, &tags),
            example_partition_key: example(&template.partition),
            example_row_key: example(&template.row),
            stores,
        }
    };
    layout.structures.iter().enumerate().map(of_structure).collect()
}

impl QueryCost {
    /// Whether the query scans a table or a partition of more than a page.
    #[must_use]
    pub fn is_scan(&self) -> bool {
        match self.access.kind {
            Kind::TableScan => true,
            Kind::PartitionScan => {
                self.access.rows > crate::limits::PAGE_ENTITIES && self.access.rows > 2.0 * self.access.returned
            }
            _ => false,
        }
    }
}
