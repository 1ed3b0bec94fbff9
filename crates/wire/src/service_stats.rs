//! The statistics of an account's Table service, as XML: the state of its replication.

use crate::signature::http_date;
use crate::xml;
use larimar_model::Timestamp;

/// The state of the secondary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Replication {
    /// The secondary is up to date as of this time.
    Live(Timestamp),
    /// The secondary is being filled.
    Bootstrap,
    /// The secondary cannot be reached.
    Unavailable,
}

impl Replication {
    /// Appends the body of Get Table Service Stats.
    pub fn write(self, out: &mut Vec<u8>) {
        let (status, last_sync) = match self {
            Self::Live(time) => ("live", http_date(time)),
            Self::Bootstrap => ("bootstrap", String::new()),
            Self::Unavailable => ("unavailable", String::new()),
        };
        xml::write_start(out);
        xml::write_element(out, "StorageServiceStats", |out| {
            xml::write_element(out, "GeoReplication", |out| {
                xml::write_text(out, "Status", status);
                xml::write_text(out, "LastSyncTime", &last_sync);
            });
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stats_are_written_as_the_service_does() {
        let time = Timestamp::parse("2021-10-18T23:44:02.5Z").expect("a time");
        for (state, expected) in [
            (
                Replication::Live(time),
                "<Status>live</Status><LastSyncTime>Mon, 18 Oct 2021 23:44:02 GMT</LastSyncTime>",
            ),
            (Replication::Unavailable, "<Status>unavailable</Status><LastSyncTime />"),
            (Replication::Bootstrap, "<Status>bootstrap</Status><LastSyncTime />"),
        ] {
            let mut out = Vec::new();
            state.write(&mut out);
            assert_eq!(
                String::from_utf8(out).expect("UTF-8"),
                format!(
                    "\u{FEFF}<?xml version=\"1.0\" encoding=\"utf-8\"?><StorageServiceStats><GeoReplication>{expected}</GeoReplication></StorageServiceStats>"
                )
            );
        }
    }
}
