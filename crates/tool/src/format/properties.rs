//! Names of columns as names of properties.

/// The property's name for a column: characters that the service does not take become underscores.
pub(crate) fn property_name(column: &str) -> String {
    let mut name: String =
        column.trim().chars().map(|char| if char == '_' || char.is_alphanumeric() { char } else { '_' }).collect();
    if !name.starts_with(|char: char| char == '_' || char.is_alphabetic()) {
        name.insert(0, '_');
    }
    name
}

/// Whether the service sets this property itself or has it as a key, so that it is not written as a property.
pub(crate) fn is_system(name: &str) -> bool {
    matches!(name, "PartitionKey" | "RowKey" | "Timestamp") || name.starts_with("odata.")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_become_names_that_the_service_takes() {
        for (column, name) in [
            ("Name", "Name"),
            ("First Name", "First_Name"),
            ("zip-code", "zip_code"),
            ("2024", "_2024"),
            ("", "_"),
            (" größe ", "größe"),
            ("a.b", "a_b"),
        ] {
            assert_eq!(property_name(column), name);
        }
    }
}
