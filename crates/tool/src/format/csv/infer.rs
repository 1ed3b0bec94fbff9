//! The types of columns that have none, from all of their values.

use super::read::{CELLS_MAX, Records, header, type_of};
use crate::format::FormatError;
use crate::format::edm;
use crate::format::properties::is_system;
use crate::format::reader::Source;
use larimar_model::EdmType;
use std::collections::HashMap;
use std::io::Read;

/// Types in the order in which they are tried.
const TRIED: [EdmType; 6] =
    [EdmType::Boolean, EdmType::Int32, EdmType::Int64, EdmType::Double, EdmType::DateTime, EdmType::Guid];

/// What was found out about a file.
#[derive(Clone, Debug)]
pub struct Inferred {
    /// The types of columns that have no type column.
    pub types: HashMap<String, EdmType>,
    /// How many rows were read.
    pub rows: u64,
}

/// Infers the type of every column that has no type column: the first of Boolean, Int32, Int64, Double, DateTime and Guid
/// that all its values are of, or String. Numbers with leading zeros or a plus sign are texts, so that postal codes and
/// telephone numbers stay what they are.
///
/// # Errors
/// A file that cannot be read to its end.
pub fn infer(input: impl Read + Send + 'static, rows_max: u64) -> Result<Inferred, FormatError> {
    let mut records = Records::new(Source::new(Box::new(input))?);
    let names = header(&mut records)?;
    let mut open: Vec<Option<u8>> = names
        .iter()
        .map(|name| {
            let has_types = names.iter().any(|other| type_of(other) == Some(name));
            (!has_types && !is_system(name) && type_of(name).is_none()).then_some(0b11_1111)
        })
        .collect();
    let mut seen = vec![false; names.len()];
    let mut rows = 0;
    while rows < rows_max && records.next(CELLS_MAX)?.is_some() {
        rows += 1;
        if records.len() != names.len() {
            continue;
        }
        for ((open, seen), cell) in open.iter_mut().zip(&mut seen).zip(records.cells()) {
            if let Some(types) = open
                && !cell.is_empty()
                && *types != 0
            {
                *seen = true;
                *types = narrowed(*types, cell);
            }
        }
    }
    let inferred = names.into_iter().zip(open).zip(seen).filter_map(|((name, types), seen)| {
        let first = TRIED.iter().enumerate().find(|(index, _)| seen && types.unwrap_or(0) >> index & 1 == 1);
        types.map(|_| (name, first.map_or(EdmType::String, |(_, edm)| *edm)))
    });
    Ok(Inferred { types: inferred.collect(), rows })
}

/// The types that are left after one more value.
fn narrowed(types: u8, cell: &str) -> u8 {
    let mut left = types;
    for (index, edm) in TRIED.iter().enumerate() {
        if left >> index & 1 == 1 && !is_of(*edm, cell) {
            left &= !(1 << index);
        }
        // All that fits the first number type fits the wider ones, too.
        if left >> index & 1 == 1 && matches!(edm, EdmType::Int32 | EdmType::Int64) {
            return left & 0b00_1110;
        }
    }
    left
}

fn is_of(edm: EdmType, cell: &str) -> bool {
    match edm {
        EdmType::Int32 | EdmType::Int64 => is_number(cell, false) && edm::parse(edm, cell).is_some(),
        EdmType::Double => is_number(cell, true) && edm::parse(edm, cell).is_some(),
        _ => cell == cell.trim() && edm::parse(edm, cell).is_some(),
    }
}

/// Whether a text is a number in the form of JSON, of few enough digits to survive as Double.
fn is_number(cell: &str, may_be_fraction: bool) -> bool {
    let digits = cell.strip_prefix('-').unwrap_or(cell).as_bytes();
    let has_leading_zero = digits.len() > 1 && digits[0] == b'0' && digits[1].is_ascii_digit();
    let is_whole = !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
    let starts_and_ends =
        digits.first().is_some_and(u8::is_ascii_digit) && digits.last().is_some_and(u8::is_ascii_digit);
    let fits = digits.iter().filter(|byte| byte.is_ascii_digit()).count() <= DOUBLE_DIGITS_MAX;
    !has_leading_zero && (is_whole && (!may_be_fraction || fits) || may_be_fraction && starts_and_ends && fits)
}

const DOUBLE_DIGITS_MAX: usize = 17;

#[cfg(test)]
mod tests {
    use super::*;

    fn inferred(values: &[&str]) -> EdmType {
        let csv = format!("a,b\r\n{}\r\n", values.iter().map(|value| format!("{value},x\r\n")).collect::<String>());
        infer(std::io::Cursor::new(csv), u64::MAX).expect("CSV").types["a"]
    }

    #[test]
    fn the_narrowest_type_of_all_values_is_taken() {
        for (values, edm) in [
            (&["1", "", "-2"][..], EdmType::Int32),
            (&["1", "5000000000"], EdmType::Int64),
            (&["1", "1.5", "-2e3"], EdmType::Double),
            (&["5000000000", "0.5"], EdmType::Double),
            (&["true", "False"], EdmType::Boolean),
            (&["true", "1"], EdmType::String),
            (&["2024-01-02", "2024-01-02T03:04:05.1234567Z", "2024-01-02 03:04:05"], EdmType::DateTime),
            (&["c9da6455-213d-42c9-9a79-3e9149a57833"], EdmType::Guid),
            (&["1", "2024-01-02"], EdmType::String),
            (&["", ""], EdmType::String),
        ] {
            assert_eq!(inferred(values), edm, "{values:?}");
        }
    }

    #[test]
    fn texts_of_digits_stay_texts() {
        for value in [
            "01234",
            "+49",
            " 1",
            "1 ",
            "12345678901234567890",
            "1.",
            ".5",
            "0x1F",
            "NaN",
            "1_000",
            "-",
            "--1",
            "1e",
            "00",
        ] {
            assert_eq!(inferred(&[value]), EdmType::String, "{value}");
        }
        assert_eq!(inferred(&["0", "-0.5", "0.25"]), EdmType::Double);
    }
}
