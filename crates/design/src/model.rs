//! A description that was checked, with names replaced by numbers and with the sizes that follow from it.

use crate::description::{Description, Property, Query, Related, Write, WriteKind};
use crate::error::DesignError;
use crate::limits;
use crate::text::short;
use larimar_model::EdmType;
use std::collections::BTreeSet;

/// A set of properties.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct PropertySet(u128, bool);

impl PropertySet {
    pub(crate) const fn has(self, property: u8) -> bool {
        if property as usize >= limits::PROPERTIES_MAX { self.1 } else { self.0 >> property & 1 == 1 }
    }

    pub(crate) const fn with(self, property: u8) -> Self {
        if property as usize >= limits::PROPERTIES_MAX {
            Self(self.0, true)
        } else {
            Self(self.0 | 1 << property, self.1)
        }
    }

    pub(crate) const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0, self.1 || other.1)
    }

    pub(crate) const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0, self.1 && !other.1)
    }

    pub(crate) const fn is_empty(self) -> bool {
        self.0 == 0 && !self.1
    }

    pub(crate) const fn contains(self, other: Self) -> bool {
        other.without(self).is_empty()
    }

    pub(crate) const fn meets(self, other: Self) -> bool {
        self.0 & other.0 != 0 || self.1 && other.1
    }

    pub(crate) fn iter(self) -> impl Iterator<Item = u8> {
        let mut rest = self.0;
        let numbered = std::iter::from_fn(move || {
            let property = rest.trailing_zeros();
            rest &= rest.wrapping_sub(1);
            (property < u128::BITS).then_some(property as u8)
        });
        numbered.chain(self.1.then_some(GENERATED))
    }
}

impl FromIterator<u8> for PropertySet {
    fn from_iter<I: IntoIterator<Item = u8>>(properties: I) -> Self {
        properties.into_iter().fold(Self::default(), Self::with)
    }
}

/// The number of the id that the designer adds if nothing identifies an entity.
pub(crate) const GENERATED: u8 = limits::PROPERTIES_MAX as u8;

/// A range of a query.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Range {
    pub(crate) property: u8,
    /// Which part of all entities it has.
    pub(crate) share: f64,
    /// How many days it has, if it is one of the time.
    pub(crate) days: Option<f64>,
}

/// An order of a query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Order {
    pub(crate) property: u8,
    pub(crate) is_descending: bool,
}

/// A query with numbers for names.
#[derive(Clone, Debug)]
pub(crate) struct QueryModel {
    pub(crate) equals: PropertySet,
    pub(crate) range: Option<Range>,
    pub(crate) order: Option<Order>,
    pub(crate) top: Option<f64>,
    /// Entities that match.
    pub(crate) matches: f64,
    /// The properties that are needed; all if none.
    pub(crate) returns: PropertySet,
    pub(crate) with: Vec<usize>,
    pub(crate) rate: f64,
}

impl QueryModel {
    /// A query for one entity by these properties.
    pub(crate) fn by(equals: PropertySet, rate: f64) -> Self {
        let (range, order, top, with) = (None, None, None, Vec::new());
        Self { equals, range, order, top, matches: 1.0, returns: PropertySet::default(), with, rate }
    }

    /// How many entities it returns.
    pub(crate) fn returned(&self) -> f64 {
        self.top.map_or(self.matches, |top| top.min(self.matches))
    }
}

/// A write with numbers for names.
#[derive(Clone, Debug)]
pub(crate) struct WriteModel {
    pub(crate) kind: WriteKind,
    pub(crate) of: Option<usize>,
    pub(crate) by: PropertySet,
    pub(crate) changes: PropertySet,
    pub(crate) together: Vec<usize>,
    /// Whether the entity changes with a related record.
    pub(crate) is_with_entity: bool,
    pub(crate) same: PropertySet,
    pub(crate) rate: f64,
}

/// How a related record belongs to the entity.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Relation {
    /// This many for each entity.
    Many(f64),
    /// One for each entity.
    One,
    /// One for each value of a property of the entity.
    Parent(u8),
}

/// A description that was checked.
#[derive(Clone, Debug)]
pub(crate) struct Model<'d> {
    pub(crate) description: &'d Description,
    /// Entities that the design is made for.
    pub(crate) entities: f64,
    /// Over how many days they are spread.
    pub(crate) days: f64,
    pub(crate) retention_days: Option<f64>,
    /// How many values each property has.
    distinct: Vec<f64>,
    /// Properties with values that do not fit into an entity and go to blobs (T11).
    large: PropertySet,
    /// How many physical entities the properties need (T10).
    parts: f64,
    /// Bytes of an entity without what goes to blobs.
    pub(crate) kept_bytes: f64,
    /// Expired entities a second.
    pub(crate) expiry_rate: f64,
    /// The property that is the time of an entity.
    pub(crate) time: Option<u8>,
    /// Sets of properties of which each identifies an entity; the first is the main one.
    pub(crate) identities: Vec<PropertySet>,
    /// The properties of the main identity, in the order of the description.
    pub(crate) identity: Vec<u8>,
    pub(crate) relations: Vec<Relation>,
    pub(crate) queries: Vec<QueryModel>,
    pub(crate) writes: Vec<WriteModel>,
}

impl<'d> Model<'d> {
    pub(crate) fn new(description: &'d Description) -> Result<Self, DesignError> {
        let volume = &description.volume;
        let retention_days = volume.retention_days.map(f64::from);
        let (now, growth) = (volume.entities as f64, volume.growth_per_day as f64);
        let entities = match retention_days {
            Some(days) => now.max(growth * days),
            None => now + growth * 365.0,
        };
        if entities < 1.0 {
            return Err(DesignError::invalid("volume", "expected entities or growth_per_day to be at least 1"));
        }
        if retention_days == Some(0.0) {
            return Err(DesignError::invalid("volume", "expected retention_days to be at least 1, found 0"));
        }
        let days = retention_days.unwrap_or(if growth > 0.0 { entities / growth } else { 365.0 });
        Self::sized(description, entities, days)
    }

    /// The description with another number of entities, over other days, than its volume says.
    pub(crate) fn sized(description: &'d Description, entities: f64, days: f64) -> Result<Self, DesignError> {
        check_limits(description)?;
        check_names(description)?;
        for property in &description.properties {
            check_property(property)?;
        }
        let retention_days = description.volume.retention_days.map(f64::from);
        let is_time = |property: &Property| property.growing && property.kind == EdmType::DateTime;
        let mut model = Self {
            description,
            entities,
            days,
            retention_days,
            distinct: Vec::new(),
            large: PropertySet::default(),
            parts: 1.0,
            kept_bytes: 0.0,
            expiry_rate: retention_days.map_or(0.0, |days| entities / days / 86_400.0),
            time: description.properties.iter().position(is_time).map(|index| index as u8),
            identities: Vec::new(),
            identity: Vec::new(),
            relations: Vec::new(),
            queries: Vec::new(),
            writes: Vec::new(),
        };
        model.distinct = (0..description.properties.len() as u8).map(|it| model.find_distinct(it)).collect();
        model.large = model.find_large();
        model.parts = model.find_parts();
        model.kept_bytes = model.bytes_of(Some(model.all().without(model.large)));
        model.identify()?;
        model.relations = description.related.iter().map(|it| model.relation(it)).collect::<Result<_, _>>()?;
        model.queries = description.queries.iter().map(|it| model.query(it)).collect::<Result<_, _>>()?;
        model.writes = description.writes.iter().map(|it| model.write(it)).collect::<Result<_, _>>()?;
        Ok(model)
    }

    fn identify(&mut self) -> Result<(), DesignError> {
        if !self.description.identity.is_empty() {
            self.identity = self.numbers("identity", &self.description.identity)?;
            self.identities.push(self.identity.iter().copied().collect());
        }
        for (index, property) in self.description.properties.iter().enumerate() {
            if property.unique {
                let set = PropertySet::default().with(index as u8);
                if self.identity.is_empty() {
                    self.identity.push(index as u8);
                }
                if !self.identities.contains(&set) {
                    self.identities.push(set);
                }
            }
        }
        if self.identities.is_empty() {
            self.identity.push(GENERATED);
            self.identities.push(PropertySet::default().with(GENERATED));
        }
        if let Some(wrong) = self.identity.iter().find(|property| !self.may_be_key(**property)) {
            let name = self.name(*wrong);
            return Err(DesignError::invalid(
                "identity",
                format!("expected properties that can be keys: '{name}' is binary or repeated"),
            ));
        }
        Ok(())
    }

    /// The name of a property.
    pub(crate) fn name(&self, property: u8) -> &str {
        self.property(property).map_or("id", |property| &property.name)
    }

    /// The property; none for the generated id.
    pub(crate) fn property(&self, property: u8) -> Option<&'d Property> {
        self.description.properties.get(usize::from(property))
    }

    /// The type of a property.
    pub(crate) fn kind(&self, property: u8) -> EdmType {
        self.property(property).map_or(EdmType::Guid, |property| property.kind)
    }

    /// Whether a property may be part of a key.
    pub(crate) fn may_be_key(&self, property: u8) -> bool {
        self.property(property).is_none_or(|it| it.kind != EdmType::Binary && it.repeat.is_none())
    }

    /// Whether keys can sort by a property with the greatest value first.
    pub(crate) fn can_be_inverted(&self, property: u8) -> bool {
        matches!(self.kind(property), EdmType::Int32 | EdmType::Int64 | EdmType::DateTime)
    }

    /// Whether the values of a property grow with time.
    pub(crate) fn is_growing(&self, property: u8) -> bool {
        self.property(property).is_some_and(|property| property.growing)
    }

    /// How many values a property has.
    pub(crate) fn distinct(&self, property: u8) -> f64 {
        self.distinct.get(usize::from(property)).copied().unwrap_or(self.entities)
    }

    fn find_distinct(&self, property: u8) -> f64 {
        let Some(it) = self.property(property) else { return self.entities };
        let by_type = if it.kind == EdmType::Boolean { 2.0 } else { f64::INFINITY };
        let stated = match (it.unique, it.distinct, it.every) {
            (true, ..) => self.entities,
            (_, Some(distinct), _) => distinct as f64,
            (_, None, Some(every)) => self.days / every.0,
            (_, None, None) if it.growing => self.entities,
            // A tenth of the entities, for want of a better guess.
            (_, None, None) => self.entities / 10.0,
        };
        stated.min(by_type).clamp(1.0, self.entities)
    }

    /// How many combinations of values some properties have.
    pub(crate) fn combinations(&self, properties: PropertySet) -> f64 {
        if self.identities.iter().any(|identity| properties.contains(*identity)) {
            return self.entities;
        }
        properties.iter().fold(1.0, |product: f64, property| (product * self.distinct(property)).min(self.entities))
    }

    /// Which part of the requests goes to the most common value of a property.
    pub(crate) fn most_common(&self, property: u8) -> f64 {
        let stated = self.property(property).and_then(|property| property.most_common).unwrap_or(0.0);
        stated.max(1.0 / self.distinct(property))
    }

    /// Bytes of the values of some properties, or of all.
    pub(crate) fn bytes_of(&self, properties: Option<PropertySet>) -> f64 {
        let all = self.description.properties.iter().enumerate();
        let chosen = all.filter(|(index, _)| properties.is_none_or(|set| set.has(*index as u8)));
        // What the service charges: four bytes, the keys, and for each property eight, its name and its value.
        chosen.fold(84.0, |sum, (_, property)| sum + bytes(property) * property.repeat.unwrap_or(1) as f64)
    }

    /// All properties.
    pub(crate) fn all(&self) -> PropertySet {
        (0..self.description.properties.len() as u8).collect()
    }

    /// Properties with values that do not fit into an entity and go to blobs (T11).
    pub(crate) const fn large(&self) -> PropertySet {
        self.large
    }

    /// How many physical entities the properties need (T10).
    pub(crate) const fn parts(&self) -> f64 {
        self.parts
    }

    fn find_large(&self) -> PropertySet {
        let all = self.description.properties.iter().enumerate();
        all.filter(|(_, it)| it.bytes.unwrap_or(0) > limits::PROPERTY_BYTES).map(|(index, _)| index as u8).collect()
    }

    fn find_parts(&self) -> f64 {
        let large = self.large();
        let kept = self.description.properties.iter().enumerate().filter(|(index, _)| !large.has(*index as u8));
        let set: PropertySet = kept.clone().map(|(index, _)| index as u8).collect();
        let count: u64 = kept.map(|(_, property)| property.repeat.unwrap_or(1)).sum();
        let by_count = (count as f64 / limits::ENTITY_PROPERTIES as f64).ceil();
        by_count.max((self.bytes_of(Some(set)) / limits::ENTITY_BYTES).ceil()).max(1.0)
    }

    fn number(&self, place: &str, name: &str) -> Result<u8, DesignError> {
        let position = self.description.properties.iter().position(|property| property.name == name);
        position.map(|index| index as u8).ok_or_else(|| {
            let names: Vec<&str> = self.description.properties.iter().map(|it| it.name.as_str()).take(12).collect();
            let hint = format!(": expected one of {}", names.join(", "));
            DesignError::Unknown { place: place.to_owned(), what: "property", name: short(name), hint }
        })
    }

    fn numbers(&self, place: &str, names: &[String]) -> Result<Vec<u8>, DesignError> {
        names.iter().map(|name| self.number(place, name)).collect()
    }

    fn set(&self, place: &str, names: &[String]) -> Result<PropertySet, DesignError> {
        self.numbers(place, names).map(|numbers| numbers.into_iter().collect())
    }

    fn related(&self, place: &str, names: &[String]) -> Result<Vec<usize>, DesignError> {
        let find = |name: &String| {
            let position = self.description.related.iter().position(|related| related.name == *name);
            position.ok_or_else(|| DesignError::Unknown {
                place: place.to_owned(),
                what: "related record",
                name: short(name),
                hint: String::new(),
            })
        };
        names.iter().map(find).collect()
    }

    fn relation(&self, related: &Related) -> Result<Relation, DesignError> {
        let place = format!("related '{}'", related.name);
        match (&related.per, related.count) {
            (Some(_), Some(_)) => Err(DesignError::invalid(place, "expected either count or per, found both")),
            (Some(name), None) => Ok(Relation::Parent(self.number(&place, name)?)),
            (None, Some(0)) => Err(DesignError::invalid(place, "expected count to be at least 1, found 0")),
            (None, None | Some(1)) => Ok(Relation::One),
            (None, Some(count)) => Ok(Relation::Many(count as f64)),
        }
    }

    fn query(&self, query: &Query) -> Result<QueryModel, DesignError> {
        let place = format!("query '{}'", query.name);
        let too_many = query.equals.len() > limits::EQUALITIES_MAX;
        if too_many {
            let (what, max) = ("equalities of a query", limits::EQUALITIES_MAX);
            return Err(DesignError::TooMany { what, max, found: query.equals.len() });
        }
        let equals = self.set(&place, &query.equals)?;
        let range = match &query.range {
            None => None,
            Some(range) => {
                let property = self.number(&place, &range.property)?;
                if equals.has(property) {
                    let expected = format!("expected '{}' either in equals or in range, found both", range.property);
                    return Err(DesignError::invalid(place, expected));
                }
                if range.share.is_some_and(|share| !(share > 0.0 && share <= 1.0)) {
                    return Err(DesignError::invalid(place, "expected share to be more than 0 and at most 1"));
                }
                let days = range.span.map(|span| span.0.min(self.days));
                let share = range.share.or(days.map(|days| days / self.days)).unwrap_or(0.1);
                let days = days.or((Some(property) == self.time).then_some(share * self.days));
                Some(Range { property, share, days })
            }
        };
        let order = query.order.as_ref().map(|text| {
            let name = text.strip_prefix('-').unwrap_or(text);
            Ok(Order { property: self.number(&place, name)?, is_descending: name.len() < text.len() })
        });
        if query.top == Some(0) {
            return Err(DesignError::invalid(place, "expected top to be at least 1, found 0"));
        }
        let estimate = self.entities / self.combinations(equals) * range.map_or(1.0, |range| range.share);
        Ok(QueryModel {
            equals,
            range,
            order: order.transpose()?,
            top: query.top.map(|top| top as f64),
            matches: query.results.map_or(estimate, |results| results as f64).clamp(1.0, self.entities),
            returns: self.set(&place, &query.returns)?,
            with: self.related(&place, &query.with)?,
            rate: query.rate.0,
        })
    }

    fn write(&self, write: &Write) -> Result<WriteModel, DesignError> {
        let place = format!("write '{}'", write.name);
        let of = match &write.of {
            Some(name) if *name != self.description.entity => {
                self.related(&place, std::slice::from_ref(name))?.first().copied()
            }
            _ => None,
        };
        let by = match write.by.is_empty() {
            true => self.identity.iter().copied().collect(),
            false => self.set(&place, &write.by)?,
        };
        if write.kind != WriteKind::Update && !write.changes.is_empty() {
            return Err(DesignError::invalid(place, "expected changes only with does = \"update\""));
        }
        let is_other = |name: &&String| **name != self.description.entity && Some(*name) != write.of.as_ref();
        let others: Vec<String> = write.together.iter().filter(is_other).cloned().collect();
        Ok(WriteModel {
            kind: write.kind,
            of,
            by,
            changes: self.set(&place, &write.changes)?,
            together: self.related(&place, &others)?,
            is_with_entity: of.is_some() && others.len() < write.together.len(),
            same: self.set(&place, &write.same)?,
            rate: write.rate.0,
        })
    }
}

/// Bytes of a property: eight, its name in UTF-16 and its value.
fn bytes(property: &Property) -> f64 {
    let value = property.bytes.unwrap_or(match property.kind {
        EdmType::String | EdmType::Binary => 40,
        EdmType::Int32 => 4,
        EdmType::Int64 | EdmType::Double | EdmType::DateTime => 8,
        EdmType::Boolean => 1,
        EdmType::Guid => 16,
    });
    8.0 + property.name.len() as f64 * 2.0 + value as f64
}

fn check_limits(description: &Description) -> Result<(), DesignError> {
    for (what, max, found) in [
        ("properties", limits::PROPERTIES_MAX, description.properties.len()),
        ("queries", limits::QUERIES_MAX, description.queries.len()),
        ("writes", limits::WRITES_MAX, description.writes.len()),
        ("related records", limits::RELATED_MAX, description.related.len()),
        ("properties of the identity", limits::EQUALITIES_MAX, description.identity.len()),
    ] {
        if found > max {
            return Err(DesignError::TooMany { what, max, found });
        }
    }
    Ok(())
}

/// Names are short and each is used once.
fn check_names(description: &Description) -> Result<(), DesignError> {
    let groups: [(&str, Vec<&str>); 5] = [
        ("entity", vec![&description.entity]),
        ("property", description.properties.iter().map(|it| it.name.as_str()).collect()),
        ("related", description.related.iter().map(|it| it.name.as_str()).collect()),
        ("query", description.queries.iter().map(|it| it.name.as_str()).collect()),
        ("write", description.writes.iter().map(|it| it.name.as_str()).collect()),
    ];
    for (what, names) in groups {
        let mut seen = BTreeSet::new();
        for name in names {
            let is_good = !name.is_empty() && name.chars().count() <= limits::NAME_CHARS_MAX;
            if !is_good || name.chars().any(char::is_control) {
                let expected = format!("expected a name of 1 to {} characters", limits::NAME_CHARS_MAX);
                return Err(DesignError::invalid(what, expected));
            }
            if !seen.insert(name) {
                return Err(DesignError::invalid(format!("{what} '{name}'"), "expected each name once"));
            }
        }
    }
    Ok(())
}

fn check_property(property: &Property) -> Result<(), DesignError> {
    let place = || format!("property '{}'", property.name);
    let is_identifier = property.name.chars().all(|c| c.is_alphanumeric() || c == '_')
        && property.name.starts_with(|c: char| c.is_alphabetic() || c == '_');
    if !is_identifier {
        return Err(DesignError::invalid(
            place(),
            "expected a name of letters, digits and '_' that begins with a letter",
        ));
    }
    if property.distinct == Some(0) {
        return Err(DesignError::invalid(place(), "expected distinct to be at least 1, found 0"));
    }
    if property.most_common.is_some_and(|share| !(0.0..=1.0).contains(&share)) {
        return Err(DesignError::invalid(place(), "expected most_common to be from 0 to 1"));
    }
    if property.every.is_some() && property.kind != EdmType::DateTime {
        return Err(DesignError::invalid(place(), "expected every only with type = \"datetime\""));
    }
    if property.repeat.is_some_and(|repeat| repeat == 0 || repeat > 100_000) {
        return Err(DesignError::invalid(place(), "expected repeat to be from 1 to 100000"));
    }
    let example = property.example.as_deref().unwrap_or_default();
    if example.chars().count() > limits::NAME_CHARS_MAX
        || example.chars().any(|c| c.is_control() || "/\\#?_".contains(c))
    {
        return Err(DesignError::invalid(place(), "expected an example without / \\ # ? _ and control characters"));
    }
    Ok(())
}
