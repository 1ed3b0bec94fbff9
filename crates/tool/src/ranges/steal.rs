//! How a worker without work takes over a part of another's.

use super::midpoint::midpoint;
use super::span::{End, Span, Start, compare};
use super::{Lane, State, Work};
use crate::Result;
use larimar_client::{Filter, keys};

/// Where a lane can be divided.
enum Split {
    Partition(String),
    Row(String, String),
}

impl Work {
    /// Takes over a part of what another worker has left, if any can be divided.
    pub(super) async fn steal(&self, thief: usize) -> Result<Option<Span>> {
        let _alone = self.thief.lock().await;
        while let Some((victim, position, end)) = self.candidate() {
            let split = self.find_split(&position, &end).await?;
            let mut state = self.state();
            let Some(lane) = &mut state.lanes[victim] else { continue };
            let Some(split) = split else {
                lane.indivisible = Some(position.0);
                continue;
            };
            if let Some(span) = lane.divide(split) {
                state.lanes[thief] = Some(Lane::new(span.clone()));
                return Ok(Some(span));
            }
        }
        Ok(None)
    }

    fn candidate(&self) -> Option<(usize, (String, String), End)> {
        self.state().candidate()
    }

    /// A place to divide a lane at, so that there is something on both sides. Only the keys are asked for.
    async fn find_split(&self, (partition, row): &(String, String), end: &End) -> Result<Option<Split>> {
        let before = match end {
            End::Table => None,
            End::Partition(end) | End::Row(end, _) | End::AfterRow(end, _) => Some(end.as_str()),
        };
        let column = keys::partition_key();
        if let Some(found) = self
            .search(partition, before, |low, high| {
                let filter = column.ge(low);
                high.map_or(filter.clone(), |high| filter.and(column.lt(high)))
            })
            .await?
        {
            return Ok(Some(Split::Partition(found)));
        }
        let before = match end {
            End::Row(of, end) | End::AfterRow(of, end) if of == partition => Some(end.as_str()),
            _ => None,
        };
        let column = keys::row_key();
        let found = self
            .search(row, before, |low, high| {
                let filter = keys::partition_key().eq(partition.as_str()).and(column.ge(low));
                high.map_or(filter.clone(), |high| filter.and(column.lt(high)))
            })
            .await?;
        Ok(found.map(|found| Split::Row(partition.clone(), found)))
    }

    /// A key between two others with an entity at or after it.
    async fn search(
        &self,
        low: &str,
        high: Option<&str>,
        filter: impl Fn(&str, Option<&str>) -> Filter,
    ) -> Result<Option<String>> {
        let mut high = high.map(str::to_owned);
        for _ in 0..PROBES_MAX {
            let Some(middle) = midpoint(low, high.as_deref()) else { return Ok(None) };
            let probe = self.scan.table.query::<larimar_client::DynamicEntity>();
            let probe = probe.filter(filter(&middle, high.as_deref())).select(["RowKey"]);
            if probe.first().await?.is_some() {
                return Ok(Some(middle));
            }
            high = Some(middle);
        }
        Ok(None)
    }
}

impl State {
    /// The lane that is most worth dividing: the one that was read for the longest time since it was divided.
    fn candidate(&self) -> Option<(usize, (String, String), End)> {
        let lanes = self.lanes.iter().enumerate().filter_map(|(number, lane)| {
            let lane = lane.as_ref()?;
            let Some(Start::AfterRow(partition, row)) = &lane.start else { return None };
            let is_divisible = lane.indivisible.as_ref() != Some(partition);
            is_divisible.then(|| (lane.pages, number, (partition.clone(), row.clone()), lane.end.clone()))
        });
        let (_, number, position, end) = lanes.max_by_key(|(pages, number, ..)| (*pages, *number))?;
        Some((number, position, end))
    }
}

impl Lane {
    /// Ends the lane at a split and returns what was beyond it; none if the lane is there already.
    fn divide(&mut self, split: Split) -> Option<Span> {
        let Some(Start::AfterRow(partition, row)) = &self.start else { return None };
        let (start, end) = match split {
            Split::Partition(at) if compare(partition, &at).is_lt() => {
                (Start::Partition(at.clone()), End::Partition(at))
            }
            Split::Row(of, at) if *partition == of && compare(row, &at).is_lt() => {
                (Start::Row(of.clone(), at.clone()), End::Row(of, at))
            }
            Split::Partition(_) | Split::Row(..) => return None,
        };
        // The end may have moved only by another thief, and there is one at a time.
        let rest = Span { start, end: std::mem::replace(&mut self.end, end) };
        self.pages = 0;
        Some(rest)
    }
}

/// How often a search asks at most. Each question halves the range of one character.
const PROBES_MAX: usize = 200;
