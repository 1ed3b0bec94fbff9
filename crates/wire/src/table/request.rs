//! Parses the head of a request into a typed operation. The body is read later.

use super::content::{MetadataLevel, Prefer, check_json_body};
use super::key_predicate::{Keys, Segment, syntax_error};
use super::options::{Parsed, QueryOptions, Select};
use crate::error_body::ErrorReply;
use crate::error_code::ErrorCode;
use crate::operation::{BodyLimit, Endpoint, Facts, Format, Operation, SETTINGS_BODY_BYTES_MAX};
use crate::request_head::RequestHead;
use crate::sas::Need;
use crate::uri::decode_path;
use larimar_model::{EntityKey, IfMatch, KeyError, PartitionKey, RowKey, TableName, TableNameError};

/// A request to the Table service.
#[derive(Clone, Debug, PartialEq)]
pub struct TableRequest {
    /// What to do.
    pub operation: TableOperation,
    /// How much metadata the answer carries.
    pub level: MetadataLevel,
    /// What an insert or a create is to return.
    pub prefer: Option<Prefer>,
}

/// What a request asks for.
#[derive(Clone, Debug, PartialEq)]
#[expect(missing_docs, reason = "the names are those of the service's reference")]
pub enum TableOperation {
    QueryTables(QueryOptions),
    GetTable(TableName),
    CreateTable,
    DeleteTable(TableName),
    GetTableAcl(TableName),
    SetTableAcl(TableName),
    QueryEntities(QueryEntities),
    GetEntity(GetEntity),
    Write(WriteEntity),
    /// What lies below a table is refused, unless the table itself is missing.
    Refused(TableName, ErrorReply),
    Batch,
    GetSchema,
    GetServiceProperties,
    SetServiceProperties,
    GetServiceStats,
}

/// Query Entities.
#[derive(Clone, Debug, PartialEq)]
pub struct QueryEntities {
    /// The table.
    pub table: TableName,
    /// What the query asks for.
    pub options: QueryOptions,
}

/// The query for one entity by its keys.
#[derive(Clone, Debug, PartialEq)]
pub struct GetEntity {
    /// The table.
    pub table: TableName,
    /// The keys.
    pub key: EntityKey,
    /// The properties to return.
    pub select: Select,
}

/// Insert, Update, Merge, Delete and the two upserts: a write of one entity, by itself or in a transaction.
#[derive(Clone, Debug, PartialEq)]
pub struct WriteEntity {
    /// The table.
    pub table: TableName,
    /// What to do. The entity itself is in the body.
    pub kind: WriteKind,
}

/// What a write of an entity does.
#[derive(Clone, Debug, PartialEq)]
pub enum WriteKind {
    /// Insert Entity; the keys are in the body.
    Insert,
    /// Update Entity; without a condition Insert Or Replace Entity.
    Replace(EntityKey, Option<IfMatch>),
    /// Merge Entity; without a condition Insert Or Merge Entity.
    Merge(EntityKey, Option<IfMatch>),
    /// Delete Entity.
    Delete(EntityKey, IfMatch),
}

impl TableRequest {
    /// Parses a request; `path` is the raw path below the account.
    ///
    /// # Errors
    /// The protocol's error for an invalid request, or for a feature that is not implemented.
    pub fn parse(head: &RequestHead<'_>, account: &str, path: &str) -> Result<Self, ErrorReply> {
        Self::negotiate(head, account, path, head.raw_header("accept"), head.version().as_deref())
    }

    /// Parses a request inside a batch. Old clients ask for Atom there and get JSON, and the version is that of the
    /// batch.
    ///
    /// # Errors
    /// As for [`TableRequest::parse`].
    pub fn parse_part(head: &RequestHead<'_>, account: &str, path: &str) -> Result<Self, ErrorReply> {
        Self::negotiate(head, account, path, head.raw_header("accept").filter(|accept| accept.contains("json")), None)
    }

    fn negotiate(
        head: &RequestHead<'_>,
        account: &str,
        path: &str,
        accept: Option<&str>,
        version: Option<&str>,
    ) -> Result<Self, ErrorReply> {
        let method = effective_method(head)?;
        let parsed = Parsed::parse(head.query)?;
        let prefer = head.raw_header("prefer").and_then(Prefer::parse);
        let level = MetadataLevel::negotiate(parsed.format.as_deref(), accept, version);
        let operation = Router { account, method, parsed, head }.operation(path)?;
        // A response without JSON cannot be in the wrong format.
        let is_json = operation.facts().format == Format::Json;
        let level = if is_json { level? } else { level.unwrap_or(MetadataLevel::Minimal) };
        Ok(Self { operation, level, prefer })
    }
}

impl Operation for TableRequest {
    fn facts(&self) -> Facts<'_> {
        self.operation.facts()
    }
}

impl Operation for TableOperation {
    fn facts(&self) -> Facts<'_> {
        let settings = BodyLimit::Bytes(SETTINGS_BODY_BYTES_MAX);
        match self {
            Self::QueryTables(_) => Facts::read("QueryTables", Need::QUERY_TABLES).answers(Format::Json),
            Self::GetTable(_) => Facts::read("QueryTable", Need::GET_TABLE).answers(Format::Json),
            Self::CreateTable => {
                Facts::write("CreateTable", Need::CREATE_TABLE).body(BodyLimit::Configured).answers(Format::Json)
            }
            Self::DeleteTable(table) => Facts::delete("DeleteTable", Need::DELETE_TABLE).reserved_if(table.is_system()),
            Self::GetTableAcl(_) => Facts::read("GetTableACL", Need::ACL).answers(Format::Xml),
            Self::SetTableAcl(table) => Facts::write("SetTableACL", Need::ACL)
                .reserved_if(table.is_system())
                .body(settings)
                .answers(Format::Xml),
            Self::QueryEntities(query) => query.facts(),
            Self::GetEntity(get) => get.facts(),
            Self::Write(write) => write.facts(),
            Self::Refused(table, _) => Facts::refused(Need::query(table.as_str())),
            Self::Batch => Facts::batch("EntityGroupTransaction"),
            Self::GetSchema => Facts::read("GetTableServiceSchema", Need::READ_SERVICE).answers(Format::Xml),
            Self::GetServiceProperties => {
                Facts::read("GetTableServiceProperties", Need::READ_SERVICE).answers(Format::Xml)
            }
            Self::SetServiceProperties => {
                Facts::write("SetTableServiceProperties", Need::WRITE_SERVICE).body(settings).answers(Format::Xml)
            }
            Self::GetServiceStats => {
                Facts::read("GetTableServiceStats", Need::READ_SERVICE).on(Endpoint::Secondary).answers(Format::Xml)
            }
        }
    }
}

impl Operation for QueryEntities {
    fn facts(&self) -> Facts<'_> {
        let facts = Facts::read("QueryEntities", Need::query(self.table.as_str()));
        facts.answers(Format::Json).counted_by_partition()
    }
}

impl Operation for GetEntity {
    fn facts(&self) -> Facts<'_> {
        let facts = Facts::read("QueryEntity", Need::query(self.table.as_str()));
        facts.answers(Format::Json).counted_by_partition()
    }
}

impl Operation for WriteEntity {
    fn facts(&self) -> Facts<'_> {
        let table = self.table.as_str();
        let facts = match &self.kind {
            WriteKind::Insert => Facts::write("InsertEntity", Need::insert(table)).answers(Format::Json),
            WriteKind::Replace(_, Some(_)) => Facts::write("UpdateEntity", Need::update(table)),
            WriteKind::Replace(_, None) => Facts::write("InsertOrReplaceEntity", Need::upsert(table)),
            WriteKind::Merge(_, Some(_)) => Facts::write("MergeEntity", Need::update(table)),
            WriteKind::Merge(_, None) => Facts::write("InsertOrMergeEntity", Need::upsert(table)),
            // The rows of storage analytics can be deleted, but not changed.
            WriteKind::Delete(..) => {
                return Facts::delete("DeleteEntity", Need::delete(table)).counted_by_partition();
            }
        };
        facts.reserved_if(self.table.is_system()).body(BodyLimit::Configured).counted_by_partition()
    }
}

struct Router<'a> {
    account: &'a str,
    method: &'a str,
    parsed: Parsed,
    head: &'a RequestHead<'a>,
}

impl Router<'_> {
    fn operation(self, path: &str) -> Result<TableOperation, ErrorReply> {
        let raw = path.trim_matches('/');
        if raw.is_empty() {
            return self.service();
        }
        if self.parsed.restype.is_some() {
            return Err(ErrorReply::new(ErrorCode::InvalidUri));
        }
        if has_escaped_slash(raw) {
            let is_name = !raw.contains('(');
            return Err(if is_name { ErrorReply::new(ErrorCode::InvalidResourceName) } else { syntax_error() });
        }
        let decoded = decode_path(raw).map_err(|_| syntax_error())?;
        let segment = Segment::parse(&decoded)?;
        match segment.name {
            "$batch" if segment.keys == Keys::Absent => self.batch(),
            "$metadata" if segment.keys == Keys::Absent => match self.method {
                "GET" => Ok(TableOperation::GetSchema),
                _ => Err(ErrorReply::new(ErrorCode::MethodNotAllowed)),
            },
            name if name.contains('/') => {
                let (table, below) = name.split_once('/').unwrap_or((name, ""));
                self.below(table, below, &segment.keys)
            }
            name if name.eq_ignore_ascii_case("Tables") => self.tables(segment.keys),
            name => {
                let table = parse_table_name(name)?;
                match segment.keys {
                    Keys::Absent if self.parsed.comp.is_some() => self.acl(table),
                    Keys::Absent => self.entities(table),
                    keys => self.entity(table, keys),
                }
            }
        }
    }

    /// `/T/Tables…` and `/T/$batch` are the table T to the service (recorded).
    fn below(self, table: &str, below: &str, keys: &Keys<'_>) -> Result<TableOperation, ErrorReply> {
        if below != "$batch" && !below.eq_ignore_ascii_case("Tables") {
            return Err(ErrorReply::new(ErrorCode::InvalidUri));
        }
        let table = parse_table_name(table)?;
        let refused = match self.method {
            _ if *keys != Keys::Absent => self.wrong_keys(table.as_str()),
            "POST" if is_multipart(self.content_type()) => ErrorReply::new(ErrorCode::MediaTypeNotSupported),
            "GET" | "HEAD" => ErrorReply::new(ErrorCode::NotImplemented),
            _ => return self.entities(table),
        };
        Ok(TableOperation::Refused(table, refused))
    }

    fn service(self) -> Result<TableOperation, ErrorReply> {
        let word = |word: &Option<String>| word.as_deref().map(str::to_ascii_lowercase);
        match (word(&self.parsed.restype).as_deref(), word(&self.parsed.comp).as_deref(), self.method) {
            (Some("service"), Some("properties"), "GET") => Ok(TableOperation::GetServiceProperties),
            (Some("service"), Some("properties"), "PUT") => Ok(TableOperation::SetServiceProperties),
            (Some("service"), Some("stats"), "GET") => Ok(TableOperation::GetServiceStats),
            (Some("service"), Some("properties" | "stats"), _) => Err(ErrorReply::new(ErrorCode::UnsupportedHttpVerb)),
            _ => Err(ErrorReply::new(ErrorCode::InvalidQueryParameterValue)),
        }
    }

    fn batch(self) -> Result<TableOperation, ErrorReply> {
        if self.method == "POST" {
            Ok(TableOperation::Batch)
        } else {
            Err(ErrorReply::new(ErrorCode::MethodNotAllowed))
        }
    }

    fn tables(self, keys: Keys<'_>) -> Result<TableOperation, ErrorReply> {
        let name = match &keys {
            Keys::Absent => None,
            Keys::Unnamed(name) => Some(parse_table_name(name)?),
            Keys::Named(pairs) => match pairs.as_slice() {
                [("TableName", name)] => Some(parse_table_name(name)?),
                _ => return Err(self.wrong_keys("Tables")),
            },
        };
        match (name, self.method) {
            (None, "GET") => Ok(TableOperation::QueryTables(self.parsed.options)),
            (None, "POST") => {
                check_json_body(self.content_type())?;
                Ok(TableOperation::CreateTable)
            }
            (Some(name), "GET") => Ok(TableOperation::GetTable(name)),
            (Some(name), "DELETE") => Ok(TableOperation::DeleteTable(name)),
            _ => Err(ErrorReply::new(ErrorCode::MethodNotAllowed)),
        }
    }

    fn acl(self, table: TableName) -> Result<TableOperation, ErrorReply> {
        let comp = self.parsed.comp.as_deref().map(str::to_ascii_lowercase);
        match (comp.as_deref(), self.method) {
            (Some("acl"), "GET" | "HEAD") => Ok(TableOperation::GetTableAcl(table)),
            (Some("acl"), "PUT") => Ok(TableOperation::SetTableAcl(table)),
            (Some("acl"), _) => Err(ErrorReply::new(ErrorCode::UnsupportedHttpVerb)),
            _ => Err(ErrorReply::new(ErrorCode::InvalidQueryParameterValue)),
        }
    }

    fn entities(self, table: TableName) -> Result<TableOperation, ErrorReply> {
        match self.method {
            "GET" => Ok(TableOperation::QueryEntities(QueryEntities { table, options: self.parsed.options })),
            "POST" => {
                check_json_body(self.content_type())?;
                Ok(TableOperation::Write(WriteEntity { table, kind: WriteKind::Insert }))
            }
            _ => Err(ErrorReply::new(ErrorCode::MethodNotAllowed)),
        }
    }

    fn entity(self, table: TableName, keys: Keys<'_>) -> Result<TableOperation, ErrorReply> {
        let (partition, row) = match &keys {
            Keys::Named(pairs) => match pairs.as_slice() {
                [("PartitionKey", partition), ("RowKey", row)] => (partition, row),
                [("RowKey", row), ("PartitionKey", partition)] => (partition, row),
                _ => return Err(self.wrong_keys(table.as_str())),
            },
            _ => return Err(self.wrong_keys(table.as_str())),
        };
        let key = EntityKey {
            partition: PartitionKey::new(partition.as_ref()).map_err(url_key_error)?,
            row: RowKey::new(row.as_ref()).map_err(url_key_error)?,
        };
        if self.method == "GET" {
            return Ok(TableOperation::GetEntity(GetEntity { table, key, select: self.parsed.options.select }));
        }
        let if_match = self.if_match()?;
        let kind = match self.method {
            "PUT" => {
                check_json_body(self.content_type())?;
                WriteKind::Replace(key, if_match)
            }
            "MERGE" | "PATCH" => {
                check_json_body(self.content_type())?;
                WriteKind::Merge(key, if_match)
            }
            "DELETE" => {
                let missing = || ErrorReply::new(ErrorCode::MissingRequiredHeader);
                WriteKind::Delete(key, if_match.ok_or_else(missing)?)
            }
            _ => return Err(ErrorReply::new(ErrorCode::MethodNotAllowed)),
        };
        Ok(TableOperation::Write(WriteEntity { table, kind }))
    }

    fn content_type(&self) -> Option<&str> {
        self.head.raw_header("content-type")
    }

    fn if_match(&self) -> Result<Option<IfMatch>, ErrorReply> {
        if self.head.has_header("if-none-match") {
            return Err(ErrorReply::new(ErrorCode::InvalidInput));
        }
        let parse = |text: &str| {
            IfMatch::parse(text).map_err(|error| {
                let message = format!("The etag value '{}' specified in one of the request headers is not valid. Please make sure only one etag value is specified and is valid.", error.0);
                ErrorReply::with_message(ErrorCode::InvalidInput, message)
            })
        };
        self.head.raw_header("if-match").map(parse).transpose()
    }

    fn wrong_keys(&self, resource: &str) -> ErrorReply {
        let message = format!(
            "The number of keys specified in the URI does not match number of key properties for the resource '{}.{resource}'.",
            self.account
        );
        ErrorReply::with_message(ErrorCode::InvalidInput, message)
    }
}

/// The method of the request line, or the one tunnelled through POST.
fn effective_method<'a>(head: &RequestHead<'a>) -> Result<&'a str, ErrorReply> {
    let mut tunnelled = head.raw_headers("x-http-method");
    let method = match (tunnelled.next(), head.method) {
        (None, method) => method,
        (Some(_), _) if tunnelled.next().is_some() => return Err(ErrorReply::new(ErrorCode::XMethodIncorrectCount)),
        (Some(inner @ ("MERGE" | "PUT" | "DELETE" | "PATCH")), "POST") => inner,
        (Some(_), "POST") => return Err(ErrorReply::new(ErrorCode::XMethodIncorrectValue)),
        (Some(_), _) => return Err(ErrorReply::new(ErrorCode::XMethodNotUsingPost)),
    };
    match method {
        "GET" | "HEAD" | "POST" | "PUT" | "MERGE" | "PATCH" | "DELETE" => Ok(method),
        _ => Err(ErrorReply::new(ErrorCode::UnsupportedHttpVerb)),
    }
}

/// Whether a body is a batch by its `Content-Type`.
fn is_multipart(content_type: Option<&str>) -> bool {
    content_type.and_then(|text| text.get(..10)).is_some_and(|start| start.eq_ignore_ascii_case("multipart/"))
}

/// Reads a table's name, with the service's errors.
pub(super) fn parse_table_name(name: &str) -> Result<TableName, ErrorReply> {
    name.parse().map_err(|error| match error {
        TableNameError::Length => {
            let message = "The specified resource name length is not within the permissible limits.";
            ErrorReply::with_message(ErrorCode::OutOfRangeInput, message)
        }
        TableNameError::Characters => ErrorReply::new(ErrorCode::InvalidResourceName),
    })
}

fn url_key_error(error: KeyError) -> ErrorReply {
    match error {
        KeyError::TooLong => ErrorReply::new(ErrorCode::PropertyValueTooLarge),
        KeyError::Forbidden => ErrorReply::new(ErrorCode::OutOfRangeInput),
    }
}

/// Whether a slash or backslash is escaped: the service's front end refuses such a path.
fn has_escaped_slash(raw: &str) -> bool {
    raw.as_bytes().windows(3).any(|w| w.eq_ignore_ascii_case(b"%2f") || w.eq_ignore_ascii_case(b"%5c"))
        || raw.contains('\\')
}

#[cfg(test)]
mod tests;
