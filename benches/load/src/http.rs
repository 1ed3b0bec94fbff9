//! A small HTTP/1.1 client connection: one request out, one answer in, buffers kept for the next.
//!
//! The client shares the machine with the server it measures, so it does as little as it can:
//! requests are ready-made bytes, answers are parsed in place, and only the headers that a check
//! needs are looked at.

use std::io;
use std::ops::Range;

use anyhow::{Context as _, bail, ensure};
use bytes::Buf;
use memchr::memmem;
use rustix::net::{RecvFlags, recv};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, Interest};
use tokio::net::TcpStream;

/// An answer larger than this is a fault of the server (a page of 1,000 rows is about 1 MiB).
const ANSWER_BYTES_MAX: usize = 64 << 20;
const HEAD_BYTES_MAX: usize = 64 << 10;
/// What is read at once from a body that is not kept.
const PIECE_BYTES: usize = 256 << 10;

/// A keep-alive connection to one server.
pub(crate) struct Connection {
    stream: TcpStream,
    /// Bytes as received; `filled` of them are valid.
    raw: Vec<u8>,
    filled: usize,
    /// The body of a chunked answer, joined.
    joined: Vec<u8>,
}

/// One answer, borrowed from the connection's buffers.
pub(crate) struct Answer<'a> {
    pub(crate) status: u16,
    /// The head as received, for the headers that are seldom asked for.
    pub(crate) head: &'a [u8],
    pub(crate) body: &'a [u8],
    /// Continuation headers, as sent: partition and row.
    pub(crate) next_partition: Option<&'a [u8]>,
    pub(crate) next_row: Option<&'a [u8]>,
}

impl Answer<'_> {
    /// The value of a header, its name in any case.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.head.split(|byte| *byte == b'\n').skip(1).find_map(|line| {
            let colon = memchr::memchr(b':', line)?;
            let found = line[..colon].eq_ignore_ascii_case(name.as_bytes());
            found.then(|| std::str::from_utf8(line[colon + 1..].trim_ascii()).ok())?
        })
    }
}

impl Connection {
    /// Connects to a port of this machine.
    pub(crate) async fn open(port: u16) -> io::Result<Self> {
        let stream = TcpStream::connect(("127.0.0.1", port)).await?;
        stream.set_nodelay(true)?;
        Ok(Self { stream, raw: vec![0; 16 << 10], filled: 0, joined: Vec::new() })
    }

    /// Sends one request and reads its whole answer.
    pub(crate) async fn exchange(&mut self, request: &[u8]) -> anyhow::Result<Answer<'_>> {
        self.exchange_body(request, &[]).await
    }

    /// Sends one request, whose body is kept elsewhere, and reads its whole answer.
    pub(crate) async fn exchange_body(&mut self, head: &[u8], body: &[u8]) -> anyhow::Result<Answer<'_>> {
        self.stream.write_all_buf(&mut Buf::chain(head, body)).await.context("sending the request")?;
        self.filled = 0;
        let head = self.read_head().await?;
        let body = match head.framing {
            Framing::Length(length) => {
                let end = head.bytes + length;
                while self.filled < end {
                    self.read_more().await?;
                }
                ensure!(self.filled == end, "bytes follow the answer");
                &self.raw[head.bytes..end]
            }
            Framing::Chunked => {
                self.joined.clear();
                let mut position = head.bytes;
                while !join_chunks(&self.raw[..self.filled], &mut position, &mut self.joined)? {
                    self.read_more().await?;
                }
                ensure!(self.filled == position, "bytes follow the answer");
                &self.joined[..]
            }
        };
        Ok(Answer {
            status: head.status,
            head: &self.raw[..head.bytes],
            body,
            next_partition: head.next_partition.map(|range| &self.raw[range]),
            next_row: head.next_row.map(|range| &self.raw[range]),
        })
    }

    /// Sends one request and hands the body of its answer to `sink` piece by piece, each with its offset, or only the
    /// first piece unless all is wanted; returns the status and the length of the body.
    pub(crate) async fn download(
        &mut self,
        request: &[u8],
        all: bool,
        mut sink: impl FnMut(usize, &[u8]) -> anyhow::Result<()>,
    ) -> anyhow::Result<(u16, usize)> {
        self.stream.write_all(request).await.context("sending the request")?;
        self.filled = 0;
        if self.raw.len() < PIECE_BYTES {
            self.raw.resize(PIECE_BYTES, 0);
        }
        let head = self.read_head().await?;
        let Framing::Length(length) = head.framing else { bail!("a download without a Content-Length") };
        let mut start = head.bytes;
        let mut offset = 0;
        loop {
            let piece = &self.raw[start..self.filled];
            ensure!(offset + piece.len() <= length, "bytes follow the answer");
            sink(offset, piece)?;
            offset += piece.len();
            if offset == length {
                return Ok((head.status, length));
            }
            if !all {
                self.discard(length - offset).await?;
                return Ok((head.status, length));
            }
            (self.filled, start) = (0, 0);
            self.read_more().await?;
        }
    }

    /// Takes bytes from the connection without copying them here (Linux does so for this flag): copies in the client
    /// would cost the server a good part of its processor.
    async fn discard(&mut self, mut bytes: usize) -> anyhow::Result<()> {
        while bytes > 0 {
            let least = bytes.min(self.raw.len());
            let received = self.stream.async_io(Interest::READABLE, || {
                let (_, received) = recv(&self.stream, &mut self.raw[..least], RecvFlags::TRUNC)?;
                Ok(received)
            });
            let received = received.await.context("reading the answer")?;
            if received == 0 {
                return Err(io::Error::from(io::ErrorKind::UnexpectedEof)).context("the server closed the connection");
            }
            bytes = bytes.checked_sub(received).context("bytes follow the answer")?;
        }
        Ok(())
    }

    async fn read_head(&mut self) -> anyhow::Result<Head> {
        loop {
            let searched = self.filled.saturating_sub(3);
            self.read_more().await?;
            if let Some(at) = memmem::find(&self.raw[searched..self.filled], b"\r\n\r\n") {
                return parse_head(&self.raw[..searched + at + 4]);
            }
            ensure!(self.filled < HEAD_BYTES_MAX, "no end of the answer's head");
        }
    }

    async fn read_more(&mut self) -> anyhow::Result<()> {
        if self.filled == self.raw.len() {
            ensure!(self.raw.len() < ANSWER_BYTES_MAX, "the answer is too large");
            self.raw.resize(self.raw.len() * 2, 0);
        }
        let count = self.stream.read(&mut self.raw[self.filled..]).await.context("reading the answer")?;
        if count == 0 {
            return Err(io::Error::from(io::ErrorKind::UnexpectedEof)).context("the server closed the connection");
        }
        self.filled += count;
        Ok(())
    }
}

/// Whether the connection broke, as opposed to a wrong answer. HTTP lets a server close one at any time.
pub(crate) fn broke(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| cause.is::<io::Error>())
}

#[derive(Debug, PartialEq)]
enum Framing {
    Length(usize),
    Chunked,
}

/// What the head of an answer says about the rest; ranges point into the raw bytes.
#[derive(Debug, PartialEq)]
struct Head {
    status: u16,
    bytes: usize,
    framing: Framing,
    next_partition: Option<Range<usize>>,
    next_row: Option<Range<usize>>,
}

/// Parses a complete head, blank line included.
fn parse_head(raw: &[u8]) -> anyhow::Result<Head> {
    ensure!(raw.starts_with(b"HTTP/1.1 "), "not an HTTP/1.1 answer");
    let status = decimal(raw.get(9..12).context("a status line")?).context("a status of three digits")?;
    let mut head = Head {
        status: u16::try_from(status)?,
        bytes: raw.len(),
        framing: Framing::Length(0),
        next_partition: None,
        next_row: None,
    };
    let mut line_start = memchr::memchr(b'\n', raw).context("a status line")? + 1;
    while line_start + 2 < raw.len() {
        let line_end = line_start + memchr::memchr(b'\n', &raw[line_start..]).context("a line end")?;
        let line = &raw[line_start..line_end];
        let colon = memchr::memchr(b':', line).context("a colon in each header")?;
        let (name, value) = (&line[..colon], trimmed(raw, line_start + colon + 1..line_end));
        // Telling headers apart by length first keeps the common case to one comparison.
        match name.len() {
            14 if name.eq_ignore_ascii_case(b"content-length") => {
                head.framing = Framing::Length(decimal(&raw[value]).context("a decimal Content-Length")?);
            }
            17 if name.eq_ignore_ascii_case(b"transfer-encoding") => {
                if !raw[value].eq_ignore_ascii_case(b"chunked") {
                    bail!("an unknown transfer encoding");
                }
                head.framing = Framing::Chunked;
            }
            34 if name.eq_ignore_ascii_case(b"x-ms-continuation-nextpartitionkey") => {
                head.next_partition = Some(value);
            }
            28 if name.eq_ignore_ascii_case(b"x-ms-continuation-nextrowkey") => head.next_row = Some(value),
            _ => {}
        }
        line_start = line_end + 1;
    }
    Ok(head)
}

/// Moves whole chunks to `out`, `position` with them; true once the last chunk has been seen.
fn join_chunks(raw: &[u8], position: &mut usize, out: &mut Vec<u8>) -> anyhow::Result<bool> {
    loop {
        let rest = &raw[*position..];
        let Some(line_end) = memmem::find(rest, b"\r\n") else { return Ok(false) };
        let size_end = memchr::memchr(b';', &rest[..line_end]).unwrap_or(line_end);
        let size = std::str::from_utf8(&rest[..size_end])?;
        let size = usize::from_str_radix(size.trim(), 16).context("a hexadecimal chunk size")?;
        ensure!(size < ANSWER_BYTES_MAX, "a chunk is too large");
        let data = line_end + 2;
        if rest.len() < data + size + 2 {
            return Ok(false);
        }
        ensure!(&rest[data + size..data + size + 2] == b"\r\n", "a chunk ends with a line break");
        out.extend_from_slice(&rest[data..data + size]);
        *position += data + size + 2;
        if size == 0 {
            return Ok(true);
        }
    }
}

fn trimmed(raw: &[u8], range: Range<usize>) -> Range<usize> {
    let text = &raw[range.clone()];
    let start = range.start + (text.len() - text.trim_ascii_start().len());
    start..start + text.trim_ascii().len()
}

fn decimal(text: &[u8]) -> Option<usize> {
    if text.is_empty() || text.len() > 12 || !text.iter().all(u8::is_ascii_digit) {
        return None;
    }
    Some(text.iter().fold(0, |sum, digit| sum * 10 + usize::from(digit - b'0')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_gives_status_framing_and_continuation() {
        let raw = b"HTTP/1.1 200 OK\r\ncontent-LENGTH:  42 \r\nDate: x\r\n\
            x-ms-continuation-NextPartitionKey: 1!8!cA--\r\nX-Ms-Continuation-NextRowKey:r1\r\n\r\n";
        let head = parse_head(raw).expect("a valid head");
        assert_eq!((head.status, head.bytes, head.framing), (200, raw.len(), Framing::Length(42)));
        assert_eq!(&raw[head.next_partition.expect("a partition")], b"1!8!cA--");
        assert_eq!(&raw[head.next_row.expect("a row")], b"r1");
    }

    #[tokio::test]
    async fn what_is_not_wanted_is_discarded_and_the_next_answer_follows() {
        let listener = tokio::net::TcpListener::bind(("127.0.0.1", 0)).await.expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let serving = tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await?;
            for _ in 0..2 {
                let mut request = [0; 3];
                stream.read_exact(&mut request).await?;
                stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 3000000\r\n\r\n").await?;
                stream.write_all(&vec![b'x'; 3_000_000]).await?;
            }
            io::Result::Ok(())
        });
        let mut connection = Connection::open(port).await.expect("a connection");
        for all in [false, true] {
            let mut seen = 0;
            let sink = |offset, piece: &[u8]| {
                assert!(offset == seen && piece.iter().all(|byte| *byte == b'x'));
                seen += piece.len();
                Ok(())
            };
            let downloaded = connection.download(b"GET", all, sink).await.expect("an answer");
            assert_eq!(downloaded, (200, 3_000_000));
            assert_eq!(seen == 3_000_000, all);
        }
        serving.await.expect("a server").expect("two answers");
    }

    #[test]
    fn a_header_is_found_by_its_whole_name() {
        let head = b"HTTP/1.1 200 OK\r\nx-ms-a-count: 1\r\nX-Ms-Count:  7 \r\n\r\n";
        let answer = Answer { status: 200, head, body: b"", next_partition: None, next_row: None };
        assert_eq!(answer.header("x-ms-count"), Some("7"));
        assert_eq!(answer.header("count"), None);
    }

    #[test]
    fn an_answer_without_length_is_empty_and_chunked_is_told() {
        let empty = parse_head(b"HTTP/1.1 204 No Content\r\n\r\n").expect("a valid head");
        assert_eq!((empty.status, empty.framing), (204, Framing::Length(0)));
        let chunked = parse_head(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n").expect("a valid head");
        assert_eq!(chunked.framing, Framing::Chunked);
    }

    #[test]
    fn broken_heads_are_refused() {
        for raw in [
            &b"HTTP/1.0 200 OK\r\n\r\n"[..],
            b"HTTP/1.1 2x0 OK\r\n\r\n",
            b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n",
            b"HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
        ] {
            assert!(parse_head(raw).is_err(), "{}", String::from_utf8_lossy(raw));
        }
    }

    #[test]
    fn chunks_join_whatever_the_split() {
        let raw = b"5\r\nhello\r\n7;x=y\r\n, world\r\n0\r\n\r\n";
        for cut in 0..=raw.len() {
            let (mut position, mut out) = (0, Vec::new());
            let early = join_chunks(&raw[..cut], &mut position, &mut out).expect("valid chunks");
            assert_eq!(early, cut == raw.len());
            if !early {
                assert!(join_chunks(raw, &mut position, &mut out).expect("valid chunks"));
            }
            assert_eq!((&out[..], position), (&b"hello, world"[..], raw.len()));
        }
    }
}
