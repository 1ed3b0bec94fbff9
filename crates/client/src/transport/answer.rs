//! Answers as bytes: the head, by `httparse`, and where the body ends. Pure; `wire.rs` brings the bytes.

use super::BoxError;
use bytes::Bytes;
use http::header::{CONNECTION, CONTENT_LENGTH, TRANSFER_ENCODING};
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use std::fmt;
use std::mem::MaybeUninit;

/// The head of an answer, read.
#[derive(Debug)]
pub(super) struct Head {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    pub(super) framing: Framing,
    /// Whether another request may follow on the connection.
    pub(super) keeps_alive: bool,
    /// Bytes of the head.
    pub(super) bytes: usize,
}

/// How the end of a body is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Framing {
    /// After this many bytes.
    Length(u64),
    /// After the last chunk.
    Chunked,
    /// When the server closes.
    Close,
}

impl Head {
    /// Reads the head at the front of `bytes`, of the answer to a request of this method; `None` if more has to come.
    /// `earlier` is for the connection to keep.
    pub(super) fn parse(bytes: &[u8], method: &Method, earlier: &mut HeaderMap) -> Result<Option<Self>, BoxError> {
        let mut slots = [const { MaybeUninit::uninit() }; HEADERS_MAX];
        let mut answer = httparse::Response::new(&mut []);
        let parser = httparse::ParserConfig::default();
        let parsed = parser.parse_response_with_uninit_headers(&mut answer, bytes, &mut slots)?;
        let httparse::Status::Complete(end) = parsed else {
            return match bytes.len() > HEAD_BYTES_MAX {
                true => Err("the head of the answer is too long".into()),
                false => Ok(None),
            };
        };
        let status = StatusCode::from_u16(answer.code.unwrap_or_default())?;
        let headers = headers(&bytes[..end], answer.headers, earlier)?;
        let framing = Framing::of(status, &headers, method)?;
        let keeps_alive =
            answer.version == Some(1) && framing != Framing::Close && !has_token(&headers, CONNECTION, "close");
        Ok(Some(Self { status, headers, framing, keeps_alive, bytes: end }))
    }
}

/// The headers of a head. A server sends the same ones in the same order, so those of an earlier answer are taken where
/// they fit, and only the values that differ are made: that is half the work of reading a head.
fn headers(head: &[u8], read: &[httparse::Header<'_>], earlier: &mut HeaderMap) -> Result<HeaderMap, BoxError> {
    // One copy that all values share.
    let text = Bytes::copy_from_slice(head);
    let value = |header: &httparse::Header<'_>| HeaderValue::from_maybe_shared(text.slice_ref_of(head, header.value));
    if earlier.len() == read.len() {
        let mut headers = earlier.clone();
        let mut is_alike = true;
        for ((name, known), header) in headers.iter_mut().zip(read) {
            is_alike &= name.as_str() == header.name || name.as_str().eq_ignore_ascii_case(header.name);
            if known.as_bytes() != header.value {
                *known = value(header)?;
            }
        }
        if is_alike {
            return Ok(headers);
        }
    }
    let mut headers = HeaderMap::with_capacity(read.len());
    for header in read {
        headers.append(HeaderName::from_bytes(header.name.as_bytes())?, value(header)?);
    }
    earlier.clone_from(&headers);
    Ok(headers)
}

/// A part of shared bytes, found by the same part of the bytes they were copied from.
trait SliceRefOf {
    fn slice_ref_of(&self, original: &[u8], part: &[u8]) -> Bytes;
}

impl SliceRefOf for Bytes {
    fn slice_ref_of(&self, original: &[u8], part: &[u8]) -> Bytes {
        // An empty value may point anywhere.
        if part.is_empty() {
            return Self::new();
        }
        let start = part.as_ptr().addr() - original.as_ptr().addr();
        self.slice(start..start + part.len())
    }
}

impl Framing {
    fn of(status: StatusCode, headers: &HeaderMap, method: &Method) -> Result<Self, BoxError> {
        let has_none = matches!(status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED);
        if method == Method::HEAD || has_none || status.is_informational() {
            return Ok(Self::Length(0));
        }
        // Both would leave open which one the server means.
        match (headers.contains_key(TRANSFER_ENCODING), headers.get(CONTENT_LENGTH)) {
            (true, None) if has_token(headers, TRANSFER_ENCODING, "chunked") => Ok(Self::Chunked),
            (true, _) => Err("the answer has an unknown transfer encoding".into()),
            (false, None) => Ok(Self::Close),
            (false, Some(length)) => {
                let is_one = headers.get_all(CONTENT_LENGTH).iter().all(|other| other == length);
                let digits = length.to_str()?;
                match digits.parse() {
                    Ok(length) if is_one && digits.bytes().all(|byte| byte.is_ascii_digit()) => {
                        Ok(Self::Length(length))
                    }
                    _ => Err("the answer has a malformed length".into()),
                }
            }
        }
    }
}

fn has_token(headers: &HeaderMap, name: HeaderName, token: &str) -> bool {
    let values = headers.get_all(name);
    let mut texts = values.iter().filter_map(|value| value.to_str().ok());
    texts.any(|text| text.split(',').any(|word| word.trim().eq_ignore_ascii_case(token)))
}

/// Joins the chunks of a body as they come.
#[derive(Debug, Default)]
pub(super) struct Chunks {
    pub(super) body: Vec<u8>,
    state: ChunkState,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum ChunkState {
    /// The line with a chunk's size.
    #[default]
    Size,
    /// This much of a chunk is to come.
    Data(usize),
    /// The line end after a chunk.
    DataEnd,
    /// Lines after the last chunk, up to an empty one.
    Trailer,
    Done,
}

impl Chunks {
    /// Takes what it can from the front of `bytes` and says how much that was.
    pub(super) fn take(&mut self, bytes: &[u8], body_bytes_max: usize) -> Result<usize, BoxError> {
        let mut taken = 0;
        loop {
            let rest = &bytes[taken..];
            match self.state {
                ChunkState::Done => return Ok(taken),
                ChunkState::Data(left) => {
                    let piece = left.min(rest.len());
                    self.body.extend_from_slice(&rest[..piece]);
                    taken += piece;
                    self.state = ChunkState::Data(left - piece);
                    match left == piece {
                        true => self.state = ChunkState::DataEnd,
                        false => return Ok(taken),
                    }
                }
                ChunkState::Size | ChunkState::DataEnd | ChunkState::Trailer => {
                    let Some(end) = rest.iter().position(|byte| *byte == b'\n') else {
                        return match rest.len() > LINE_BYTES_MAX {
                            true => Err("a line between chunks is too long".into()),
                            false => Ok(taken),
                        };
                    };
                    taken += end + 1;
                    let line = rest[..end].strip_suffix(b"\r").unwrap_or(&rest[..end]);
                    self.line(line, body_bytes_max)?;
                }
            }
        }
    }

    fn line(&mut self, line: &[u8], body_bytes_max: usize) -> Result<(), BoxError> {
        self.state = match self.state {
            ChunkState::Size => {
                // Extensions after a semicolon mean nothing to us.
                let digits = line.split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii();
                let is_hex = !digits.is_empty() && digits.iter().all(u8::is_ascii_hexdigit);
                let size = std::str::from_utf8(digits).ok().filter(|_| is_hex);
                let size =
                    size.and_then(|digits| usize::from_str_radix(digits, 16).ok()).ok_or("a chunk has no size")?;
                if size > body_bytes_max.saturating_sub(self.body.len()) {
                    return Err(too_large(body_bytes_max));
                }
                if size == 0 { ChunkState::Trailer } else { ChunkState::Data(size) }
            }
            ChunkState::DataEnd if line.is_empty() => ChunkState::Size,
            ChunkState::DataEnd => return Err("a chunk is longer than its size".into()),
            ChunkState::Trailer if line.is_empty() => ChunkState::Done,
            other => other,
        };
        Ok(())
    }

    pub(super) fn is_done(&self) -> bool {
        self.state == ChunkState::Done
    }
}

/// An answer that is longer than it may be.
#[derive(Debug)]
pub(super) struct TooLarge {
    bytes_max: usize,
}

impl fmt::Display for TooLarge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the answer has more than {} bytes", self.bytes_max)
    }
}

impl std::error::Error for TooLarge {}

pub(super) fn too_large(bytes_max: usize) -> BoxError {
    TooLarge { bytes_max }.into()
}

const HEADERS_MAX: usize = 96;
const HEAD_BYTES_MAX: usize = 64 << 10;
const LINE_BYTES_MAX: usize = 4 << 10;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn head(text: &str, method: &Method) -> Result<Option<Head>, BoxError> {
        Head::parse(text.as_bytes(), method, &mut HeaderMap::new())
    }

    #[test]
    fn the_end_of_a_body_is_told_by_its_head() {
        let of = |head_lines: &str, method: Method| {
            let head =
                head(&format!("HTTP/1.1 200 OK\r\n{head_lines}\r\nrest"), &method).expect("a head").expect("whole");
            (head.framing, head.keeps_alive)
        };
        assert_eq!(of("Content-Length: 5\r\n", Method::GET), (Framing::Length(5), true));
        assert_eq!(of("Content-Length: 5\r\n", Method::HEAD), (Framing::Length(0), true));
        assert_eq!(of("Content-Length: 5\r\nConnection: Close\r\n", Method::GET), (Framing::Length(5), false));
        assert_eq!(of("Transfer-Encoding: chunked\r\n", Method::GET), (Framing::Chunked, true));
        assert_eq!(of("", Method::GET), (Framing::Close, false));
        let old = head("HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\n", &Method::GET).expect("a head").expect("whole");
        assert!(!old.keeps_alive);
        let empty = head("HTTP/1.1 204 No Content\r\nX: \r\n\r\n", &Method::PUT).expect("a head").expect("whole");
        assert_eq!((empty.framing, empty.headers["x"].as_bytes()), (Framing::Length(0), &b""[..]));
    }

    #[test]
    fn heads_that_leave_the_end_open_are_refused() {
        for lines in [
            "Content-Length: 5\r\nContent-Length: 6\r\n",
            "Content-Length: +5\r\n",
            "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
            "Transfer-Encoding: gzip\r\n",
        ] {
            assert!(head(&format!("HTTP/1.1 200 OK\r\n{lines}\r\n"), &Method::GET).is_err(), "{lines}");
        }
        assert!(head("nonsense\r\n\r\n", &Method::GET).is_err());
        assert!(head("HTTP/1.1 200 OK\r\nA: b\r\n", &Method::GET).expect("so far").is_none());
        let endless = format!("HTTP/1.1 200 OK\r\nA: {}", "b".repeat(HEAD_BYTES_MAX));
        assert!(head(&endless, &Method::GET).is_err());
    }

    #[test]
    fn chunks_that_lie_are_refused() {
        for text in ["x\r\n", "\r\n", "-1\r\n", "2\r\nabc\r\n", "ffffffffffffffff\r\n", "11\r\n"] {
            assert!(Chunks::default().take(text.as_bytes(), 16).is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn chunks_are_joined_wherever_they_are_cut(
            pieces in prop::collection::vec(prop::collection::vec(any::<u8>(), 1..40), 0..8),
            cut in 1_usize..9,
            rest in any::<Vec<u8>>(),
        ) {
            let mut text = Vec::new();
            for piece in &pieces {
                text.extend_from_slice(format!("{:X};name=value\r\n", piece.len()).as_bytes());
                text.extend_from_slice(piece);
                text.extend_from_slice(b"\r\n");
            }
            text.extend_from_slice(b"0\r\nTrailer: x\r\n\r\n");
            let length = text.len();
            text.extend_from_slice(&rest);
            let mut chunks = Chunks::default();
            let (mut seen, mut used) = (0, 0);
            while !chunks.is_done() {
                prop_assert!(seen < text.len());
                seen = (seen + cut).min(text.len());
                used += chunks.take(&text[used..seen], 1000).expect("chunks");
            }
            prop_assert_eq!(used, length);
            prop_assert_eq!(chunks.body, pieces.concat());
        }

        #[test]
        fn heads_are_read_alike_whatever_came_before(
            heads in prop::collection::vec(
                prop::collection::vec(("[aA]|[bB]-?|Date|ETag", "[xy]{0,2}"), 0..6), 1..6,
            ),
        ) {
            let mut earlier = HeaderMap::new();
            for lines in heads {
                let lines: String = lines.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
                let text = format!("HTTP/1.1 204 No Content\r\n{lines}\r\n");
                let alone = head(&text, &Method::GET).expect("a head").expect("whole").headers;
                let after = Head::parse(text.as_bytes(), &Method::GET, &mut earlier).expect("a head").expect("whole");
                prop_assert_eq!(after.headers, alone);
            }
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes: Vec<u8>) {
            let _ = Head::parse(&bytes, &Method::GET, &mut HeaderMap::new());
            let _ = Chunks::default().take(&bytes, 100);
        }
    }
}
