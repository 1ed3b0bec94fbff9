//! Integration tests of the backups: one program, a module for each subject.

mod encryption;
mod removal;
mod round_trip;
