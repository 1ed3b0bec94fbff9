//! The types of columns that have none, from all of their values.

use super::read::{CELLS_MAX, Records, header, type_of};
use crate::format::FormatError;
use crate::format::properties::is_system;
use crate::format::reader::Source;
use larimar_model::EdmType;
use larimar_model::column::InferredType;
use std::collections::HashMap;
use std::io::Read;

/// What was found out about a file.
#[derive(Clone, Debug)]
pub struct Inferred {
    /// The types of columns that have no type column.
    pub types: HashMap<String, EdmType>,
    /// How many rows were read.
    pub rows: u64,
}

/// Infers the type of every column that has no type column, from all of its values ([`InferredType`]).
///
/// # Errors
/// A file that cannot be read to its end.
pub fn infer(input: impl Read + Send + 'static, rows_max: u64) -> Result<Inferred, FormatError> {
    let mut records = Records::new(Source::new(Box::new(input))?);
    let names = header(&mut records)?;
    let mut types: Vec<Option<InferredType>> = names
        .iter()
        .map(|name| {
            let has_types = names.iter().any(|other| type_of(other) == Some(name));
            (!has_types && !is_system(name) && type_of(name).is_none()).then(InferredType::default)
        })
        .collect();
    let mut rows = 0;
    while rows < rows_max && records.next(CELLS_MAX)?.is_some() {
        rows += 1;
        if records.len() == names.len() {
            types.iter_mut().zip(records.cells()).for_each(|(of_column, cell)| {
                if let Some(inferred) = of_column {
                    inferred.see(cell);
                }
            });
        }
    }
    let types = names.into_iter().zip(types).filter_map(|(name, inferred)| Some((name, inferred?.edm_type())));
    Ok(Inferred { types: types.collect(), rows })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_with_types_of_their_own_are_left_alone() {
        let csv = "PartitionKey,A,B,B@type\r\n1,2,3,Edm.Int64\r\n1,-4,5,Edm.Int64\r\n1,broken\r\n";
        let inferred = infer(std::io::Cursor::new(csv), u64::MAX).expect("CSV");
        assert_eq!(inferred.types, HashMap::from([("A".to_owned(), EdmType::Int32)]));
        assert_eq!(inferred.rows, 3);
    }
}
