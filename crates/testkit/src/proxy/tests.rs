//! The proxy before a server that sends every byte back.

use super::{Direction, Mode, Proxy};
use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::time::{Duration, Instant};

const WAIT_MAX: Duration = Duration::from_secs(30);
/// How long silence is listened to.
const SILENCE: Duration = Duration::from_millis(150);

/// Starts a server that sends back what it gets and counts it; its threads end with their connections.
fn echo() -> (SocketAddr, Arc<AtomicU64>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("an address");
    let seen = Arc::new(AtomicU64::new(0));
    let counter = Arc::clone(&seen);
    std::thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            let counter = Arc::clone(&counter);
            std::thread::spawn(move || {
                let mut buffer = [0; 4096];
                while let Ok(count @ 1..) = stream.read(&mut buffer) {
                    counter.fetch_add(count as u64, SeqCst);
                    if stream.write_all(&buffer[..count]).is_err() {
                        return;
                    }
                }
            });
        }
    });
    (address, seen)
}

fn connect(proxy: &Proxy) -> TcpStream {
    let stream = TcpStream::connect(proxy.address()).expect("the proxy listens");
    stream.set_read_timeout(Some(WAIT_MAX)).expect("a timeout");
    stream
}

/// Sends bytes and reads back as many, or as came before the end.
fn exchange(stream: &mut TcpStream, bytes: &[u8]) -> Vec<u8> {
    let _ = stream.write_all(bytes);
    let mut back = vec![0; bytes.len()];
    let mut count = 0;
    while count < back.len() {
        match stream.read(&mut back[count..]) {
            Ok(read @ 1..) => count += read,
            _ => break,
        }
    }
    back.truncate(count);
    back
}

fn is_silent(stream: &mut TcpStream) -> bool {
    stream.set_read_timeout(Some(SILENCE)).expect("a timeout");
    let read = stream.read(&mut [0; 1]);
    stream.set_read_timeout(Some(WAIT_MAX)).expect("a timeout");
    read.is_err_and(|error| matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut))
}

/// Waits for something that another thread brings about.
fn eventually(what: &str, is_so: impl Fn() -> bool) {
    let until = Instant::now() + WAIT_MAX;
    while !is_so() {
        assert!(Instant::now() < until, "never: {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

#[test]
fn bytes_pass_unchanged_and_connections_are_counted() {
    let (address, seen) = echo();
    let proxy = Proxy::start(address);
    let long: Vec<u8> = (0..200_000u32).map(|number| number as u8).collect();
    let (mut one, mut two) = (connect(&proxy), connect(&proxy));
    // Sent and read at once, since neither side holds so much.
    let mut writing = one.try_clone().expect("a second handle");
    let sent = long.clone();
    let writer = std::thread::spawn(move || writing.write_all(&sent));
    let mut back = vec![0; long.len()];
    one.read_exact(&mut back).expect("all comes back");
    writer.join().expect("no panic").expect("all was sent");
    assert!(back == long);
    assert_eq!(exchange(&mut two, b"hello"), b"hello");
    assert_eq!((proxy.connections(), proxy.cuts(), seen.load(SeqCst)), (2, 0, 200_005));
    drop((one, two));
    eventually("closed connections are forgotten", || proxy.open() == 0);
}

#[test]
fn the_end_of_one_direction_leaves_the_other_open() {
    let (address, _) = echo();
    let proxy = Proxy::start(address);
    let mut stream = connect(&proxy);
    proxy.set(Mode::Delay(Duration::from_millis(20)));
    stream.write_all(b"last words").expect("sent");
    stream.shutdown(std::net::Shutdown::Write).expect("shut");
    let mut back = Vec::new();
    stream.read_to_end(&mut back).expect("the echo and its end");
    assert_eq!(back, b"last words");
}

#[test]
fn delay_holds_each_direction_back() {
    let (address, _) = echo();
    let proxy = Proxy::start(address);
    let mut stream = connect(&proxy);
    proxy.set(Mode::Delay(Duration::from_millis(60)));
    let start = Instant::now();
    assert_eq!(exchange(&mut stream, b"x"), b"x");
    assert!(start.elapsed() >= Duration::from_millis(120), "both directions wait");
}

#[test]
fn a_cut_comes_after_exactly_so_many_bytes() {
    let (address, seen) = echo();
    let proxy = Proxy::start(address);
    for (bytes, direction, arrived, returned) in
        [(4, Direction::ToServer, 4, None), (4, Direction::ToClient, 10, Some(4)), (0, Direction::ToServer, 0, Some(0))]
    {
        proxy.set(Mode::Pass);
        seen.store(0, SeqCst);
        let mut stream = connect(&proxy);
        proxy.set(Mode::CutAfter { bytes, direction });
        let back = exchange(&mut stream, b"0123456789");
        // The echo of bytes before the cut may or may not outrun it.
        assert!(returned.map_or(back.len() <= 4, |returned| back.len() == returned), "{direction:?}: {back:?}");
        eventually("the bytes before the cut arrive", || seen.load(SeqCst) == arrived);
    }
    assert_eq!(proxy.cuts(), 3);
}

#[test]
fn a_cut_counts_over_many_chunks_and_on_each_connection() {
    let (address, _) = echo();
    let proxy = Proxy::start(address);
    proxy.set(Mode::CutAfter { bytes: 5, direction: Direction::ToClient });
    for _ in 0..2 {
        let mut stream = connect(&proxy);
        assert_eq!(exchange(&mut stream, b"ab"), b"ab");
        assert_eq!(exchange(&mut stream, b"cd"), b"cd");
        assert_eq!(exchange(&mut stream, b"ef"), b"e");
    }
    assert_eq!((proxy.connections(), proxy.cuts()), (2, 2));
}

#[test]
fn random_cuts_follow_their_seed_and_their_chance() {
    let (address, _) = echo();
    let proxy = Proxy::start(address);
    let run = |percent, seed| {
        proxy.set(Mode::CutRandomly { percent, bytes_max: 10, seed });
        let cut = |_| exchange(&mut connect(&proxy), b"0123456789").len() < 10;
        (0..20).map(cut).collect::<Vec<bool>>()
    };
    assert_eq!(run(0, 1), [false; 20]);
    assert_eq!(run(100, 1), [true; 20]);
    assert_eq!(proxy.cuts(), 20);
    let some = run(50, 7);
    assert_eq!(some, run(50, 7), "the same seed makes the same cuts");
    assert!(some.contains(&true) && some.contains(&false), "{some:?}");
}

#[test]
fn a_half_open_connection_is_silent_and_delivers_when_the_network_is_back() {
    let (address, seen) = echo();
    let proxy = Proxy::start(address);
    let mut stream = connect(&proxy);
    assert_eq!(exchange(&mut stream, b"before"), b"before");
    proxy.set(Mode::HalfOpen(Direction::Both));
    stream.write_all(b"held").expect("the proxy's side is open");
    assert!(is_silent(&mut stream));
    let mut fresh = connect(&proxy);
    fresh.write_all(b"new").expect("new connections are accepted");
    assert!(is_silent(&mut fresh));
    assert_eq!(seen.load(SeqCst), 6, "nothing arrived");
    proxy.set(Mode::Pass);
    let mut back = [0; 4];
    stream.read_exact(&mut back).expect("what was held is delivered");
    assert_eq!(&back, b"held");
    assert_eq!(exchange(&mut stream, b"after"), b"after");
}

#[test]
fn silence_in_one_direction_lets_the_other_through() {
    let (address, seen) = echo();
    let proxy = Proxy::start(address);
    let mut stream = connect(&proxy);
    proxy.set(Mode::HalfOpen(Direction::ToClient));
    stream.write_all(b"heard").expect("sent");
    eventually("the server hears", || seen.load(SeqCst) == 5);
    assert!(is_silent(&mut stream), "but its answer is lost");
    // A connection that is given up on is closed, even in silence.
    drop(stream);
    proxy.cut_all();
    eventually("cut connections are forgotten", || proxy.open() == 0);
}

#[test]
fn refuse_closes_new_connections_and_cut_all_the_old() {
    let (address, _) = echo();
    let proxy = Proxy::start(address);
    let mut old = connect(&proxy);
    assert_eq!(exchange(&mut old, b"x"), b"x");
    proxy.set(Mode::Refuse);
    assert_eq!(exchange(&mut connect(&proxy), b"x"), b"");
    assert_eq!(exchange(&mut old, b"y"), b"y");
    proxy.cut_all();
    assert_eq!(exchange(&mut old, b"z"), b"");
    assert_eq!((proxy.connections(), proxy.cuts()), (1, 1));
    proxy.set(Mode::Pass);
    assert_eq!(exchange(&mut connect(&proxy), b"x"), b"x");
}
