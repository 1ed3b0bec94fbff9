//! The text that a token's signature covers, and the token as a query string.

use super::{
    AccountSas, BlobSas, BlobSasScope, ENCRYPTION_SCOPE, IP_AND_PROTOCOL, RESOURCE_WITH_SERVICE, RESPONSE_OVERRIDES,
    SIGNED_RESOURCE, SasFields, SasKind, TableSas,
};
use crate::signature::AccountKey;
use crate::uri;
use std::borrow::Cow;

impl SasFields<'_> {
    /// The text whose MAC is the signature.
    #[must_use]
    pub fn string_to_sign(&self, account: &str) -> String {
        match &self.kind {
            SasKind::Table(table) => self.table_lines(account, table).join("\n"),
            SasKind::Queue(queue) => {
                let resource = self.resource("/queue", account, &queue.queue, None);
                self.common_lines(resource, &queue.policy_id).join("\n")
            }
            SasKind::Blob(blob) => self.blob_lines(account, blob).join("\n"),
            SasKind::Account(fields) => {
                // Unlike the others, this text ends with a line feed.
                let mut text = self.account_lines(account, fields).join("\n");
                text.push('\n');
                text
            }
        }
    }

    /// The token: a query string (without its question mark), signed.
    #[must_use]
    pub fn to_query(&self, account: &str, key: &AccountKey) -> String {
        let signature = key.mac_of(&self.string_to_sign(account)).to_base64();
        let mut out = String::new();
        let mut add = |name: &str, value: &str| {
            if value.is_empty() {
                return;
            }
            if !out.is_empty() {
                out.push('&');
            }
            out.push_str(name);
            out.push('=');
            uri::encode(&mut out, value, uri::is_unreserved);
        };
        add("sv", &self.version);
        match &self.kind {
            SasKind::Table(table) => {
                add("tn", &table.table);
                add("si", text(&table.policy_id));
                add("spk", text(&table.start_partition));
                add("srk", text(&table.start_row));
                add("epk", text(&table.end_partition));
                add("erk", text(&table.end_row));
            }
            SasKind::Queue(queue) => add("si", text(&queue.policy_id)),
            SasKind::Blob(blob) => {
                add("sr", blob.scope.letters());
                add("si", text(&blob.policy_id));
                add("ses", text(&blob.encryption_scope));
                add("rscc", text(&blob.cache_control));
                add("rscd", text(&blob.content_disposition));
                add("rsce", text(&blob.content_encoding));
                add("rscl", text(&blob.content_language));
                add("rsct", text(&blob.content_type));
            }
            SasKind::Account(fields) => {
                add("ss", &fields.services);
                add("srt", &fields.resource_types);
                add("ses", text(&fields.encryption_scope));
            }
        }
        add("sp", text(&self.permissions));
        add("st", text(&self.start));
        add("se", text(&self.expiry));
        add("sip", text(&self.ip));
        add("spr", text(&self.protocol));
        add("sig", &signature);
        out
    }

    fn table_lines<'f>(&'f self, account: &str, table: &'f TableSas<'_>) -> Vec<Cow<'f, str>> {
        let resource = self.resource("/table", account, &table.table.to_ascii_lowercase(), None);
        let mut lines = self.common_lines(resource, &table.policy_id);
        lines.extend([&table.start_partition, &table.start_row, &table.end_partition, &table.end_row].map(line));
        lines
    }

    fn blob_lines<'f>(&'f self, account: &str, fields: &'f BlobSas<'_>) -> Vec<Cow<'f, str>> {
        let (blob, snapshot) = match &fields.scope {
            BlobSasScope::Container => (None, ""),
            BlobSasScope::Blob(blob) => (Some(&**blob), ""),
            BlobSasScope::Snapshot { blob, snapshot } => (Some(&**blob), &**snapshot),
        };
        let resource = self.resource("/blob", account, &fields.container, blob);
        let mut lines = self.common_lines(resource, &fields.policy_id);
        if self.is_since(SIGNED_RESOURCE) {
            lines.extend([fields.scope.letters(), snapshot].map(Cow::Borrowed));
        }
        if self.is_since(ENCRYPTION_SCOPE) {
            lines.push(line(&fields.encryption_scope));
        }
        if self.is_since(RESPONSE_OVERRIDES) {
            lines.extend([&fields.cache_control, &fields.content_disposition, &fields.content_encoding].map(line));
            lines.extend([&fields.content_language, &fields.content_type].map(line));
        }
        lines
    }

    /// The lines that the tokens of all services begin with.
    fn common_lines<'f>(&'f self, resource: String, policy_id: &'f Option<Cow<'_, str>>) -> Vec<Cow<'f, str>> {
        let mut lines = vec![line(&self.permissions), line(&self.start), line(&self.expiry), Cow::Owned(resource)];
        lines.push(line(policy_id));
        if self.is_since(IP_AND_PROTOCOL) {
            lines.extend([line(&self.ip), line(&self.protocol)]);
        }
        lines.push(Cow::Borrowed(&*self.version));
        lines
    }

    fn resource(&self, service: &str, account: &str, name: &str, blob: Option<&str>) -> String {
        let service = if self.is_since(RESOURCE_WITH_SERVICE) { service } else { "" };
        match blob {
            Some(blob) => format!("{service}/{account}/{name}/{blob}"),
            None => format!("{service}/{account}/{name}"),
        }
    }

    fn account_lines<'f>(&'f self, account: &'f str, fields: &'f AccountSas<'_>) -> Vec<Cow<'f, str>> {
        let mut lines = vec![Cow::Borrowed(account), line(&self.permissions)];
        lines.extend([&*fields.services, &*fields.resource_types].map(Cow::Borrowed));
        lines.extend([&self.start, &self.expiry, &self.ip, &self.protocol].map(line));
        lines.push(Cow::Borrowed(&*self.version));
        if self.is_since(ENCRYPTION_SCOPE) {
            lines.push(line(&fields.encryption_scope));
        }
        lines
    }
}

fn line<'f>(field: &'f Option<Cow<'_, str>>) -> Cow<'f, str> {
    Cow::Borrowed(text(field))
}

fn text<'f>(field: &'f Option<Cow<'_, str>>) -> &'f str {
    field.as_deref().unwrap_or_default()
}
