//! A bare file server: hyper on tokio as a real server would use them, and files in a folder.
//!
//! It bounds what a blob server on this stack can reach on this machine with this client: a get streams a file, a put
//! writes one, syncs it and gives it its name. It checks no signature, keeps no metadata and computes no hash.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use anyhow::Context as _;
use bytes::Bytes;
use http_body_util::BodyExt as _;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;
use tokio::sync::mpsc;

/// What is read from a file at once.
const PIECE_BYTES: u64 = 256 << 10;
/// Pieces that wait between the disk and the network, either way.
const PIECES: usize = 4;

/// Serves until the process is stopped.
pub(crate) fn serve(port: u16, folder: &Path) -> anyhow::Result<()> {
    std::fs::create_dir_all(folder).context("the folder of files")?;
    let folder = Arc::new(folder.to_owned());
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let listener = TcpListener::bind(address).await.context("binding the port")?;
        loop {
            let (stream, _) = listener.accept().await.context("accepting a connection")?;
            stream.set_nodelay(true)?;
            let folder = Arc::clone(&folder);
            tokio::spawn(async move {
                let service = service_fn(|request| answer(Arc::clone(&folder), request));
                // A connection that breaks concerns only its client, which reports it.
                let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
            });
        }
    })
}

async fn answer(folder: Arc<PathBuf>, request: Request<Incoming>) -> io::Result<Response<Pieces>> {
    let parts: Vec<&str> = request.uri().path().split('/').skip(2).filter(|part| !part.is_empty()).collect();
    let plain = |part: &&str| part.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    let path = match parts[..] {
        _ if !parts.iter().all(plain) => return Ok(status(StatusCode::BAD_REQUEST)),
        // Containers need no folder of their own, and a list of them is there to find out whether we answer.
        [] => return Ok(status(StatusCode::OK)),
        [_] => return Ok(status(StatusCode::CREATED)),
        _ => folder.join(parts.join("_")),
    };
    match *request.method() {
        Method::GET => get(path).await,
        Method::PUT => put(path, request.into_body()).await,
        _ => Ok(status(StatusCode::METHOD_NOT_ALLOWED)),
    }
}

async fn get(path: PathBuf) -> io::Result<Response<Pieces>> {
    let opened = tokio::task::spawn_blocking(move || {
        let mut file = File::open(path)?;
        let length = file.metadata()?.len();
        let first = read_piece(&mut file)?;
        io::Result::Ok((file, length, first))
    });
    let (mut file, length, first) = match opened.await? {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(status(StatusCode::NOT_FOUND)),
        opened => opened?,
    };
    let (sender, receiver) = mpsc::channel(PIECES);
    if (first.len() as u64) < length {
        tokio::task::spawn_blocking(move || {
            loop {
                let piece = read_piece(&mut file);
                let last = !piece.as_ref().is_ok_and(|piece| !piece.is_empty());
                // There is no receiver once the client has disconnected.
                if sender.blocking_send(piece).is_err() || last {
                    return;
                }
            }
        });
    }
    Ok(Response::new(Pieces { first: Some(first), rest: Some(receiver), left: length }))
}

fn read_piece(file: &mut File) -> io::Result<Bytes> {
    let mut piece = Vec::with_capacity(PIECE_BYTES as usize);
    file.take(PIECE_BYTES).read_to_end(&mut piece)?;
    Ok(piece.into())
}

async fn put(path: PathBuf, mut body: Incoming) -> io::Result<Response<Pieces>> {
    let (sender, mut receiver) = mpsc::channel::<Bytes>(PIECES);
    let written = tokio::task::spawn_blocking(move || {
        let unnamed = path.with_extension("new");
        let mut file = File::create(&unnamed)?;
        while let Some(piece) = receiver.blocking_recv() {
            file.write_all(&piece)?;
        }
        file.sync_data()?;
        std::fs::rename(unnamed, path)
    });
    while let Some(frame) = body.frame().await {
        let Ok(piece) = frame.map_err(io::Error::other)?.into_data() else { continue };
        if sender.send(piece).await.is_err() {
            break;
        }
    }
    drop(sender);
    written.await??;
    Ok(status(StatusCode::CREATED))
}

fn status(status: StatusCode) -> Response<Pieces> {
    let mut response = Response::new(Pieces { first: None, rest: None, left: 0 });
    *response.status_mut() = status;
    response
}

/// The bytes of a file as they are read.
struct Pieces {
    first: Option<Bytes>,
    rest: Option<mpsc::Receiver<io::Result<Bytes>>>,
    left: u64,
}

impl Body for Pieces {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        if self.left == 0 {
            return Poll::Ready(None);
        }
        let piece = match (self.first.take(), &mut self.rest) {
            (Some(first), _) => Some(Ok(first)),
            (None, Some(rest)) => std::task::ready!(rest.poll_recv(context)),
            (None, None) => None,
        };
        let piece = piece.unwrap_or_else(|| Err(io::ErrorKind::UnexpectedEof.into()))?;
        self.left = self.left.saturating_sub(piece.len() as u64);
        Poll::Ready(Some(Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.left == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left)
    }
}
