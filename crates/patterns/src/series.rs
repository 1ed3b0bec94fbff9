//! T9, data series: one entity holds all values of a day, and writing one of them is one request.
//!
//! A value each hour in an entity of its own makes 24 rows to read for a day; in the properties of one entity it is a
//! single row, and a month is one page. Merge writes the property of one hour and leaves the others alone, so no writer
//! has to read before writing.
//!
//! ```text
//! PartitionKey  RowKey     Messages_00  Messages_01  …  Messages_23
//! Sales         20260214            17            3              21
//! Sales         20260215             9                                  ← hours to come are absent
//! ```
//!
//! **Guarantees.** [`Series::record`] is one request and atomic; writers of different slots never overwrite each other,
//! and of two writers of one slot the last one wins. [`Series::read`] is one request, [`Series::range`] one for each
//! 1,000 rows.

use crate::{Error, Period, Result};
use larimar_client::{DynamicEntity, EntityError, Property, Query, Table, Timestamp, keys};
use std::marker::PhantomData;
use std::ops::Range;
use std::time::Duration;

/// What one row of a series holds, and in how many values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Resolution {
    /// A row for each hour, with 60 values.
    MinutesOfHour,
    /// A row for each day, with 24 values.
    HoursOfDay,
    /// A row for each day, with 96 values.
    QuarterHoursOfDay,
    /// A row for each month, with 31 values, of which the last ones stay empty in shorter months.
    DaysOfMonth,
}

impl Resolution {
    /// How many values a row has room for.
    #[must_use]
    pub const fn slots(self) -> usize {
        match self {
            Self::MinutesOfHour => 60,
            Self::HoursOfDay => 24,
            Self::QuarterHoursOfDay => 96,
            Self::DaysOfMonth => 31,
        }
    }

    /// The span of time of one row.
    #[must_use]
    pub const fn row(self) -> Period {
        match self {
            Self::MinutesOfHour => Period::Hour,
            Self::HoursOfDay | Self::QuarterHoursOfDay => Period::Day,
            Self::DaysOfMonth => Period::Month,
        }
    }

    /// The span of time of one value.
    #[must_use]
    pub const fn step(self) -> Duration {
        Duration::from_secs(match self {
            Self::MinutesOfHour => 60,
            Self::QuarterHoursOfDay => 15 * 60,
            Self::HoursOfDay => 60 * 60,
            Self::DaysOfMonth => 24 * 60 * 60,
        })
    }

    /// The row that a time belongs to, and the number of its value in it.
    fn place(self, time: Timestamp) -> (Timestamp, usize) {
        let time = time.clamp(Timestamp::MIN, Timestamp::MAX);
        let start = self.row().start(time);
        let slot = time.since(start).as_secs() / self.step().as_secs();
        (start, usize::try_from(slot).unwrap_or(0))
    }
}

/// A series of values in the rows of a table.
///
/// Several series can share the rows, under different names, while their values together are no more than 252.
#[derive(Debug)]
pub struct Series<T> {
    table: Table,
    name: String,
    resolution: Resolution,
    type_: PhantomData<fn() -> T>,
}

impl<T> Clone for Series<T> {
    fn clone(&self) -> Self {
        let Self { table, name, resolution, .. } = self;
        Self { table: table.clone(), name: name.clone(), resolution: *resolution, type_: PhantomData }
    }
}

/// The values of one row.
#[derive(Clone, Debug, PartialEq)]
pub struct SeriesRow<T> {
    /// When the first value's time begins.
    pub start: Timestamp,
    /// The values by their slot; `None` where nothing was recorded.
    pub values: Vec<Option<T>>,
    step: Duration,
}

impl<T> SeriesRow<T> {
    /// The values that are there, each with the time at which it begins.
    pub fn recorded(&self) -> impl Iterator<Item = (Timestamp, &T)> {
        let mut time = self.start;
        self.values.iter().filter_map(move |value| {
            let at = time;
            time = time.after(self.step);
            Some((at, value.as_ref()?))
        })
    }
}

impl<T: Property + Send + Sync + 'static> Series<T> {
    /// The series of a name in a table, which must be there. Properties are called after it: `Messages_00` and so on.
    ///
    /// # Errors
    /// A name that no property can have.
    pub fn new(table: Table, name: impl Into<String>, resolution: Resolution) -> Result<Self> {
        let name = name.into();
        // Checked as the service would check the longest of them.
        larimar_client::Column::<T>::try_named(format!("{name}_00"))
            .map_err(|error| Error::Invalid(error.to_string()))?;
        Ok(Self { table, name, resolution, type_: PhantomData })
    }

    /// What a row holds.
    #[must_use]
    pub const fn resolution(&self) -> Resolution {
        self.resolution
    }

    /// Records the value of a time, in the place of what was recorded for it: one request.
    ///
    /// # Errors
    /// A value that is absent or cannot be stored, or a request that failed.
    pub async fn record(&self, partition_key: &str, time: Timestamp, value: &T) -> Result<()> {
        self.record_all(partition_key, [(time, value)]).await
    }

    /// Records several values: one request for each row that they belong to.
    ///
    /// Values of one row are written together or not at all.
    ///
    /// # Errors
    /// A value that is absent or cannot be stored: nothing is written then. Or a request that failed: the rows before
    /// the one that failed, in the order of time, are written.
    pub async fn record_all<'v>(
        &self,
        partition_key: &str,
        values: impl IntoIterator<Item = (Timestamp, &'v T)>,
    ) -> Result<()>
    where
        T: 'v,
    {
        let mut rows = std::collections::BTreeMap::new();
        for (time, value) in values {
            let (start, slot) = self.resolution.place(time);
            let property = self.property(slot);
            let stored = value.to_value().map_err(|reason| EntityError::new(&property, reason))?;
            let Some(stored) = stored else {
                return Err(Error::Invalid(format!("expected a value for {property}: a merge does not remove one")));
            };
            let row = rows.entry(start).or_insert_with(|| DynamicEntity::new(partition_key, self.row_key(start)));
            row.set(property, stored);
        }
        for row in rows.values() {
            self.table.insert_or_merge(row).await?;
        }
        Ok(())
    }

    /// The row that a time belongs to, if anything was recorded in it: one request.
    ///
    /// # Errors
    /// A request that failed, or values that are no `T`.
    pub async fn read(&self, partition_key: &str, time: Timestamp) -> Result<Option<SeriesRow<T>>> {
        let (start, _) = self.resolution.place(time);
        let row = self.table.get::<DynamicEntity>(partition_key, &self.row_key(start)).await?;
        Ok(row.map(|row| self.values(start, &row)).transpose()?)
    }

    /// The rows of a span of time, from the one of its start up to the one that contains or ends at its end, as a query
    /// to stream: one request for each 1,000 of them. Rows where nothing was recorded are left out.
    pub fn range(&self, partition_key: &str, span: Range<Timestamp>) -> Query<SeriesRow<T>> {
        let row = self.resolution.row();
        let first = row.name(span.start);
        let rows = self.table.query::<DynamicEntity>().partition(partition_key);
        let rows = if span.start < span.end {
            let last = row.name(Timestamp::from_ticks(span.end.ticks() - 1));
            rows.filter(keys::row_key().ge(first) & keys::row_key().le(last))
        } else {
            rows.filter(larimar_client::Filter::nothing())
        };
        let series = self.clone();
        rows.select((0..self.resolution.slots()).map(|slot| self.property(slot))).resolve(move |entity| {
            let start = row.parse(&entity.row_key).ok_or_else(|| {
                let reason = larimar_client::PropertyError::invalid("expected the name of a period");
                EntityError::new("RowKey", reason)
            })?;
            series.values(start, &entity)
        })
    }

    fn values(&self, start: Timestamp, row: &DynamicEntity) -> Result<SeriesRow<T>, EntityError> {
        let slots = 0..self.resolution.slots();
        let values = slots.map(|slot| row.get::<Option<T>>(&self.property(slot))).collect::<Result<_, _>>()?;
        Ok(SeriesRow { start, values, step: self.resolution.step() })
    }

    fn row_key(&self, start: Timestamp) -> String {
        self.resolution.row().name(start)
    }

    fn property(&self, slot: usize) -> String {
        format!("{}_{slot:02}", self.name)
    }
}
