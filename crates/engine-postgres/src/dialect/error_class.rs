//! What the code of an error means for the statement that failed.

/// The classes of error codes. The engine decides by them whether to repeat a statement, to look its writes up, or to
/// report the error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ErrorClass {
    /// A guard in the statement failed, or a row to insert exists. Nothing took effect.
    Guard,
    /// Nothing took effect, and another attempt may succeed: a deadlock, a conflict with another transaction.
    Again,
    /// Nothing took effect: another session has locked a row for too long.
    Locked,
    /// Nothing took effect, and another connection may succeed: this one leads to a server that accepts no writes, or
    /// its prepared statements are out of date.
    Elsewhere,
    /// Whether the statement took effect is unknown. Reads are repeated, and writes are looked up by their tokens.
    Unknown,
    /// The database refused the statement. Nothing took effect.
    Refused,
}

/// The classes of the codes that mean the same on every database.
pub(super) fn common(code: &str) -> ErrorClass {
    match code {
        // division_by_zero (how guards fail), unique_violation
        "22012" | "23505" => ErrorClass::Guard,
        // serialization_failure, deadlock_detected
        "40001" | "40P01" => ErrorClass::Again,
        // lock_not_available
        "55P03" => ErrorClass::Locked,
        // read_only_sql_transaction; feature_not_supported and invalid_sql_statement_name are the errors of a statement
        // that was prepared before the tables changed
        "25006" | "0A000" | "26000" => ErrorClass::Elsewhere,
        // statement_completion_unknown
        "40003" => ErrorClass::Unknown,
        // Errors of the connection, and of a server that shuts down: a commit may have been done before.
        _ if code.starts_with("08") || code.starts_with("57P") => ErrorClass::Unknown,
        _ => ErrorClass::Refused,
    }
}

/// What the tests of all databases expect.
#[cfg(test)]
pub(super) const COMMON: [(&str, ErrorClass); 16] = [
    ("22012", ErrorClass::Guard),
    ("23505", ErrorClass::Guard),
    ("40001", ErrorClass::Again),
    ("40P01", ErrorClass::Again),
    ("55P03", ErrorClass::Locked),
    ("25006", ErrorClass::Elsewhere),
    ("0A000", ErrorClass::Elsewhere),
    ("26000", ErrorClass::Elsewhere),
    ("40003", ErrorClass::Unknown),
    ("08006", ErrorClass::Unknown),
    ("57P01", ErrorClass::Unknown),
    ("57P03", ErrorClass::Unknown),
    // The disk is full, a row is too large for an index, the role may not write, the table is missing.
    ("53100", ErrorClass::Refused),
    ("54000", ErrorClass::Refused),
    ("42501", ErrorClass::Refused),
    ("42P01", ErrorClass::Refused),
];
