//! Names of columns that are no properties.

/// Whether the service sets this property itself or has it as a key, so that it is not written as a property.
pub(crate) fn is_system(name: &str) -> bool {
    larimar_model::is_system_property(name) || name.starts_with("odata.")
}
