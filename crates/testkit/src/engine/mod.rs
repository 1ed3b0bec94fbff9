//! The promises of [`larimar_engine::Engine`], one function each, and the macro that tests an engine on all.
//!
//! A promise takes a fresh engine and panics where the engine breaks it. The files follow the contract:
//! [`conditions`], [`order`], [`scans`], [`pages`], [`versions`], [`spaces`], [`concurrency`], [`texts`], [`messages`];
//! [`model`] and [`queue_model`] have the random sequences, [`layer`] engines that behave otherwise.

pub mod concurrency;
pub mod conditions;
pub mod layer;
pub mod message_copies;
pub mod messages;
pub mod model;
pub mod order;
pub mod pages;
pub mod queue_model;
mod rows;
pub mod scans;
pub mod spaces;
pub mod texts;
pub mod versions;

/// Makes one test of each promise for the engines that an expression makes.
///
/// The expression runs once a test and gives something that dereferences to an engine: an `Arc`, or a
/// fixture that also keeps the engine's folder.
///
/// ```ignore
/// testkit::engine_conformance!(std::sync::Arc::new(MemoryEngine::new()));
/// ```
#[macro_export]
macro_rules! engine_conformance {
    ($make:expr) => {
        $crate::promises!(
            $make,
            conditions {
                a_row_that_was_put_is_read_back_with_its_version,
                absent_admits_only_a_missing_row,
                present_admits_only_an_existing_row,
                a_version_admits_only_that_version,
                a_row_inserted_again_does_not_match_its_old_version,
                delete_removes_the_row_and_any_condition_lets_it_pass_twice,
                check_changes_nothing,
                the_first_failing_condition_is_named,
                a_failed_condition_leaves_nothing_of_the_batch,
                an_edit_sees_the_current_bytes,
                an_edit_sees_no_bytes_where_no_row_is,
                an_edit_runs_under_its_condition,
                a_refused_edit_names_its_reason_and_leaves_nothing,
                an_edit_of_a_row_returns_its_value,
                a_batch_of_a_hundred_rows_is_applied_whole,
                rows_beside_a_batch_are_written_with_it_or_not_at_all,
                bodies_of_any_size_and_bytes_come_back,
            }
        );
        $crate::promises!(
            $make,
            order {
                rows_come_in_the_order_of_utf16_code_units,
                partitions_sort_before_rows,
                a_prefix_sorts_before_its_extension,
                ranges_hold_their_start_but_not_their_end,
                a_partition_range_holds_that_partition_only,
                a_point_range_holds_one_row,
                empty_and_inverted_ranges_hold_nothing,
                ranges_between_rows_find_the_rows_between,
            }
        );
        $crate::promises!(
            $make,
            scans {
                a_scan_of_all_visits_every_row_once,
                a_scan_that_stops_resumes_at_the_row_it_stopped_at,
                a_scan_that_pauses_lets_others_run_and_goes_on,
                a_row_budget_is_kept_and_resumed_without_gap_or_repeat,
                a_budget_that_suffices_leaves_nothing_to_resume,
                a_scan_without_budget_still_advances,
                a_scan_past_its_deadline_still_advances,
                a_resumed_scan_sees_what_was_written_meanwhile,
                a_scan_sees_the_newest_version_of_each_row_once,
                a_scan_does_not_see_other_spaces,
                a_scan_of_a_missing_space_is_refused,
            }
        );
        $crate::promises!(
            $make,
            pages {
                a_page_over_several_ranges_is_one_moment,
                a_page_that_filters_many_rows_is_one_moment,
                a_page_of_points_is_one_moment,
                a_page_of_a_partition_is_one_moment,
                a_snapshot_that_is_read_in_pieces_is_one_moment,
                keys_are_looked_up_in_their_order,
                a_snapshot_shows_what_was_acknowledged_before_and_nothing_later,
                pages_of_random_filters_are_one_moment,
            }
        );
        $crate::promises!(
            $make,
            versions {
                versions_are_not_before_the_time_of_the_write,
                versions_increase_when_the_clock_stands_still,
                versions_increase_when_the_clock_jumps_back,
                versions_increase_over_delete_and_insert,
                versions_increase_over_transactions,
                a_failed_write_does_not_change_the_version,
                every_row_of_a_batch_gets_its_version,
                restored_rows_keep_their_versions_and_later_ones_are_greater,
                the_time_of_the_store_is_that_of_its_versions,
            }
        );
        $crate::promises!(
            $make,
            spaces {
                a_space_is_created_once,
                creating_an_existing_space_keeps_its_bytes,
                names_are_told_apart_by_account_and_spelling,
                spaces_are_listed_in_order_from_a_name_on,
                the_bytes_of_a_space_can_be_changed,
                a_space_is_renamed_with_its_rows,
                a_space_is_dropped_only_as_it_was_seen,
                a_dropped_space_is_gone,
                numbers_of_spaces_are_never_reused,
                a_space_created_again_is_empty,
                writes_to_a_dropped_space_are_refused,
                dropping_one_space_leaves_the_others,
                rows_of_a_dropped_container_are_kept_until_they_are_forgotten,
                the_system_space_always_exists,
                accounts_are_listed_in_order,
                an_engine_is_ready,
            }
        );
        $crate::promises!(
            $make,
            concurrency {
                concurrent_edits_of_one_row_lose_no_update,
                concurrent_edits_return_the_values_that_were_committed,
                concurrent_compare_and_swap_loses_no_update,
                one_of_many_concurrent_inserts_wins,
                concurrent_transactions_never_interleave,
                a_scan_is_one_snapshot,
                readers_never_see_versions_go_back,
                an_acknowledged_write_is_seen_by_every_later_read,
                no_write_succeeds_after_a_drop_is_acknowledged,
                one_of_many_concurrent_creations_wins,
                writers_of_many_partitions_do_not_disturb_each_other,
            }
        );
        $crate::promises!(
            $make,
            texts {
                any_text_is_a_key,
                keys_that_would_collide_when_joined_are_told_apart,
                the_longest_keys_are_kept,
                range_bounds_may_be_any_text,
                resume_positions_survive_any_text,
            }
        );
        $crate::promises!(
            $make,
            message_copies { restored_messages_are_as_they_were, restored_receipts_of_any_nonce_hold }
        );
        $crate::promises!(
            $make,
            messages {
                a_message_is_claimed_as_it_was_put,
                texts_of_any_bytes_up_to_64_kib_come_back,
                a_claimed_message_is_visible_again_exactly_when_its_time_is_over,
                a_delayed_message_is_visible_when_its_time_has_come,
                the_dequeue_count_counts_claims_only,
                peek_shows_visible_messages_and_changes_nothing,
                the_receipt_of_a_put_is_good_at_once,
                a_receipt_dies_when_the_message_is_claimed_again,
                a_receipt_survives_the_end_of_its_timeout,
                an_update_changes_text_and_visibility_only,
                an_update_may_not_hide_a_message_beyond_its_expiry,
                a_stale_receipt_is_told_from_a_missing_message,
                an_expired_message_is_gone,
                a_message_may_live_for_ever,
                clear_removes_visible_and_hidden_messages,
                the_count_follows_the_messages,
                messages_come_in_the_order_they_became_visible,
                a_claim_returns_at_most_as_many_as_asked,
                a_dropped_queue_is_refused_everywhere,
                many_consumers_get_every_message_once,
                one_of_many_concurrent_uses_of_a_receipt_wins,
                a_caller_who_goes_away_loses_no_message,
            }
        );
    };
}

/// Makes a module of tests from the promises of one file.
#[doc(hidden)]
#[macro_export]
macro_rules! promises {
    ($make:expr, $module:ident { $($name:ident),+ $(,)? }) => {
        mod $module {
            #[allow(unused_imports, reason = "the expression may name what the caller imported")]
            use super::*;
            $(
                #[test]
                fn $name() {
                    $crate::promise::keep(|| async {
                        let engine = $make;
                        $crate::engine::$module::$name(&*engine).await;
                    });
                }
            )+
        }
    };
}

#[cfg(test)]
mod tests {
    /// A promise that no engine is held to is no promise.
    #[test]
    fn every_promise_is_in_the_macro() {
        let list = include_str!("mod.rs");
        for source in [
            include_str!("concurrency.rs"),
            include_str!("conditions.rs"),
            include_str!("messages.rs"),
            include_str!("order.rs"),
            include_str!("pages.rs"),
            include_str!("scans.rs"),
            include_str!("spaces.rs"),
            include_str!("texts.rs"),
            include_str!("versions.rs"),
        ] {
            let names = source.lines().filter_map(|line| line.strip_prefix("pub async fn ")?.split('(').next());
            let missing: Vec<_> = names.filter(|name| !list.contains(&format!(" {name},"))).collect();
            assert_eq!(missing, Vec::<&str>::new());
        }
    }
}
