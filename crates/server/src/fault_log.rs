//! Logs the engine's faults without letting them fill the disk: a fault that affects every request is logged when it begins
//! and then once a minute, with the number of requests that it affected meanwhile.

use larimar_engine::{Fault, LogLimit};
use parking_lot::Mutex;

/// Logs a fault, unless it was logged within the last minute.
pub(crate) fn log(fault: &Fault) {
    let text = fault.to_string();
    if let Some(left_out) = admit(&text) {
        tracing::error!(fault = text, left_out, "the engine failed");
    }
}

/// Asks for a line about something that may affect many requests: how many lines were left out before it, or nothing if
/// this one is left out too.
pub(crate) fn admit(what: &str) -> Option<u64> {
    LIMITS.lock().admit(what)
}

/// Limits by text: each text that was met within the last minute has its own, up to a number of texts.
pub(crate) struct Limits {
    texts_max: usize,
    known: Vec<(String, LogLimit)>,
}

impl Limits {
    pub(crate) const fn new(texts_max: usize) -> Self {
        Self { texts_max, known: Vec::new() }
    }

    pub(crate) fn admit(&mut self, text: &str) -> Option<u64> {
        self.known.retain(|(known, limit)| known == text || !limit.is_idle());
        // Texts that name each request would be without bound; the last place is for all of them.
        let is_known = self.known.iter().any(|(known, _)| known == text);
        let text = if is_known || self.known.len() < self.texts_max { text } else { OTHERS };
        let index = self.known.iter().position(|(known, _)| known == text).unwrap_or_else(|| {
            self.known.push((text.to_owned(), LogLimit::new()));
            self.known.len() - 1
        });
        self.known[index].1.admit()
    }
}

static LIMITS: Mutex<Limits> = Mutex::new(Limits::new(FAULTS_MAX));

const FAULTS_MAX: usize = 32;
const OTHERS: &str = "other faults";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_fault_is_logged_once_and_many_faults_a_bounded_number_of_times() {
        let mut limits = Limits::new(FAULTS_MAX);
        assert_eq!(limits.admit("full"), Some(0));
        assert!((0..1000).all(|_| limits.admit("full").is_none()));
        let logged = (0..1000).filter(|number| limits.admit(&format!("fault {number}")).is_some()).count();
        assert_eq!(logged, FAULTS_MAX);
    }
}
