//! What a command printed.

use std::process::Output;

/// What a command that succeeds prints.
#[track_caller]
pub(crate) fn succeeded(output: Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

/// The error of a command that fails.
#[track_caller]
pub(crate) fn refused(output: Output) -> String {
    assert!(!output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    String::from_utf8(output.stderr).expect("text")
}
