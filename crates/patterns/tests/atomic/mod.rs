//! The patterns that finish with the call: each over a server of its own, with its requests counted, and tried hard.

#![allow(clippy::duplicate_mod, reason = "the examples that are tested here share a file, each for itself")]

mod adversity;
mod compound_key;
mod denormalised;
mod encrypted;
mod fixture;
mod log_tail;
mod pages;
mod period_tables;
mod relationships;
mod secondary_index;
mod series;
mod spread_key;
mod unknown;
mod wide_entity;
