//! The archive: every commit of a server, in order, from one full backup to the next and beyond.
//!
//! A line (`archive/line.rs`) is an unbroken run of commits. Its commits are in segments (`archive/segment.rs`), whose
//! names say which commits they hold. A line ends where a commit could not be archived; the next one begins with a full
//! backup. A generation names the line that was open when it was taken, so a store can be restored to any commit of that
//! line from there on.

#![allow(dead_code)]

pub(crate) mod line;
pub(crate) mod segment;
