//! The schema document, `/$metadata`: what the service declares of tables and entities. Properties of entities are open.

use crate::xml;

/// Appends the schema of an account's tables.
pub fn write_schema(out: &mut Vec<u8>, account: &str) {
    out.extend_from_slice(b"<?xml version=\"1.0\" encoding=\"utf-8\" standalone=\"yes\"?>");
    xml::write_element_with(out, "edmx:Edmx", &[("Version", "1.0"), ("xmlns:edmx", EDMX)], |out| {
        let versions = [("xmlns:m", METADATA), ("m:DataServiceVersion", "3.0"), ("m:MaxDataServiceVersion", "3.0")];
        xml::write_element_with(out, "edmx:DataServices", &versions, |out| {
            xml::write_element_with(out, "Schema", &[("Namespace", account), ("xmlns", EDM)], |out| {
                write_type(out, &[("Name", "Tables")], &["TableName"], &[]);
                let entity = [("Name", "Entity"), ("OpenType", "true")];
                write_type(out, &entity, &["PartitionKey", "RowKey"], &[("Timestamp", "Edm.DateTime")]);
                let container = [("Name", account), ("m:IsDefaultEntityContainer", "true")];
                xml::write_element_with(out, "EntityContainer", &container, |out| {
                    let kind = format!("{account}.Tables");
                    xml::write_element_with(out, "EntitySet", &[("Name", "Tables"), ("EntityType", &kind)], |_| {});
                });
            });
        });
    });
}

/// Appends a type with its keys, which are texts, and its other properties.
fn write_type(out: &mut Vec<u8>, attributes: &[(&str, &str)], keys: &[&str], others: &[(&str, &str)]) {
    xml::write_element_with(out, "EntityType", attributes, |out| {
        xml::write_element(out, "Key", |out| {
            for key in keys {
                xml::write_element_with(out, "PropertyRef", &[("Name", key)], |_| {});
            }
        });
        for (name, edm_type) in keys.iter().map(|key| (*key, "Edm.String")).chain(others.iter().copied()) {
            let attributes = [("Name", name), ("Type", edm_type), ("Nullable", "false")];
            xml::write_element_with(out, "Property", &attributes, |_| {});
        }
    });
}

const EDMX: &str = "http://schemas.microsoft.com/ado/2007/06/edmx";
const METADATA: &str = "http://schemas.microsoft.com/ado/2007/08/dataservices/metadata";
const EDM: &str = "http://schemas.microsoft.com/ado/2009/11/edm";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::xml::Element;

    #[test]
    fn the_schema_is_xml_and_declares_what_every_table_has() {
        let mut out = Vec::new();
        write_schema(&mut out, "acct");
        let root = Element::parse(&out).expect("XML");
        let schema = &root.children[0].children[0];
        assert_eq!((root.name.as_str(), schema.name.as_str()), ("Edmx", "Schema"));
        let names: Vec<_> = schema.children.iter().map(|child| child.name.as_str()).collect();
        assert_eq!(names, ["EntityType", "EntityType", "EntityContainer"]);
        let text = String::from_utf8(out).expect("UTF-8");
        for name in ["TableName", "PartitionKey", "RowKey", "Timestamp"] {
            assert!(text.contains(&format!("<Property Name=\"{name}\"")), "{text}");
        }
    }
}
