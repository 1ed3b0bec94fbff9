//! A TCP proxy on the loopback that does what networks do to a connection: delays, cuts at any byte, silence.
//!
//! It stands between a client and one upstream address. Its [`Mode`] can change at any time and counts at once for
//! the connections that are open. Bytes that a silent connection holds back are delivered when the silence ends, as
//! after a network that was away for a while: what was given up on may still arrive.

use crate::Dice;
use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::Duration;

/// How long the upstream may take to accept.
const CONNECT_MAX: Duration = Duration::from_secs(5);
const CHUNK_BYTES: usize = 16 * 1024;

/// What the proxy does with the bytes it is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Passes them on.
    Pass,
    /// Passes every chunk on after this time.
    Delay(Duration),
    /// Lets so many further bytes through in a direction, connection by connection, then closes both sides.
    CutAfter {
        /// The bytes that still pass.
        bytes: u64,
        /// The direction in which they are counted.
        direction: Direction,
    },
    /// The same for a part of the connections, after a number of bytes and in a direction of the dice's choice.
    CutRandomly {
        /// How many connections of a hundred are cut.
        percent: u64,
        /// A connection is cut after fewer bytes than this.
        bytes_max: u64,
        /// The seed of the choices.
        seed: u64,
    },
    /// Keeps connections open, new ones too, and passes nothing on in this direction.
    HalfOpen(Direction),
    /// Closes new connections at once; those that are open go on.
    Refuse,
}

/// Where bytes go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From the client to the upstream.
    ToServer,
    /// From the upstream to the client.
    ToClient,
    /// Both ways.
    Both,
}

/// A running proxy. It ends, and closes all connections, when it is dropped.
#[derive(Debug)]
pub struct Proxy {
    address: SocketAddr,
    shared: Arc<Shared>,
    accepting: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    upstream: SocketAddr,
    orders: Mutex<Orders>,
    /// Notified when the mode changes or a connection is closed.
    changed: Condvar,
    links: Mutex<BTreeMap<u64, Arc<Link>>>,
    connections: AtomicU64,
    cuts: AtomicU64,
    bytes_to_client: AtomicU64,
    is_stopping: AtomicBool,
}

#[derive(Debug)]
struct Orders {
    mode: Mode,
    /// Goes up with every order, so that a connection knows whether its fuse is of this one.
    number: u64,
    dice: Dice,
}

/// One connection through the proxy.
#[derive(Debug)]
struct Link {
    client: TcpStream,
    upstream: TcpStream,
    fuse: Mutex<Fuse>,
    is_closed: AtomicBool,
}

/// When a connection is cut.
#[derive(Debug, Default)]
struct Fuse {
    order: u64,
    cut: Option<(Direction, u64)>,
}

/// What happens to a chunk.
enum Fate {
    Pass(Duration),
    /// So much of it passes, then both sides are closed.
    Cut(usize),
    Closed,
}

impl Proxy {
    /// Starts a proxy on a free port that passes everything on.
    ///
    /// # Panics
    /// If the loopback has no free port.
    #[must_use]
    pub fn start(upstream: SocketAddr) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a free port on the loopback");
        let address = listener.local_addr().expect("a bound socket has an address");
        let orders = Orders { mode: Mode::Pass, number: 1, dice: Dice::new(0) };
        let shared = Arc::new(Shared {
            upstream,
            orders: Mutex::new(orders),
            changed: Condvar::new(),
            links: Mutex::default(),
            connections: AtomicU64::new(0),
            cuts: AtomicU64::new(0),
            bytes_to_client: AtomicU64::new(0),
            is_stopping: AtomicBool::new(false),
        });
        let accepting = std::thread::spawn({
            let shared = Arc::clone(&shared);
            move || shared.accept(&listener)
        });
        Self { address, shared, accepting: Some(accepting) }
    }

    /// Where the proxy listens.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Changes what happens from now on, on open connections too.
    pub fn set(&self, mode: Mode) {
        let mut orders = self.shared.orders();
        orders.mode = mode;
        orders.number += 1;
        if let Mode::CutRandomly { seed, .. } = mode {
            orders.dice = Dice::new(seed);
        }
        self.shared.changed.notify_all();
    }

    /// Closes all open connections.
    pub fn cut_all(&self) {
        for link in self.shared.links().values() {
            self.shared.cut(link);
        }
    }

    /// How many connections were passed on to the upstream so far.
    #[must_use]
    pub fn connections(&self) -> u64 {
        self.shared.connections.load(SeqCst)
    }

    /// How many connections are open.
    #[must_use]
    pub fn open(&self) -> usize {
        self.shared.links().len()
    }

    /// How many bytes the upstream has sent so far.
    #[must_use]
    pub fn bytes_to_client(&self) -> u64 {
        self.shared.bytes_to_client.load(SeqCst)
    }

    /// How many connections the proxy closed on its own account.
    #[must_use]
    pub fn cuts(&self) -> u64 {
        self.shared.cuts.load(SeqCst)
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.shared.is_stopping.store(true, SeqCst);
        // The accepting thread checks the flag when a connection arrives.
        let _ = TcpStream::connect_timeout(&self.address, CONNECT_MAX);
        if let Some(accepting) = self.accepting.take() {
            let _ = accepting.join();
        }
        for link in self.shared.links().values() {
            self.shared.close(link);
        }
    }
}

impl Shared {
    fn orders(&self) -> MutexGuard<'_, Orders> {
        self.orders.lock().expect("no panic while locked")
    }

    fn links(&self) -> MutexGuard<'_, BTreeMap<u64, Arc<Link>>> {
        self.links.lock().expect("no panic while locked")
    }

    fn accept(self: &Arc<Self>, listener: &TcpListener) {
        for client in listener.incoming() {
            if self.is_stopping.load(SeqCst) {
                return;
            }
            let Ok(client) = client else { continue };
            if self.orders().mode == Mode::Refuse {
                continue;
            }
            let Ok(upstream) = TcpStream::connect_timeout(&self.upstream, CONNECT_MAX) else { continue };
            let _ = (client.set_nodelay(true), upstream.set_nodelay(true));
            let number = self.connections.fetch_add(1, SeqCst);
            let link = Link { client, upstream, fuse: Mutex::default(), is_closed: AtomicBool::new(false) };
            let link = Arc::new(link);
            self.links().insert(number, Arc::clone(&link));
            self.carry(number, link);
        }
    }

    /// Starts a thread for each direction. The last one to end forgets the connection.
    fn carry(self: &Arc<Self>, number: u64, link: Arc<Link>) {
        let left = Arc::new(AtomicU64::new(2));
        for direction in [Direction::ToServer, Direction::ToClient] {
            let (shared, link, left) = (Arc::clone(self), Arc::clone(&link), Arc::clone(&left));
            std::thread::spawn(move || {
                shared.pump(&link, direction);
                if left.fetch_sub(1, SeqCst) == 1 {
                    shared.close(&link);
                    shared.links().remove(&number);
                }
            });
        }
    }

    /// Carries bytes in one direction until an end of the connection is gone.
    fn pump(&self, link: &Link, direction: Direction) {
        let (mut from, mut to) = match direction {
            Direction::ToServer => (&link.client, &link.upstream),
            _ => (&link.upstream, &link.client),
        };
        let mut buffer = vec![0; CHUNK_BYTES];
        loop {
            let read = from.read(&mut buffer);
            // The end of the stream is news as well, which a silent network does not carry.
            let fate = self.fate(link, direction, *read.as_ref().unwrap_or(&0));
            let chunk = match read {
                Ok(0) => return drop(to.shutdown(Shutdown::Write)),
                Ok(count) => {
                    if direction == Direction::ToClient {
                        self.bytes_to_client.fetch_add(count as u64, SeqCst);
                    }
                    &buffer[..count]
                }
                Err(_) => return self.close(link),
            };
            let passed = match fate {
                Fate::Pass(delay) => {
                    std::thread::sleep(delay);
                    to.write_all(chunk).is_ok()
                }
                Fate::Cut(count) => {
                    let _ = to.write_all(&chunk[..count]);
                    return self.cut(link);
                }
                Fate::Closed => false,
            };
            if !passed {
                return self.close(link);
            }
        }
    }

    /// Decides what happens to so many bytes, waiting while nothing may pass.
    fn fate(&self, link: &Link, direction: Direction, count: usize) -> Fate {
        let mut orders = self.orders();
        loop {
            if link.is_closed.load(SeqCst) {
                return Fate::Closed;
            }
            match orders.mode {
                Mode::HalfOpen(silent) if silent.covers(direction) => {
                    orders = self.changed.wait(orders).expect("no panic while locked");
                }
                Mode::Delay(delay) => return Fate::Pass(delay),
                Mode::Pass | Mode::Refuse | Mode::HalfOpen(_) => return Fate::Pass(Duration::ZERO),
                Mode::CutAfter { .. } | Mode::CutRandomly { .. } => return link.burn(&mut orders, direction, count),
            }
        }
    }

    fn cut(&self, link: &Link) {
        if !link.is_closed.load(SeqCst) {
            self.cuts.fetch_add(1, SeqCst);
        }
        self.close(link);
    }

    fn close(&self, link: &Link) {
        let orders = self.orders();
        link.is_closed.store(true, SeqCst);
        let _ = (link.client.shutdown(Shutdown::Both), link.upstream.shutdown(Shutdown::Both));
        drop(orders);
        self.changed.notify_all();
    }
}

impl Link {
    /// Counts bytes against the connection's fuse, which an order gives it the first time.
    fn burn(&self, orders: &mut Orders, direction: Direction, count: usize) -> Fate {
        if count == 0 {
            return Fate::Pass(Duration::ZERO);
        }
        let mut fuse = self.fuse.lock().expect("no panic while locked");
        if fuse.order != orders.number {
            *fuse = Fuse { order: orders.number, cut: orders.draw() };
        }
        match &mut fuse.cut {
            Some((counted, bytes)) if counted.covers(direction) => {
                if *bytes <= count as u64 {
                    return Fate::Cut(*bytes as usize);
                }
                *bytes -= count as u64;
                Fate::Pass(Duration::ZERO)
            }
            _ => Fate::Pass(Duration::ZERO),
        }
    }
}

impl Orders {
    fn draw(&mut self) -> Option<(Direction, u64)> {
        match self.mode {
            Mode::CutAfter { bytes, direction } => Some((direction, bytes)),
            Mode::CutRandomly { percent, bytes_max, .. } => {
                let is_cut = self.dice.below(100) < percent;
                let direction = *self.dice.pick(&[Direction::ToServer, Direction::ToClient]);
                let bytes = self.dice.below(bytes_max.max(1));
                is_cut.then_some((direction, bytes))
            }
            _ => None,
        }
    }
}

impl Direction {
    fn covers(self, other: Self) -> bool {
        self == Self::Both || self == other
    }
}

#[cfg(test)]
mod tests;
