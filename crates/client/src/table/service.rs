//! The Table service as a whole: its tables.

use super::address::table_path;
use super::entities::PREFER;
use super::json::{self, not_understood};
use crate::pipeline::{Call, Failed, Pipeline};
use crate::{Error, Filter, Result};
use futures_util::stream::{self, Stream, StreamExt as _, TryStreamExt as _};
use http::Method;
use serde::Deserialize;
use std::sync::Arc;
use std::time::Duration;

/// The Table service of an account.
#[derive(Clone, Debug)]
pub struct TableService {
    pub(crate) pipeline: Arc<Pipeline>,
}

/// A table in the list of tables.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TableItem {
    /// The table's name.
    pub name: String,
}

impl TableService {
    pub(crate) const fn new(pipeline: Arc<Pipeline>) -> Self {
        Self { pipeline }
    }

    /// The tables of the account, by name. A filter may compare the property `TableName`.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = larimar_embedded::Larimar::ephemeral().await?;
    /// # let account = larimar_client::Account::connect(&server.connection_string())?;
    /// # for table in ["Employees", "Logs2024", "Logs2025"] {
    /// #     account.table(table).create().await?;
    /// # }
    /// use futures_util::TryStreamExt as _;
    /// use larimar_client::Column;
    ///
    /// let name: Column<String> = Column::named("TableName");
    /// let mut tables = account.tables().list(Some(name.starts_with("Logs")));
    /// while let Some(table) = tables.try_next().await? {
    ///     println!("{}", table.name);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn list(&self, filter: Option<Filter>) -> impl Stream<Item = Result<TableItem>> + Send + Unpin + use<> {
        let pages = stream::try_unfold((self.clone(), filter, Some(None)), |(service, filter, from)| async move {
            let Some(from) = from else { return Ok(None) };
            let (tables, next) = service.page(filter.as_ref(), from).await?;
            Ok::<_, Error>(Some((stream::iter(tables.into_iter().map(Ok)), (service, filter, next.map(Some)))))
        });
        // A boxed stream needs no pinning by the caller.
        pages.try_flatten().boxed()
    }

    async fn page(&self, filter: Option<&Filter>, from: Option<String>) -> Result<(Vec<TableItem>, Option<String>)> {
        #[derive(Deserialize)]
        struct Page {
            value: Vec<Item>,
        }
        #[derive(Deserialize)]
        struct Item {
            #[serde(rename = "TableName")]
            name: String,
        }
        let mut call = Call::new("QueryTables", Method::GET, "/Tables");
        // The filter for everything names a property that entities have and tables do not.
        if let Some(filter) = filter.filter(|filter| !filter.is_everything()) {
            call = call.parameter("$filter", filter.as_str());
        }
        if let Some(from) = from {
            call = call.parameter("NextTableName", &from);
        }
        let reply = self.pipeline.send(call).await?;
        let page: Page = serde_json::from_slice(&reply.body).map_err(not_understood)?;
        let next = reply.headers.get("x-ms-continuation-nexttablename");
        let next = next.and_then(|next| next.to_str().ok()).filter(|next| !next.is_empty()).map(str::to_owned);
        Ok((page.value.into_iter().map(|item| TableItem { name: item.name }).collect(), next))
    }

    pub(super) async fn create(&self, table: &str, timeout: Option<Duration>) -> Result<(), Failed> {
        let mut body = b"{\"TableName\":".to_vec();
        json::write_text(&mut body, table);
        body.push(b'}');
        let call = Call::new("CreateTable", Method::POST, "/Tables")
            .header(PREFER, "return-no-content")
            .body("application/json;odata=nometadata", body);
        self.pipeline.send(call.timeout(timeout)).await.map(drop)
    }

    pub(super) async fn delete(&self, table: &str, timeout: Option<Duration>) -> Result<(), Failed> {
        let name = table_path(table);
        let path = format!("/Tables('{}')", name.trim_start_matches('/'));
        self.pipeline.send(Call::new("DeleteTable", Method::DELETE, path).timeout(timeout)).await.map(drop)
    }
}
