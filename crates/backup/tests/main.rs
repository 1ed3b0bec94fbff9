//! Integration tests of the backups: one program, a module for each subject.

mod archived;
mod encryption;
mod object_store;
mod removal;
mod round_trip;
mod single;
