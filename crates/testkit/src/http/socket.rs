//! Bytes out, one response in. Every wait is bounded.

use super::Response;
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// How long the server may stay silent before a test gives up.
const SILENCE_MAX: Duration = Duration::from_secs(60);
const HEADERS_MAX: usize = 5000;

pub(super) fn connect(address: SocketAddr) -> io::Result<TcpStream> {
    let stream = TcpStream::connect_timeout(&address, Duration::from_secs(10))?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(SILENCE_MAX))?;
    stream.set_write_timeout(Some(SILENCE_MAX))?;
    Ok(stream)
}

pub(super) fn round_trip(stream: TcpStream, bytes: &[u8], has_body: bool) -> io::Result<(TcpStream, Response)> {
    // A server that refuses a large body answers before it has read all; its answer counts.
    let sent = (&stream).write_all(bytes);
    let response = read_response(&stream, has_body);
    match (sent, response) {
        (_, Ok(response)) => Ok((stream, response)),
        (Err(error), Err(_)) | (Ok(()), Err(error)) => Err(error),
    }
}

/// Sends bytes on a connection of their own, says that no more follow, and reads what comes back.
///
/// # Errors
/// What the socket says; a connection that is closed without an answer is `UnexpectedEof`.
pub fn exchange(address: SocketAddr, bytes: &[u8]) -> io::Result<Response> {
    let stream = connect(address)?;
    let sent = (&stream).write_all(bytes);
    let _ = stream.shutdown(std::net::Shutdown::Write);
    let response = read_response(&stream, true);
    match (sent, response) {
        (_, Ok(response)) => Ok(response),
        (Err(error), Err(_)) | (Ok(()), Err(error)) => Err(error),
    }
}

/// Reads one response.
///
/// # Errors
/// What the socket says, and bytes that are no response.
pub fn read_response(stream: &TcpStream, has_body: bool) -> io::Result<Response> {
    let mut reader = BufReader::new(stream);
    let status_line = line(&mut reader)?;
    if status_line.is_empty() {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    let status = status_line.strip_prefix("HTTP/1.1 ").and_then(|rest| rest.get(..3)?.parse().ok());
    let status = status.ok_or_else(|| invalid(&format!("expected a status line, found {status_line:?}")))?;
    let mut headers = Vec::new();
    loop {
        let header = line(&mut reader)?;
        if header.is_empty() {
            break;
        }
        if headers.len() == HEADERS_MAX {
            return Err(invalid("too many headers"));
        }
        let (name, value) = header.split_once(':').ok_or_else(|| invalid(&format!("no header: {header:?}")))?;
        headers.push((name.to_owned(), value.trim().to_owned()));
    }
    let reason = status_line.get("HTTP/1.1 200 ".len()..).unwrap_or_default().to_owned();
    let mut response = Response { status, reason, headers, body: Vec::new() };
    if has_body && status != 204 && status != 304 && status >= 200 {
        response.body = body(&mut reader, &response)?;
    }
    if !reader.buffer().is_empty() {
        return Err(invalid("bytes after the response"));
    }
    Ok(response)
}

fn body(reader: &mut BufReader<&TcpStream>, response: &Response) -> io::Result<Vec<u8>> {
    let mut body = Vec::new();
    if response.header("Transfer-Encoding").is_some_and(|value| value.eq_ignore_ascii_case("chunked")) {
        loop {
            let size = line(reader)?;
            let size = usize::from_str_radix(&size, 16).map_err(|_| invalid("no chunk size"))?;
            let start = body.len();
            body.resize(start + size, 0);
            reader.read_exact(&mut body[start..])?;
            line(reader)?;
            if size == 0 {
                return Ok(body);
            }
        }
    }
    match response.header("Content-Length") {
        Some(length) => {
            body.resize(length.parse().map_err(|_| invalid("no length"))?, 0);
            reader.read_exact(&mut body)?;
        }
        None => drop(reader.read_to_end(&mut body)?),
    }
    Ok(body)
}

fn line(reader: &mut BufReader<&TcpStream>) -> io::Result<String> {
    let mut bytes = Vec::new();
    reader.take(64 * 1024).read_until(b'\n', &mut bytes)?;
    while bytes.last().is_some_and(|byte| matches!(byte, b'\r' | b'\n')) {
        bytes.pop();
    }
    String::from_utf8(bytes).map_err(|_| invalid("a line that is no text"))
}

fn invalid(message: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, message)
}
