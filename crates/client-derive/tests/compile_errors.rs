//! Errors of the macros point at the wrong token and say what to write instead.
//!
//! The expected messages are the compiler's own in part, so they follow the pinned toolchain: after a change of it,
//! `TRYBUILD=overwrite cargo test -p larimar-client-derive` writes them anew for review.

#[test]
fn mistakes_are_reported_at_their_tokens() {
    trybuild::TestCases::new().compile_fail("tests/compile_errors/*.rs");
}
