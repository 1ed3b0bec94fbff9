//! The end of a request: its reply is counted as bytes in flight and becomes a response.

use super::RequestTrace;
use crate::body::RequestBody;
use crate::cors;
use crate::in_flight::{Held, Share, UNCOUNTED_BYTES};
use crate::reply::{Reply, ResponseBody};
use crate::spelling;
use hyper::ext::ReasonPhrase;
use hyper::header::{CONTENT_TYPE, HeaderName, HeaderValue, SERVER};
use hyper::{Response, StatusCode};
use larimar_model::Timestamp;
use larimar_wire::error_body::ErrorReply;
use larimar_wire::request_head::RequestHead;

/// Counts the body of a response, with the room that was taken for it or with what its request held. The response to a
/// change is sent in any case. A read for which there is no room is dropped; the error is the number of bytes it needs.
pub(super) fn counted(
    mut reply: Reply,
    room: Option<Held>,
    share: &Share,
    body: &mut RequestBody,
) -> Result<Reply, u64> {
    if reply.body.len() as u64 <= UNCOUNTED_BYTES {
        reply.held = None;
        return Ok(reply);
    }
    if reply.body.capacity() > reply.body.len() / 4 * 5 {
        reply.body.shrink_to_fit();
    }
    let bytes = reply.body.capacity() as u64;
    let held = room.or_else(|| reply.held.take());
    let held = if reply.is_read { held } else { held.or_else(|| body.take_held()) };
    let (held, has_room) = match held {
        Some(mut held) => {
            let has_room = held.try_resize(bytes);
            (Some(held), has_room)
        }
        None => {
            let held = share.try_take(bytes);
            let has_room = held.is_some();
            (held, has_room)
        }
    };
    if !has_room && reply.is_read {
        return Err(bytes);
    }
    reply.held = held;
    Ok(reply)
}

/// Makes the response, with the headers that every response has.
pub(super) fn finish(
    reply: Reply,
    server: &'static str,
    head: &RequestHead<'_>,
    request_id: &str,
    trace: &RequestTrace,
) -> Response<ResponseBody> {
    let mut headers = reply.headers;
    headers.insert(SERVER, HeaderValue::from_static(server));
    for (name, value) in [
        (HeaderName::from_static("x-ms-request-id"), Some(request_id)),
        (HeaderName::from_static("x-ms-version"), head.raw_header("x-ms-version")),
        (HeaderName::from_static("x-ms-client-request-id"), head.client_request_id()),
    ] {
        if let Some(Ok(value)) = value.map(HeaderValue::from_str) {
            headers.insert(name, value);
        }
    }
    cors::add_headers(&mut headers, &trace.cors, head);
    if head.method == "HEAD" && reply.status >= 300 {
        // The type would be that of a document which HEAD does not send; clients in C++ try to read it.
        headers.remove(CONTENT_TYPE);
    }
    let body = match reply.stream {
        _ if head.method == "HEAD" => ResponseBody::whole(Vec::new()),
        Some(stream) => ResponseBody::streamed(stream),
        None => ResponseBody::held(reply.body, reply.held),
    };
    let mut response = Response::new(body);
    *response.status_mut() = StatusCode::from_u16(reply.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    *response.headers_mut() = headers;
    if !reply.spelled.is_empty() {
        response.extensions_mut().extend(spelling::extension(&reply.spelled));
    }
    if let Some(Ok(reason)) = reply.reason.map(ReasonPhrase::try_from) {
        response.extensions_mut().insert(reason);
    }
    response
}

/// The response for an error of the Queue and Blob services.
pub(crate) fn storage_error_reply(error: &ErrorReply, request_id: &str, now: Timestamp) -> Reply {
    let mut body = Vec::with_capacity(512);
    error.write_storage_xml(&mut body, request_id, now);
    Reply { reason: Some(error.reason()), ..Reply::xml(error.status, body) }
}
