//! Pages of a query: how one is fetched, and how the next is found.

use super::address::table_path;
use super::explain::Explanation;
use super::json;
use super::query::{Ask, PAGE_SIZE_MAX, Query, Reader};
use crate::pipeline::{Call, Reply};
use crate::{Error, Result};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use futures_util::stream::{self, BoxStream, StreamExt as _};
use http::{HeaderName, Method};
use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

/// Some entities of a query, and where the rest of them is.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = larimar_embedded::Larimar::ephemeral().await?;
/// # let account = larimar_client::Account::connect(&server.connection_string())?;
/// # let table = account.table("Employees");
/// # table.create_if_missing().await?;
/// use futures_util::TryStreamExt as _;
/// use larimar_client::DynamicEntity;
/// # for row in 1..=5 {
/// #     table.insert(&DynamicEntity::new("Sales", row.to_string())).await?;
/// # }
///
/// let mut pages = table.query::<DynamicEntity>().partition("Sales").page_size(2).pages();
/// let mut sizes = Vec::new();
/// while let Some(page) = pages.try_next().await? {
///     sizes.push(page.entities.len());
/// }
/// assert_eq!(sizes, [2, 2, 1]);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Page<T> {
    /// The entities, in the order of their keys. There may be none although more are to come.
    pub entities: Vec<T>,
    /// Where the next page starts; none if this is the last.
    pub continuation: Option<Continuation>,
    /// How the server answered, if [`Query::explain`] asked for that and the server says it.
    pub explanation: Option<Explanation>,
}

/// Where a query continues: a token that can be stored and used later, also by another process.
///
/// It belongs to the query it came from: the same table, filter and projection. It is opaque, and it is text to serde,
/// [`Display`](fmt::Display) and [`FromStr`], of letters, digits, `-`, `_` and `.`, so that it can stand in an address.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = larimar_embedded::Larimar::ephemeral().await?;
/// # let account = larimar_client::Account::connect(&server.connection_string())?;
/// # let table = account.table("Employees");
/// # table.create_if_missing().await?;
/// use larimar_client::{Continuation, DynamicEntity};
/// # for row in ["1", "2", "3"] {
/// #     table.insert(&DynamicEntity::new("Sales", row)).await?;
/// # }
///
/// let query = table.query::<DynamicEntity>().partition("Sales").page_size(2);
/// let page = query.clone().page().await?;
/// assert_eq!(page.entities.len(), 2);
///
/// let kept: String = page.continuation.expect("more to come").to_string();
/// let page = query.start_at(kept.parse::<Continuation>()?).page().await?;
/// assert_eq!((page.entities.len(), page.continuation), (1, None));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Continuation {
    partition: String,
    /// Absent where the next page starts with a partition.
    row: Option<String>,
}

/// A text that is not a continuation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected a continuation as a query gave it")]
pub struct ContinuationError;

impl fmt::Display for Continuation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&URL_SAFE_NO_PAD.encode(&self.partition))?;
        match &self.row {
            Some(row) => write!(f, ".{}", URL_SAFE_NO_PAD.encode(row)),
            None => Ok(()),
        }
    }
}

impl FromStr for Continuation {
    type Err = ContinuationError;

    fn from_str(text: &str) -> Result<Self, ContinuationError> {
        let decode = |text: &str| {
            let bytes = URL_SAFE_NO_PAD.decode(text).map_err(|_| ContinuationError)?;
            String::from_utf8(bytes).map_err(|_| ContinuationError)
        };
        let (partition, row) = match text.split_once('.') {
            Some((partition, row)) => (partition, Some(decode(row)?)),
            None => (text, None),
        };
        match decode(partition)? {
            partition if partition.is_empty() => Err(ContinuationError),
            partition => Ok(Self { partition, row }),
        }
    }
}

impl From<Continuation> for String {
    fn from(continuation: Continuation) -> Self {
        continuation.to_string()
    }
}

impl TryFrom<String> for Continuation {
    type Error = ContinuationError;

    fn try_from(text: String) -> Result<Self, ContinuationError> {
        text.parse()
    }
}

impl Continuation {
    /// The continuation that an answer names. One that cannot be sent back is an error, since the rest would be lost.
    fn of(reply: &Reply) -> Result<Option<Self>> {
        let header = |name: &str| match reply.headers.get(name).map(|value| value.to_str()) {
            None => Ok(None),
            Some(Ok(text)) => Ok(Some(text.to_owned()).filter(|text| !text.is_empty())),
            Some(Err(_)) => Err(Error::Answer(format!("'{name}' is not a text"))),
        };
        let row = header("x-ms-continuation-nextrowkey")?;
        Ok(header("x-ms-continuation-nextpartitionkey")?.map(|partition| Self { partition, row }))
    }
}

/// The pages of a query, each fetched when it is asked for.
pub(super) fn pages<T: Send + 'static>(query: Query<T>) -> BoxStream<'static, Result<Page<T>>> {
    let next = match query.ask.limit {
        Some(0) => None,
        limit => Some((query.ask.start.clone(), limit)),
    };
    stream::try_unfold((query, next), |(query, next)| async move {
        let Some((start, left)) = next else { return Ok(None) };
        let page = fetch(&query.ask, &query.read, start.as_ref(), left).await?;
        let left = left.map(|left| left.saturating_sub(page.entities.len()));
        let next = page.continuation.clone().filter(|_| left != Some(0)).map(|start| (Some(start), left));
        Ok(Some((page, (query, next))))
    })
    .boxed()
}

/// One page, of at most this many entities.
pub(super) async fn fetch<T>(
    ask: &Ask,
    read: &Reader<T>,
    start: Option<&Continuation>,
    entities_max: Option<usize>,
) -> Result<Page<T>> {
    let select = ask.select.clone().map(|columns| match columns.is_empty() {
        // A type that reads nothing of the entity still needs one name: an empty list means all.
        true => ask.table.select(vec![Cow::Borrowed("PartitionKey")]),
        false => ask.table.select(columns),
    });
    let reply = ask.table.send(call(ask, select.as_deref(), start, entities_max)).await?;
    let continuation = Continuation::of(&reply)?;
    let explanation = ask.explain.map(|_| Explanation::of(&reply)).transpose()?.flatten();
    let entities = json::read_page(&reply.body)?;
    Ok(Page { entities: read(ask.table.clone(), entities, select).await?, continuation, explanation })
}

fn call(ask: &Ask, select: Option<&str>, start: Option<&Continuation>, entities_max: Option<usize>) -> Call {
    let mut call = Call::new("QueryEntities", Method::GET, format!("{}()", table_path(ask.table.name())));
    if !ask.filter.is_everything() {
        call = call.parameter("$filter", ask.filter.as_str());
    }
    if let Some(select) = select {
        call = call.parameter("$select", select);
    }
    let top = ask.page_size.unwrap_or(PAGE_SIZE_MAX).min(entities_max.unwrap_or(PAGE_SIZE_MAX));
    if top < PAGE_SIZE_MAX {
        call = call.parameter("$top", &top.to_string());
    }
    if let Some(Continuation { partition, row }) = start {
        call = call.parameter("NextPartitionKey", partition);
        // An empty row is refused; there is none where a partition starts.
        if let Some(row) = row {
            call = call.parameter("NextRowKey", row);
        }
    }
    match ask.explain {
        Some(explain) => call.header(EXPLAIN, explain),
        None => call,
    }
}

const EXPLAIN: HeaderName = HeaderName::from_static("x-larimar-explain");

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn c3_a_continuation_survives_text_and_serde(partition in ".+", row: Option<String>) {
            let continuation = Continuation { partition, row };
            prop_assert_eq!(continuation.to_string().parse(), Ok(continuation.clone()));
            let json = serde_json::to_string(&continuation).expect("JSON");
            prop_assert_eq!(serde_json::from_str::<Continuation>(&json).expect("a continuation"), continuation);
        }

        #[test]
        fn any_text_is_a_continuation_or_none(text: String) {
            if let Ok(continuation) = text.parse::<Continuation>() {
                prop_assert_eq!(continuation.to_string(), text);
            }
        }
    }
}
