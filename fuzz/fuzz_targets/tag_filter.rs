//! Feeds any bytes to the function of the same name in `larimar_testkit::fuzz_targets`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| larimar_testkit::fuzz_targets::tag_filter(data));
