//! Which backup and which segments lead to a moment, or why none do.

use super::line::SegmentName;
use super::reach::{LineState, Reach};
use crate::error::BackupError;
use crate::generation::Generation;
use crate::place::Place;
use larimar_model::Timestamp;
use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::Arc;

/// What to restore to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Moment {
    /// Everything: the backup that reaches furthest, with the commits that the archive has after it.
    Latest,
    /// Exactly the commits that were published at or before a time, by the server's clock.
    Time(Timestamp),
    /// The commits up to a number.
    Sequence(u64),
    /// A backup as it is.
    Generation(String),
}

/// A backup, and the line whose commits are applied to it.
pub(crate) struct Route {
    pub(crate) generation: Generation,
    /// The line, and those of its segments that follow the backup.
    pub(crate) line: Option<(String, Vec<SegmentName>)>,
}

/// Why a moment cannot be restored.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unreachable {
    /// It lies before the first backup.
    #[error("{moment} is before the first backup, which was taken at {first}")]
    BeforeFirst {
        /// The moment.
        moment: Moment,
        /// When the first backup was taken, and its last commit.
        first: String,
    },
    /// It lies after what is archived.
    #[error("{moment} is not in the archive yet: the archive ends at {last}; leave {} out to restore all it has", moment.flag())]
    AfterLast {
        /// The moment.
        moment: Moment,
        /// The end of the archive.
        last: String,
    },
    /// It lies between two lines.
    #[error(
        "{moment} is in a gap of the archive: the last commit before it is {before}, and the first moment after it is \
         {after}; the archive was interrupted because {reason}"
    )]
    Gap {
        /// The moment.
        moment: Moment,
        /// The last commit before it.
        before: String,
        /// The first moment after it.
        after: String,
        /// Why the line before it ended.
        reason: String,
    },
    /// The backup before it was taken without an archive.
    #[error(
        "{moment} cannot be restored: the backup before it, {generation}, was taken without an archive; --generation \
         {generation} restores that one"
    )]
    NoArchive {
        /// The moment.
        moment: Moment,
        /// The backup.
        generation: String,
    },
}

impl Moment {
    const fn flag(&self) -> &'static str {
        match self {
            Self::Sequence(_) => "--to-sequence",
            _ => "--to-time",
        }
    }

    /// Whether a backup holds nothing later.
    fn admits(&self, generation: &Generation) -> Result<bool, BackupError> {
        Ok(match self {
            Self::Time(time) => generation.taken_at()? <= *time,
            Self::Sequence(sequence) => generation.sequence <= *sequence,
            Self::Latest | Self::Generation(_) => true,
        })
    }

    /// Whether it is before a backup, as the name of that one says.
    fn is_before(&self, generation: &str) -> bool {
        match self {
            Self::Time(time) => Generation::time_of(generation).is_some_and(|taken| *time < taken),
            Self::Sequence(sequence) => {
                let number = generation.rsplit_once('-').and_then(|(_, number)| number.parse::<u64>().ok());
                number.is_some_and(|number| *sequence < number)
            }
            Self::Latest | Self::Generation(_) => false,
        }
    }

    /// Whether a line has everything up to the moment.
    fn is_within(&self, reach: &Reach) -> bool {
        match self {
            Self::Time(time) => reach.time.is_some_and(|through| *time <= through),
            Self::Sequence(sequence) => *sequence <= reach.sequence,
            Self::Latest | Self::Generation(_) => true,
        }
    }

    /// Whether a commit is one of the moment's.
    pub(crate) fn includes(&self, sequence: u64, time: Timestamp) -> bool {
        match self {
            Self::Time(last) => time <= *last,
            Self::Sequence(last) => sequence <= *last,
            Self::Latest => true,
            Self::Generation(_) => false,
        }
    }
}

impl fmt::Display for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Latest => f.write_str("the latest moment"),
            Self::Time(time) => time.fmt(f),
            Self::Sequence(sequence) => write!(f, "commit {sequence}"),
            Self::Generation(name) => f.write_str(name),
        }
    }
}

impl Route {
    /// Finds the backup and the segments that lead to a moment.
    pub(crate) async fn find(place: &Place, moment: &Moment) -> Result<Self, BackupError> {
        match moment {
            Moment::Generation(name) => Ok(Self { generation: Generation::find(place, Some(name)).await?, line: None }),
            Moment::Latest => Self::furthest(place).await,
            Moment::Time(_) | Moment::Sequence(_) => Self::search(place, moment).await,
        }
    }

    /// The backup that reaches furthest. That need not be the latest: one that was taken while its line was not open, or by
    /// another server, has none, and the line of an older one may go on.
    async fn furthest(place: &Place) -> Result<Self, BackupError> {
        let mut furthest: Option<(Timestamp, Self)> = None;
        let mut lines = HashSet::new();
        for name in Generation::list(place).await?.iter().rev() {
            let generation = match Generation::read(place, name).await {
                // Nothing can be restored from it.
                Err(BackupError::Damaged { .. } | BackupError::Missing(_)) if furthest.is_some() => continue,
                read => read?,
            };
            // The latest backup of a line reaches as far as the older ones.
            if !lines.insert(generation.line.clone()) {
                continue;
            }
            let (time, route) = match Self::to_the_end(place, generation).await {
                // The line itself is gone: a removal was interrupted.
                Err(BackupError::Missing(_)) if furthest.is_some() => continue,
                reached => reached?,
            };
            if furthest.as_ref().is_none_or(|(furthest, _)| time > *furthest) {
                furthest = Some((time, route?));
            }
        }
        let (_, route) = furthest.expect("there is a backup");
        Ok(route)
    }

    /// Up to which time a backup reaches with all that its line has after it, and the way there or the segment that is
    /// missing on it. A line that goes on may reach any time without that one.
    async fn to_the_end(
        place: &Place,
        generation: Generation,
    ) -> Result<(Timestamp, Result<Self, BackupError>), BackupError> {
        let taken = generation.taken_at()?;
        let Some(name) = generation.line.clone() else { return Ok((taken, Ok(Self { generation, line: None }))) };
        let line = LineState::load(place, &name).await?;
        let (segments, _, missing) = line.after(place, generation.sequence);
        if let Some(missing) = missing {
            let end = line.end.map_or(Timestamp::MAX, |end| end.time());
            return Ok((end, Err(missing)));
        }
        let time = line.reach(place, generation.sequence).await?.time;
        Ok((time.map_or(taken, |time| time.max(taken)), Ok(Self { generation, line: Some((name, segments)) })))
    }

    /// The latest backup before the moment whose line reaches it. One that is damaged is passed over: an older one leads to the
    /// same moment, if there is one.
    async fn search(place: &Place, moment: &Moment) -> Result<Self, BackupError> {
        let mut lines: HashMap<String, Arc<LineState>> = HashMap::new();
        // The first backup after the moment, and the last before it.
        let (mut later, mut nearest, mut damaged) = (None, None, None);
        // How far the furthest line reaches.
        let mut end: Option<(Timestamp, u64)> = None;
        for name in Generation::list(place).await?.iter().rev() {
            let generation = match Generation::read(place, name).await {
                Err(error @ BackupError::Damaged { .. }) => {
                    if !moment.is_before(name) {
                        damaged.get_or_insert(error);
                    }
                    continue;
                }
                read => read?,
            };
            if !moment.admits(&generation)? {
                later = Some(generation);
                continue;
            }
            if *moment == Moment::Sequence(generation.sequence) {
                return Ok(Self { generation, line: None });
            }
            let found = match &generation.line {
                None => None,
                Some(name) => {
                    if !lines.contains_key(name) {
                        lines.insert(name.clone(), Arc::new(LineState::load(place, name).await?));
                    }
                    let line = Arc::clone(&lines[name]);
                    let reach = line.reach(place, generation.sequence).await?;
                    if moment.is_within(&reach) {
                        let (segments, _, _) = line.after(place, generation.sequence);
                        return Ok(Self { generation, line: Some((line.line.name.clone(), segments)) });
                    }
                    end = end.max(reach.time.map(|time| (time, reach.sequence)));
                    Some((line, reach))
                }
            };
            nearest.get_or_insert((generation, found));
        }
        Err(damaged.unwrap_or_else(|| refusal(moment, nearest, later, end)))
    }
}

/// A line, and how far it reaches.
type Reached = (Arc<LineState>, Reach);

/// Why no backup leads to a moment; `end`: how far the furthest line reaches.
fn refusal(
    moment: &Moment,
    nearest: Option<(Generation, Option<Reached>)>,
    later: Option<Generation>,
    end: Option<(Timestamp, u64)>,
) -> BackupError {
    let moment = moment.clone();
    let at = |generation: &Generation| format!("{} (commit {})", generation.taken, generation.sequence);
    let Some((generation, line)) = nearest else {
        let first = later.as_ref().map_or_else(String::new, at);
        return Unreachable::BeforeFirst { moment, first }.into();
    };
    let after_last =
        |moment, (time, sequence)| Unreachable::AfterLast { moment, last: format!("{time} (commit {sequence})") };
    let Some((line, reach)) = line else {
        // The latest backup may be one without an archive; the line of an older one ends after it.
        let end = end.filter(|(time, _)| later.is_none() && generation.taken_at().is_ok_and(|taken| *time > taken));
        return match end {
            Some(end) => after_last(moment, end),
            None => Unreachable::NoArchive { moment, generation: generation.name() },
        }
        .into();
    };
    if let Some(missing) = reach.missing {
        return missing;
    }
    let published = reach.published.unwrap_or(generation.point().1.time);
    match later {
        Some(later) => Unreachable::Gap {
            moment,
            before: format!("{} of {published}", reach.sequence.max(generation.sequence)),
            after: at(&later),
            reason: line.reason(),
        },
        None => after_last(moment, end.unwrap_or((published, reach.sequence))),
    }
    .into()
}
