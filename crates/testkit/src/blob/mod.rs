//! The promises of [`larimar_engine::blob::Blobs`], one function each, and the macro that tests an engine with a store
//! of bytes on all.
//!
//! A promise takes a [`Site`]: an empty container on a fresh engine and a fresh store without a grace period. The files
//! follow the service: [`containers`], [`blobs`], [`blocks`], [`appends`], [`pages`], [`scattered`] (page blobs of many
//! runs), [`snapshots`], [`tiers`], [`copies`], [`incremental`], [`leases`], [`lists`], [`finds`] (by tags); [`lives`]
//! covers what is reclaimed and what is not, [`crashes`] a stop at any engine call, [`reads`] reads during changes,
//! [`concurrency`] and [`incremental_concurrency`] many concurrent callers, [`servers`] several servers that change the
//! same blobs.

pub mod appends;
pub mod blobs;
pub mod blocks;
pub mod concurrency;
pub mod containers;
pub mod copies;
mod counting;
pub mod crashes;
pub mod finds;
pub mod incremental;
pub mod incremental_concurrency;
pub mod leases;
pub mod lists;
pub mod lives;
pub mod pages;
pub mod reads;
pub mod scattered;
pub mod servers;
mod site;
pub mod snapshots;
pub mod tiers;
mod versions;

pub use site::{Kept, Site};

/// Makes one test of each promise for the engines and stores that an expression makes.
///
/// The expression runs once a test, in a runtime, and gives an engine and a store, each in an `Arc`, and something that
/// is kept until the test ends ([`Kept`]), such as a folder.
///
/// ```ignore
/// testkit::blob_conformance!((Arc::new(MemoryEngine::new()), Arc::new(MemoryBytes::new(Duration::ZERO)), ()));
/// ```
#[macro_export]
macro_rules! blob_conformance {
    ($make:expr) => {
        $crate::blob_promises!(
            $make,
            containers {
                a_container_is_created_once_and_found,
                containers_are_listed_by_prefix_page_by_page,
                a_deleted_container_is_gone_with_its_blobs,
                metadata_and_access_change_the_etag,
                a_leased_container_is_deleted_only_with_the_lease,
            }
        );
        $crate::blob_promises!(
            $make,
            blobs {
                a_blob_is_read_as_it_was_put,
                ranges_are_read_and_cut_at_the_end,
                a_missing_blob_is_not_found,
                an_overwrite_replaces_everything,
                conditions_guard_reads_and_writes,
                conditions_on_tags_guard_reads_and_writes,
                properties_that_are_not_content_keep_the_etag,
                changes_have_increasing_etags,
                any_name_is_kept_apart,
            }
        );
        $crate::blob_promises!(
            $make,
            blocks {
                a_list_makes_a_blob_in_its_order,
                blocks_are_out_of_sight_until_they_are_committed,
                entries_choose_between_committed_and_uncommitted,
                an_unknown_block_refuses_the_list,
                a_commit_drops_what_it_does_not_name,
                ids_have_one_length,
                other_types_have_no_blocks,
                a_long_list_is_read_in_ranges,
                too_long_a_list_is_refused,
                a_list_of_fifty_thousand_blocks_is_committed,
                too_many_uncommitted_blocks_are_refused,
            }
        );
        $crate::blob_promises!(
            $make,
            appends {
                appends_follow_each_other,
                appends_are_conditional,
                many_appends_are_read_in_ranges,
                a_sealed_blob_takes_no_more
            }
        );
        $crate::blob_promises!(
            $make,
            pages {
                pages_are_written_and_cleared_in_place,
                pages_outside_of_the_blob_are_refused,
                a_resized_blob_forgets_what_was_cut_off,
                sequence_numbers_guard_writes,
                random_writes_read_as_an_array_does,
                changes_since_a_snapshot_are_told,
            }
        );
        $crate::blob_promises!(
            $make,
            scattered {
                scattered_pages_are_written_in_small_rows,
                small_writes_over_a_full_region_copy_little,
                a_page_blob_with_many_snapshots_reads_few_rows,
                scattered_pages_of_all_versions_read_as_arrays_do,
                payloads_that_small_rows_hide_are_removed_with_the_next_long_row,
            }
        );
        $crate::blob_promises!(
            $make,
            snapshots {
                a_snapshot_keeps_what_was_there,
                snapshots_of_pages_and_appends_stay,
                a_blob_with_snapshots_is_deleted_only_with_them,
                one_snapshot_is_deleted_alone,
                snapshots_at_one_time_are_distinct,
                an_overwrite_does_not_read_all_snapshots,
            }
        );
        $crate::blob_promises!($make, tiers { archived_blobs_come_back });
        $crate::blob_promises!(
            $make,
            copies {
                a_copy_has_bytes_blocks_and_properties,
                a_copy_of_pages_keeps_the_holes,
                a_copy_checks_both_sides,
                bytes_are_copied_into_blocks,
                a_blob_is_copied_onto_itself,
            }
        );
        $crate::blob_promises!(
            $make,
            incremental {
                each_incremental_copy_is_a_snapshot_of_the_destination,
                an_incremental_copy_costs_what_differs,
                incremental_copies_read_as_their_sources_wherever_the_engine_stops,
                the_destination_of_incremental_copies_is_for_copies_only,
                incremental_copies_are_checked,
            }
        );
        $crate::blob_promises!(
            $make,
            incremental_concurrency {
                incremental_copies_at_once_are_made_one_after_the_other,
                an_incremental_copy_beside_other_changes_is_whole,
            }
        );
        $crate::blob_promises!(
            $make,
            leases {
                a_leased_blob_is_written_only_with_the_lease,
                a_lease_ends_with_its_time,
                lease_operations_keep_the_etag,
            }
        );
        $crate::blob_promises!(
            $make,
            lists {
                blobs_are_listed_in_order_page_by_page,
                a_delimiter_joins_names,
                snapshots_are_listed_before_their_blob,
                uncommitted_blobs_are_listed_on_demand,
                a_page_costs_the_page,
                any_walk_of_pages_tells_everything_once,
            }
        );
        $crate::blob_promises!(
            $make,
            finds {
                blobs_are_found_by_their_tags,
                what_is_found_follows_every_change,
                pages_find_everything_once_and_read_little,
                a_search_without_a_result_is_bounded,
                an_account_is_searched_container_by_container,
                a_deleted_container_has_nothing_to_find,
                blobs_without_entries_are_found_once_the_index_is_built,
                entries_that_were_left_behind_are_not_seen_and_removed,
                a_blob_is_found_once_while_its_tags_change,
                the_index_agrees_with_the_blobs_wherever_the_engine_stops,
            }
        );
        $crate::blob_promises!(
            $make,
            lives {
                what_is_replaced_or_deleted_is_removed,
                a_block_that_is_put_again_leaves_nothing,
                refused_writes_leave_nothing,
                commits_and_snapshots_keep_what_they_share,
                a_sweep_removes_what_a_container_left,
                the_bytes_of_a_deleted_container_are_reclaimed,
                a_write_that_a_sweep_overtakes_is_refused,
                a_write_under_way_is_not_swept,
                a_sweep_beside_a_commit_takes_nothing_committed,
                what_a_sweep_remembers_is_forgotten_after_a_day,
                blocks_that_nobody_commits_are_removed_after_a_week,
            }
        );
        $crate::blob_promises!(
            $make,
            crashes {
                cleared_pages_do_not_show_a_snapshot_whose_clean_up_did_not_run,
                versions_keep_their_pages_wherever_the_engine_stops,
                versions_keep_their_appends_wherever_the_engine_stops,
                versions_keep_their_blocks_wherever_the_engine_stops,
            }
        );
        $crate::blob_promises!(
            $make,
            reads {
                an_etag_comes_with_the_pages_of_its_version,
                a_list_of_pages_is_of_one_version,
                changes_since_a_snapshot_that_is_deleted_meanwhile_are_refused,
                a_copy_of_pages_is_of_one_version,
                a_list_of_blocks_is_of_one_version,
                a_listing_beside_changes_has_each_version_once,
            }
        );
        $crate::blob_promises!(
            $make,
            concurrency {
                parallel_blocks_make_one_blob,
                concurrent_overwrites_leave_one_whole_content,
                one_of_many_lease_acquires_wins,
                concurrent_appends_lose_nothing,
                one_of_many_conditional_creations_wins,
                readers_beside_writers_see_whole_blobs,
                readers_of_pages_see_whole_copies,
                snapshots_and_commits_keep_what_they_point_to,
            }
        );
        $crate::blob_promises!(
            $make,
            servers {
                three_servers_keep_every_snapshot_they_acknowledge,
                a_block_that_is_committed_beside_a_cleaning_stays,
                a_block_that_is_put_again_beside_a_commit_stays,
                pages_written_beside_a_cleaning_stay,
            }
        );
    };
}

/// Makes a module of tests from the promises of one file.
#[doc(hidden)]
#[macro_export]
macro_rules! blob_promises {
    ($make:expr, $module:ident { $($name:ident),+ $(,)? }) => {
        mod $module {
            #[allow(unused_imports, reason = "the expression may name what the caller imported")]
            use super::*;
            $(
                #[test]
                fn $name() {
                    $crate::promise::keep(|| async {
                        let (engine, bytes, kept) = $make;
                        let site = $crate::blob::Site::open(engine, bytes, kept).await;
                        $crate::blob::$module::$name(&site).await;
                    });
                }
            )+
        }
    };
}

#[cfg(test)]
mod tests {
    /// Every promise is tested on every engine.
    #[test]
    fn every_promise_is_in_the_macro() {
        let list = include_str!("mod.rs");
        for source in [
            include_str!("appends.rs"),
            include_str!("blobs.rs"),
            include_str!("blocks.rs"),
            include_str!("concurrency.rs"),
            include_str!("containers.rs"),
            include_str!("copies.rs"),
            include_str!("crashes.rs"),
            include_str!("finds.rs"),
            include_str!("incremental.rs"),
            include_str!("incremental_concurrency.rs"),
            include_str!("leases.rs"),
            include_str!("lists.rs"),
            include_str!("lives.rs"),
            include_str!("pages.rs"),
            include_str!("reads.rs"),
            include_str!("scattered.rs"),
            include_str!("servers.rs"),
            include_str!("snapshots.rs"),
        ] {
            let names = source.lines().filter_map(|line| line.strip_prefix("pub async fn ")?.split(['(', '<']).next());
            let is_listed =
                |name: &str| list.split(|c: char| !c.is_alphanumeric() && c != '_').any(|word| word == name);
            let missing: Vec<_> = names.filter(|name| !is_listed(name)).collect();
            assert_eq!(missing, Vec::<&str>::new());
        }
    }
}
