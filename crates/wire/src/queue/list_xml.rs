//! The answer of List Queues.

use super::ListQueues;
use crate::marker;
use crate::xml;
use larimar_model::Metadata;

/// A queue in a listing.
#[derive(Clone, Copy, Debug)]
pub struct ListedQueue<'a> {
    /// The queue's name.
    pub name: &'a str,
    /// Its metadata, if the request asks for it.
    pub metadata: &'a Metadata,
}

/// Appends the answer; `next` is the name that the next page begins with, if there is one.
pub fn write_queue_list<'a>(
    out: &mut Vec<u8>,
    endpoint: &str,
    request: &ListQueues,
    queues: impl IntoIterator<Item = ListedQueue<'a>>,
    next: Option<&str>,
) {
    xml::write_start(out);
    xml::write_element_with(out, "EnumerationResults", &[("ServiceEndpoint", endpoint)], |out| {
        for (name, text) in [("Prefix", &request.prefix), ("Marker", &request.marker)] {
            if let Some(text) = text {
                xml::write_lossy_text(out, name, text);
            }
        }
        if let Some(count) = request.count_max {
            xml::write_text(out, "MaxResults", itoa::Buffer::new().format(count));
        }
        xml::write_element(out, "Queues", |out| {
            for queue in queues {
                xml::write_element(out, "Queue", |out| {
                    xml::write_text(out, "Name", queue.name);
                    if request.metadata {
                        xml::write_metadata(out, queue.metadata);
                    }
                });
            }
        });
        xml::write_text(out, "NextMarker", &next.map(marker::encode).unwrap_or_default());
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::xml::Element;
    use proptest::prelude::*;

    fn text(request: &ListQueues, queues: &[(&str, Metadata)], next: Option<&str>) -> String {
        let mut out = Vec::new();
        let queues = queues.iter().map(|(name, metadata)| ListedQueue { name, metadata });
        write_queue_list(&mut out, "http://127.0.0.1:10001/devstoreaccount1", request, queues, next);
        String::from_utf8(out).expect("UTF-8")
    }

    #[test]
    fn a_list_is_that_of_the_reference() {
        let mut metadata = Metadata::new();
        metadata.insert("Color", "red&blue").expect("metadata");
        let queues = [("q1", metadata), ("q2", Metadata::new())];
        let start = "\u{FEFF}<?xml version=\"1.0\" encoding=\"utf-8\"?><EnumerationResults ServiceEndpoint=\"http://127.0.0.1:10001/devstoreaccount1\">";
        assert_eq!(
            text(&ListQueues::default(), &queues, None),
            format!(
                "{start}<Queues><Queue><Name>q1</Name></Queue><Queue><Name>q2</Name></Queue></Queues><NextMarker /></EnumerationResults>"
            )
        );
        let request = ListQueues {
            prefix: Some("q".to_owned()),
            marker: Some("1!cTE".to_owned()),
            from: Some("q1".to_owned()),
            count_max: Some(2),
            metadata: true,
        };
        assert_eq!(
            text(&request, &queues, Some("q3")),
            format!(
                "{start}<Prefix>q</Prefix><Marker>1!cTE</Marker><MaxResults>2</MaxResults><Queues><Queue><Name>q1</Name><Metadata><Color>red&amp;blue</Color></Metadata></Queue><Queue><Name>q2</Name><Metadata /></Queue></Queues><NextMarker>1!cTM</NextMarker></EnumerationResults>"
            )
        );
    }

    proptest! {
        #[test]
        fn any_list_is_xml(prefix: String, value in "[ -~]{0,20}") {
            let mut metadata = Metadata::new();
            metadata.insert("a", &value).expect("metadata");
            let request = ListQueues { prefix: Some(prefix), metadata: true, ..ListQueues::default() };
            let root = Element::parse(text(&request, &[("q1", metadata)], None).as_bytes()).expect("XML");
            let queue = &root.child("Queues").expect("one").expect("queues").children[0];
            prop_assert_eq!(&queue.child("Metadata").expect("one").expect("metadata").children[0].text, &value);
        }
    }
}
