//! Integration tests of the backups: one program, a module for each subject.

mod round_trip;
