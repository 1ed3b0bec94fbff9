//! Connections good and bad, over real sockets.

use super::*;
use crate::reply::ResponseBody;
use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::{Request, Response, StatusCode};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::Notify;
use tokio::task::JoinHandle;

/// Nothing here takes this long unless it hangs.
const PATIENCE: Duration = Duration::from_secs(20);

/// A service with one path for each thing a handler may do.
#[derive(Default)]
struct Probe {
    entered: Notify,
    release: Notify,
}

impl Handler for Probe {
    async fn handle(&self, request: Request<Incoming>, peer: Peer) -> Response<ResponseBody> {
        let answer = match request.uri().path() {
            "/method" => format!("{} tls={}", request.method(), peer.is_tls),
            "/length" => match request.into_body().collect().await {
                Ok(body) => body.to_bytes().len().to_string(),
                Err(_) => "broken".to_owned(),
            },
            "/wait" => {
                self.entered.notify_one();
                self.release.notified().await;
                "waited".to_owned()
            }
            "/panic" => panic!("on purpose"),
            "/refuse" => {
                let mut response = Response::new(ResponseBody::whole(Bytes::from_static(b"too much")));
                *response.status_mut() = StatusCode::PAYLOAD_TOO_LARGE;
                return response;
            }
            _ => "hello".to_owned(),
        };
        Response::new(ResponseBody::whole(Bytes::from(answer)))
    }
}

struct Fixture {
    address: SocketAddr,
    probe: Arc<Probe>,
    metrics: Arc<Metrics>,
    stop: oneshot::Sender<()>,
    served: JoinHandle<Stopped>,
}

impl Fixture {
    async fn start(settings: ListenerSettings) -> Self {
        Self::start_with(settings, None).await
    }

    async fn start_with(settings: ListenerSettings, tls: Option<Arc<ServerConfig>>) -> Self {
        let socket = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = socket.local_addr().expect("a bound socket");
        let (probe, metrics) = (Arc::new(Probe::default()), Arc::new(Metrics::default()));
        let listener = Listener::new(Arc::clone(&probe), Arc::clone(&metrics), settings).with_tls(tls);
        let (stop, stopped) = oneshot::channel();
        let served = tokio::spawn(listener.serve(socket, async move {
            let _ = stopped.await;
        }));
        Self { address, probe, metrics, stop, served }
    }

    async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.address).await.expect("the listener accepts")
    }

    async fn stop(self) -> Stopped {
        self.stop.send(()).expect("the listener runs");
        within(self.served).await.expect("the listener ends")
    }
}

async fn within<F: Future>(future: F) -> F::Output {
    time::timeout(PATIENCE, future).await.expect("this hangs")
}

async fn send(stream: &mut (impl AsyncWrite + Unpin), text: &str) {
    stream.write_all(text.as_bytes()).await.expect("the server reads");
}

/// One answer: its head, and its body by the length it names.
async fn receive(stream: &mut (impl AsyncRead + Unpin)) -> (String, String) {
    within(async {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(stream.read_u8().await.expect("the head of an answer"));
        }
        let head = String::from_utf8(head).expect("text");
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap_or("0");
        let mut body = vec![0; length.parse().expect("a length")];
        stream.read_exact(&mut body).await.expect("the body of an answer");
        (head, String::from_utf8(body).expect("text"))
    })
    .await
}

/// Everything until the server closes.
async fn receive_all(stream: &mut (impl AsyncRead + Unpin)) -> String {
    let mut all = Vec::new();
    within(stream.read_to_end(&mut all)).await.expect("an orderly end");
    String::from_utf8(all).expect("text")
}

async fn ask(stream: &mut (impl AsyncRead + AsyncWrite + Unpin), method: &str, path: &str) -> String {
    send(stream, &format!("{method} {path} HTTP/1.1\r\nhost: x\r\ncontent-length: 0\r\n\r\n")).await;
    receive(stream).await.1
}

fn quick() -> ListenerSettings {
    ListenerSettings { header_timeout: Duration::from_millis(200), ..ListenerSettings::default() }
}

#[tokio::test]
async fn a_connection_serves_many_requests_of_any_method() {
    let fixture = Fixture::start(ListenerSettings::default()).await;
    let mut client = fixture.connect().await;
    for method in ["GET", "MERGE", "POST", "BREW", "DELETE"] {
        assert_eq!(ask(&mut client, method, "/method").await, format!("{method} tls=false"));
    }
    assert_eq!(fixture.metrics.connections_open(), 1);
    drop(client);
    assert_eq!(fixture.stop().await, Stopped { connections_cut: 0 });
}

#[tokio::test]
async fn pipelined_requests_are_answered_in_order() {
    let fixture = Fixture::start(ListenerSettings::default()).await;
    let mut client = fixture.connect().await;
    send(&mut client, &"PUT /method HTTP/1.1\r\nhost: x\r\n\r\nGET / HTTP/1.1\r\nhost: x\r\n\r\n".repeat(20)).await;
    for _ in 0..20 {
        assert_eq!(receive(&mut client).await.1, "PUT tls=false");
        assert_eq!(receive(&mut client).await.1, "hello");
    }
}

#[tokio::test]
async fn a_slow_head_is_refused() {
    let fixture = Fixture::start(quick()).await;
    let mut client = fixture.connect().await;
    assert_eq!(ask(&mut client, "GET", "/").await, "hello");
    send(&mut client, "GET / HTTP/1.1\r\nhost:").await;
    assert!(receive_all(&mut client).await.starts_with("HTTP/1.1 408 "));
}

#[tokio::test]
async fn a_head_that_drips_is_refused() {
    let fixture = Fixture::start(quick()).await;
    let (mut reader, mut writer) = fixture.connect().await.into_split();
    let drip = tokio::spawn(async move {
        send(&mut writer, "GET / HTTP/1.1\r\n").await;
        while writer.write_all(b"a: b\r\n").await.is_ok() {
            time::sleep(Duration::from_millis(20)).await;
        }
    });
    let mut answer = [0; 13];
    within(reader.read_exact(&mut answer)).await.expect("an answer");
    assert_eq!(&answer, b"HTTP/1.1 408 ");
    drop(reader);
    within(drip).await.expect("the writer notices the end");
}

#[tokio::test]
async fn a_slow_handler_is_not_a_slow_client() {
    let fixture = Fixture::start(quick()).await;
    let mut client = fixture.connect().await;
    send(&mut client, "POST /wait HTTP/1.1\r\nhost: x\r\ncontent-length: 0\r\n\r\n").await;
    within(fixture.probe.entered.notified()).await;
    time::sleep(Duration::from_millis(700)).await;
    fixture.probe.release.notify_one();
    assert_eq!(receive(&mut client).await.1, "waited");
}

#[tokio::test]
async fn an_idle_connection_is_closed() {
    let settings = ListenerSettings { idle_timeout: Duration::from_millis(200), ..ListenerSettings::default() };
    let fixture = Fixture::start(settings).await;
    let mut silent = fixture.connect().await;
    let mut client = fixture.connect().await;
    assert_eq!(ask(&mut client, "GET", "/").await, "hello");
    assert_eq!(receive_all(&mut client).await, "");
    assert_eq!(receive_all(&mut silent).await, "");
}

#[tokio::test]
async fn a_half_closed_connection_gets_its_answer() {
    let fixture = Fixture::start(ListenerSettings::default()).await;
    let mut client = fixture.connect().await;
    send(&mut client, "POST /wait HTTP/1.1\r\nhost: x\r\ncontent-length: 3\r\n\r\nabc").await;
    client.shutdown().await.expect("half of the connection closes");
    within(fixture.probe.entered.notified()).await;
    fixture.probe.release.notify_one();
    assert!(receive_all(&mut client).await.ends_with("\r\n\r\nwaited"));
}

#[tokio::test]
async fn a_connection_that_breaks_off_in_a_body_ends_its_request() {
    let fixture = Fixture::start(ListenerSettings::default()).await;
    let mut client = fixture.connect().await;
    send(&mut client, "POST /length HTTP/1.1\r\nhost: x\r\ncontent-length: 10\r\n\r\nabc").await;
    client.shutdown().await.expect("half of the connection closes");
    assert!(receive_all(&mut client).await.ends_with("broken"));
}

#[tokio::test]
async fn bad_heads_are_refused_with_a_status() {
    let long = "a".repeat(70_000);
    let cases = [
        (format!("GET / HTTP/1.1\r\nhost: x\r\nlong: {long}\r\n\r\n"), "400"),
        (format!("GET / HTTP/1.1\r\nhost: x\r\nlong: {long}{long}\r\n\r\n"), "431"),
        (format!("GET / HTTP/1.1\r\nhost: x\r\n{}\r\n", "a: b\r\n".repeat(4000)), "431"),
        (format!("GET /{long} HTTP/1.1\r\nhost: x\r\n\r\n"), "414"),
        ("GET / HTTP/1.1\r\nho st: x\r\n\r\n".to_owned(), "400"),
        ("G@T / HTTP/1.1\r\nhost: x\r\n\r\n".to_owned(), "400"),
        ("GET / HTTP/9.9\r\nhost: x\r\n\r\n".to_owned(), "400"),
        ("POST / HTTP/1.1\r\nhost: x\r\ncontent-length: many\r\n\r\n".to_owned(), "400"),
        ("POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n".to_owned(), "400"),
    ];
    let fixture = Fixture::start(ListenerSettings::default()).await;
    for (request, status) in cases {
        let mut client = fixture.connect().await;
        send(&mut client, &request).await;
        let answer = receive_all(&mut client).await;
        let start = &request[..request.len().min(60)];
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{start:?} got {answer:?}");
    }
}

#[tokio::test]
async fn a_client_of_http_2_is_turned_away_and_others_go_on() {
    let fixture = Fixture::start(ListenerSettings::default()).await;
    let mut client = fixture.connect().await;
    send(&mut client, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").await;
    assert_eq!(receive_all(&mut client).await, "");
    assert_eq!(ask(&mut fixture.connect().await, "GET", "/").await, "hello");
}

#[tokio::test]
async fn a_body_that_nobody_reads_does_not_take_the_answer_away() {
    let fixture = Fixture::start(ListenerSettings::default()).await;
    let (mut reader, mut writer) = fixture.connect().await.into_split();
    let body = vec![b'x'; 4 << 20];
    let sender = tokio::spawn(async move {
        send(&mut writer, &format!("POST /refuse HTTP/1.1\r\nhost: x\r\ncontent-length: {}\r\n\r\n", body.len())).await;
        writer.write_all(&body).await
    });
    let (head, body) = receive(&mut reader).await;
    assert!(head.starts_with("HTTP/1.1 413 "), "{head}");
    assert_eq!(body, "too much");
    within(sender).await.expect("the writer ends").expect("the rest of the body was taken");
}

#[tokio::test]
async fn a_panic_is_answered_and_the_rest_goes_on() {
    let fixture = Fixture::start(ListenerSettings::default()).await;
    let mut other = fixture.connect().await;
    assert_eq!(ask(&mut other, "GET", "/").await, "hello");
    let mut client = fixture.connect().await;
    send(&mut client, "GET /panic HTTP/1.1\r\nhost: x\r\n\r\n").await;
    let answer = receive_all(&mut client).await;
    assert!(
        answer.starts_with("HTTP/1.1 500 ") && answer.contains("\r\nx-ms-error-code: InternalError\r\n"),
        "{answer}"
    );
    assert!(answer.contains("\"code\":\"InternalError\""), "{answer}");
    assert_eq!(ask(&mut other, "GET", "/").await, "hello");
    assert_eq!(ask(&mut fixture.connect().await, "GET", "/").await, "hello");
}

#[tokio::test]
async fn at_the_cap_a_newcomer_takes_the_place_of_the_longest_idle() {
    let settings = ListenerSettings { connections_max: 2, ..ListenerSettings::default() };
    let fixture = Fixture::start(settings).await;
    let (mut first, mut second) = (fixture.connect().await, fixture.connect().await);
    assert_eq!(ask(&mut second, "GET", "/").await, "hello");
    time::sleep(Duration::from_millis(20)).await;
    assert_eq!(ask(&mut first, "GET", "/").await, "hello");
    let mut third = fixture.connect().await;
    assert_eq!(ask(&mut third, "GET", "/").await, "hello");
    assert_eq!(receive_all(&mut second).await, "", "the second was idle longest");
    assert_eq!(ask(&mut first, "GET", "/").await, "hello", "the first stays");
}

#[tokio::test]
async fn at_the_cap_a_newcomer_waits_for_busy_connections() {
    let settings = ListenerSettings { connections_max: 1, ..ListenerSettings::default() };
    let fixture = Fixture::start(settings).await;
    let mut busy = fixture.connect().await;
    send(&mut busy, "GET /wait HTTP/1.1\r\nhost: x\r\n\r\n").await;
    within(fixture.probe.entered.notified()).await;
    let mut waiting = fixture.connect().await;
    send(&mut waiting, "GET / HTTP/1.1\r\nhost: x\r\n\r\n").await;
    let early = time::timeout(Duration::from_millis(300), waiting.read_u8()).await;
    assert!(early.is_err(), "a new connection is not served beyond the cap");
    fixture.probe.release.notify_one();
    assert_eq!(receive(&mut busy).await.1, "waited");
    assert_eq!(receive(&mut waiting).await.1, "hello");
    assert_eq!(fixture.metrics.connections_open(), 1);
}

#[tokio::test]
async fn at_the_cap_slow_heads_are_evicted_before_idle_connections() {
    let settings = ListenerSettings { connections_max: 3, ..ListenerSettings::default() };
    let fixture = Fixture::start(settings).await;
    let mut idle = fixture.connect().await;
    assert_eq!(ask(&mut idle, "GET", "/").await, "hello");
    let (mut silent, mut slow) = (fixture.connect().await, fixture.connect().await);
    send(&mut slow, "GET / HTTP/1.1\r\nhost:").await;
    // Long enough not to be taken for clients that are about to ask.
    time::sleep(Duration::from_millis(1500)).await;
    let (mut one, mut other) = (fixture.connect().await, fixture.connect().await);
    assert_eq!(ask(&mut one, "GET", "/").await, "hello");
    assert_eq!(ask(&mut other, "GET", "/").await, "hello");
    assert_eq!(receive_all(&mut silent).await, "");
    let mut rest = Vec::new();
    // Closed with bytes that nobody read, which the system reports as a reset.
    let _ = within(slow.read_to_end(&mut rest)).await;
    assert!(rest.is_empty(), "{rest:?}");
    assert_eq!(ask(&mut idle, "GET", "/").await, "hello", "the idle one stays");
}

#[tokio::test]
async fn at_the_end_requests_finish_and_idle_connections_close_at_once() {
    let fixture = Fixture::start(ListenerSettings::default()).await;
    let (mut idle, mut fresh, mut busy) = (fixture.connect().await, fixture.connect().await, fixture.connect().await);
    assert_eq!(ask(&mut idle, "GET", "/").await, "hello");
    send(&mut busy, "GET /wait HTTP/1.1\r\nhost: x\r\n\r\n").await;
    within(fixture.probe.entered.notified()).await;
    let (address, probe) = (fixture.address, Arc::clone(&fixture.probe));
    let stopping = tokio::spawn(fixture.stop());
    assert_eq!(receive_all(&mut idle).await, "");
    assert_eq!(receive_all(&mut fresh).await, "");
    assert!(TcpStream::connect(address).await.is_err(), "nobody listens any more");
    assert!(!stopping.is_finished(), "a request is in flight");
    probe.release.notify_one();
    let (head, body) = receive(&mut busy).await;
    assert_eq!(body, "waited");
    assert!(head.contains("connection: close"), "{head}");
    assert_eq!(within(stopping).await.expect("the listener ends"), Stopped { connections_cut: 0 });
}

#[tokio::test]
async fn a_request_that_outlives_the_grace_period_is_cut() {
    let settings = ListenerSettings { shutdown_grace: Duration::from_millis(100), ..ListenerSettings::default() };
    let fixture = Fixture::start(settings).await;
    let mut client = fixture.connect().await;
    send(&mut client, "GET /wait HTTP/1.1\r\nhost: x\r\n\r\n").await;
    within(fixture.probe.entered.notified()).await;
    let metrics = Arc::clone(&fixture.metrics);
    assert_eq!(fixture.stop().await, Stopped { connections_cut: 1 });
    assert_eq!(metrics.connections_open(), 0);
}

mod tls;
