//! An S3 server in the test's own process, over a folder: real requests with real signatures over a real socket. The tests
//! of `larimar-backup` and `larimar-tool` compile this file too, by its path.

use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use s3s::access::S3Access;
use s3s::auth::SimpleAuth;
use s3s::service::S3ServiceBuilder;
use std::net::SocketAddr;
use std::path::Path;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

/// A server that ends with the value.
pub(crate) struct S3 {
    address: SocketAddr,
    task: JoinHandle<()>,
}

impl S3 {
    /// Starts a server that keeps a bucket in a folder and carries out what is granted.
    pub(crate) async fn start(folder: &Path, access: impl S3Access) -> Self {
        std::fs::create_dir_all(folder.join(BUCKET)).expect("a folder for the bucket");
        let files = s3s_fs::FileSystem::new(folder).expect("a store for the server");
        let mut builder = S3ServiceBuilder::new(files);
        builder.set_auth(SimpleAuth::from_single(KEY, SECRET));
        builder.set_access(access);
        let service = builder.build();
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("an address");
        let task = tokio::spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                let service = service.clone();
                tokio::spawn(async move {
                    let server = auto::Builder::new(TokioExecutor::new());
                    // A client that goes away is none of our business.
                    let _ = server.serve_connection(TokioIo::new(socket), service).await;
                });
            }
        });
        Self { address, task }
    }

    /// The environment of a program that uses the bucket.
    pub(crate) fn variables(&self) -> [(&'static str, String); 5] {
        [
            ("AWS_ENDPOINT", format!("http://{}", self.address)),
            ("AWS_ALLOW_HTTP", "true".to_owned()),
            ("AWS_REGION", "here".to_owned()),
            ("AWS_ACCESS_KEY_ID", KEY.to_owned()),
            ("AWS_SECRET_ACCESS_KEY", SECRET.to_owned()),
        ]
    }
}

impl Drop for S3 {
    fn drop(&mut self) {
        self.task.abort();
    }
}

pub(crate) const BUCKET: &str = "bucket";
const KEY: &str = "key-of-the-test";
const SECRET: &str = "secret-of-the-test";
