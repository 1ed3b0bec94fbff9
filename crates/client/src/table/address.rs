//! The paths of tables and entities.

use larimar_wire::uri;

/// The path of an entity, its keys quoted and escaped.
pub(crate) fn entity_path(table: &str, partition_key: &str, row_key: &str) -> String {
    let mut path = String::with_capacity(table.len() + partition_key.len() + row_key.len() + 32);
    path.push('/');
    escape(&mut path, table);
    path.push_str("(PartitionKey='");
    quoted(&mut path, partition_key);
    path.push_str("',RowKey='");
    quoted(&mut path, row_key);
    path.push_str("')");
    path
}

/// The path of a table's entities.
pub(crate) fn table_path(table: &str) -> String {
    let mut path = String::with_capacity(table.len() + 3);
    path.push('/');
    escape(&mut path, table);
    path
}

fn quoted(path: &mut String, key: &str) {
    let mut pieces = key.split('\'');
    escape(path, pieces.next().unwrap_or_default());
    for piece in pieces {
        path.push_str("''");
        escape(path, piece);
    }
}

fn escape(path: &mut String, text: &str) {
    uri::encode(path, text, uri::is_unreserved);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_quoted_and_escaped() {
        assert_eq!(entity_path("t", "O'Neil", "a b/ü"), "/t(PartitionKey='O''Neil',RowKey='a%20b%2F%C3%BC')");
    }
}
