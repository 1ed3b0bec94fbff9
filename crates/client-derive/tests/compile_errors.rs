//! What the macros refuse is told at the token at fault, with a way out.
//!
//! The expected messages are the compiler's own in part, so they follow the pinned toolchain: after a change of it,
//! `TRYBUILD=overwrite cargo test -p larimar-client-derive` writes them anew for review.

#[test]
fn mistakes_are_told_where_they_are() {
    trybuild::TestCases::new().compile_fail("tests/compile_errors/*.rs");
}
