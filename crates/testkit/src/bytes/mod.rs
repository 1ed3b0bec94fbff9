//! The promises of [`larimar_engine::blob::bytes::ByteStore`], one function each, and the macro that tests a store on
//! all.
//!
//! A promise takes a fresh store without a time of grace, and panics where the store breaks it: [`payloads`] for what
//! is written and read, [`lives`] for what is removed and what is not.

pub mod lives;
pub mod payloads;

use larimar_engine::blob::bytes::{ByteStore, ByteWriter, Bytes, Extent, Owner, Owners};
use larimar_engine::{Fault, SpaceId};
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// Makes one test of each promise for the stores that an expression makes.
///
/// The expression runs once a test, in a runtime, and gives something that dereferences to a store.
///
/// ```ignore
/// testkit::bytes_conformance!(std::sync::Arc::new(MemoryBytes::new(Duration::ZERO)));
/// ```
#[macro_export]
macro_rules! bytes_conformance {
    ($make:expr) => {
        $crate::byte_promises!(
            $make,
            payloads {
                bytes_come_back,
                ranges_across_frames_come_back,
                an_empty_payload_is_a_payload,
                a_read_beyond_the_end_ends_there,
                a_read_returns_a_bounded_number_of_bytes,
                pieces_of_any_size_are_joined,
                an_expectation_may_be_wrong,
                concurrent_writers_do_not_mix,
                many_megabytes_come_back,
                payloads_are_counted,
            }
        );
        $crate::byte_promises!(
            $make,
            lives {
                a_writer_that_is_dropped_leaves_nothing,
                a_discarded_payload_is_removed,
                discarding_one_payload_leaves_the_others,
                a_payload_may_be_discarded_twice,
                an_unknown_payload_is_not_read,
                a_sweep_removes_what_nothing_points_to_and_keeps_the_rest,
                a_sweep_asks_the_owner_that_was_named,
                a_sweep_beside_writers_loses_nothing,
                a_sweep_that_gets_no_answer_removes_nothing,
            }
        );
    };
}

/// Makes a module of tests from the promises of one file.
#[doc(hidden)]
#[macro_export]
macro_rules! byte_promises {
    ($make:expr, $module:ident { $($name:ident,)+ }) => {
        mod $module {
            #[allow(unused_imports, reason = "the expression may name what the caller imported")]
            use super::*;
            $(
                #[test]
                fn $name() {
                    $crate::promise::keep(|| async {
                        let store = $make;
                        $crate::bytes::$module::$name(&*store).await;
                    });
                }
            )+
        }
    };
}

/// The owner that promises write for, unless they need others.
pub const OWNER: Owner<'static> = Owner { space: SpaceId(7), blob: "folder/blob" };

/// Bytes that are different for each seed, and do not repeat at the size of a frame.
#[must_use]
pub fn payload(seed: u64, length: usize) -> Bytes {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut bytes = Vec::with_capacity(length + 8);
    while bytes.len() < length {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        bytes.extend_from_slice(&state.to_le_bytes());
    }
    bytes.truncate(length);
    bytes.into()
}

/// Writes a payload whose size is announced.
pub async fn put(store: &impl ByteStore, owner: Owner<'_>, bytes: &Bytes) -> Result<Extent, Fault> {
    let mut writer = store.begin(owner, Some(bytes.len() as u64)).await?;
    writer.write(bytes.clone()).await?;
    writer.finish().await
}

/// Reads a whole payload.
pub async fn read_all(store: &impl ByteStore, extent: &Extent) -> Result<Bytes, Fault> {
    let mut all = Vec::with_capacity(extent.length as usize);
    while (all.len() as u64) < extent.length {
        let bytes = store.read(extent, all.len() as u64..extent.length).await?;
        assert!(!bytes.is_empty(), "a read inside a payload returned nothing");
        all.extend_from_slice(&bytes);
    }
    Ok(all.into())
}

/// Waits until something holds, for half a minute at most.
///
/// # Panics
///
/// If it does not hold by then.
pub async fn eventually<F: Future<Output = bool>>(what: &str, mut holds: impl FnMut() -> F) {
    let until = Instant::now() + Duration::from_secs(30);
    while !holds().await {
        assert!(Instant::now() < until, "not within half a minute: {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Owners that point to some payloads.
#[derive(Clone, Debug, Default)]
pub struct Rows(pub BTreeSet<(SpaceId, String, Extent)>);

impl Rows {
    /// The owner points to the payload.
    pub fn point(&mut self, owner: Owner<'_>, extent: Extent) {
        self.0.insert((owner.space, owner.blob.to_owned(), extent));
    }
}

impl Owners for Rows {
    async fn release(&self, owner: Owner<'_>, extents: &[Extent]) -> Result<Vec<bool>, Fault> {
        let is_unowned = |extent: &Extent| !self.0.contains(&(owner.space, owner.blob.to_owned(), *extent));
        Ok(extents.iter().map(is_unowned).collect())
    }
}

#[cfg(test)]
mod tests {
    /// A promise that no store is held to is no promise.
    #[test]
    fn every_promise_is_in_the_macro() {
        let list = include_str!("mod.rs");
        for source in [include_str!("lives.rs"), include_str!("payloads.rs")] {
            let names = source.lines().filter_map(|line| line.strip_prefix("pub async fn ")?.split('(').next());
            let missing: Vec<_> = names.filter(|name| !list.contains(&format!(" {name},"))).collect();
            assert_eq!(missing, Vec::<&str>::new());
        }
    }
}
