//! The search for an order of calls that a single store obeys.
//!
//! A call may come next if it began before any other that is left has ended. Calls without an answer never end and
//! need not come at all. A call that is right now and changes nothing comes next without a choice: later it could only be
//! wrong. What was tried is remembered by the set of calls done and the state they led to.

use super::{Kind, Span, Violation};
use std::collections::HashSet;
use std::fmt::Debug;
use std::hash::Hash;

/// How many choices are tried before the search gives up.
const CHOICES_MAX: usize = 200_000;

/// The rules of a store: what a call makes of a state.
pub(super) trait Rules {
    /// What the store holds.
    type State: Clone + Eq + Hash;
    /// A call and its answer.
    type Call;

    /// When the call was under way.
    fn span(&self, call: &Self::Call) -> Span;
    /// Whether nothing is known of how the call ended.
    fn is_open(&self, call: &Self::Call) -> bool;
    /// The state after the call, if its answer is right in this state. A call without an answer leads on only if it
    /// changes something.
    fn apply(&self, state: &Self::State, call: &Self::Call) -> Option<Self::State>;
}

/// What the search found.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Verdict<State> {
    /// There is such an order.
    Ordered,
    /// There is none. This is as far as it got: the calls done, in order, the state then, and those that could not follow.
    Impossible { done: Vec<usize>, state: State, stuck: Vec<usize> },
    /// It gave up.
    Undecided,
}

impl<State: Debug> Verdict<State> {
    /// The violation, if there is no order: shown by the calls that were searched, or by all if the search gave up.
    pub(super) fn violation<Call: Clone>(
        self,
        name: &str,
        all: &[Call],
        searched: &[Call],
        list: impl Fn(&[Call]) -> String,
    ) -> Option<Violation> {
        match self {
            Self::Ordered => None,
            Self::Undecided => Some(Violation::new(Kind::Undecided, name, list(all))),
            Self::Impossible { done, state, stuck } => {
                let pick =
                    |numbers: &[usize]| numbers.iter().map(|number| searched[*number].clone()).collect::<Vec<_>>();
                let before = pick(&done[done.len().saturating_sub(12)..]);
                let evidence =
                    format!("{}then {state:?}, where none can follow:\n{}", list(&before), list(&pick(&stuck)));
                Some(Violation::new(Kind::NotLinearizable, name, evidence))
            }
        }
    }
}

struct Search<'a, R: Rules> {
    rules: &'a R,
    /// In the order in which they began.
    calls: Vec<&'a R::Call>,
    /// The place of each in what the caller handed in.
    places: Vec<usize>,
    tried: HashSet<(Box<[u64]>, R::State)>,
    done: Vec<u64>,
    path: Vec<usize>,
    deepest: Option<(Vec<usize>, R::State, Vec<usize>)>,
    choices: usize,
}

/// A state on the way, and what may still be tried from there.
struct Frame<State> {
    state: State,
    options: Vec<usize>,
    /// How many calls had come before it.
    mark: usize,
}

/// Looks for an order of these calls from this state on.
pub(super) fn search<R: Rules>(rules: &R, start: R::State, calls: &[R::Call]) -> Verdict<R::State> {
    let mut places: Vec<usize> = (0..calls.len()).collect();
    places.sort_by_key(|place| rules.span(&calls[*place]).begin);
    let mut search = Search {
        rules,
        calls: places.iter().map(|place| &calls[*place]).collect(),
        places,
        tried: HashSet::new(),
        done: vec![0; calls.len().div_ceil(64)],
        path: Vec::new(),
        deepest: None,
        choices: 0,
    };
    match search.run(start) {
        Some(true) => Verdict::Ordered,
        None => Verdict::Undecided,
        Some(false) => {
            let (done, state, stuck) = search.deepest.take().expect("the search got somewhere, if only to its start");
            let outside = |calls: Vec<usize>| calls.into_iter().map(|call| search.places[call]).collect();
            Verdict::Impossible { done: outside(done), state, stuck: outside(stuck) }
        }
    }
}

impl<R: Rules> Search<'_, R> {
    /// Whether all calls can follow this state; nothing if that took too long to find out.
    fn run(&mut self, start: R::State) -> Option<bool> {
        let mut frames = vec![match self.enter(start, 0) {
            Some(frame) => frame,
            None => return Some(true),
        }];
        while let Some(frame) = frames.last_mut() {
            let Some(call) = frame.options.pop() else {
                let mark = frame.mark;
                frames.pop();
                self.untake_to(mark);
                continue;
            };
            let Some(after) = self.rules.apply(&frame.state, self.calls[call]) else { continue };
            self.choices += 1;
            if self.choices > CHOICES_MAX {
                return None;
            }
            let mark = self.path.len();
            self.take(call);
            match self.enter(after, mark) {
                Some(frame) => frames.push(frame),
                None => return Some(true),
            }
        }
        Some(false)
    }

    /// Goes on from a state: takes what changes nothing, and finds what may follow. Nothing when all is done.
    fn enter(&mut self, state: R::State, mark: usize) -> Option<Frame<R::State>> {
        let mut options = loop {
            let next = self.next();
            let quiet = next.iter().copied().find(|call| {
                let found = self.calls[*call];
                !self.rules.is_open(found) && self.rules.apply(&state, found).is_some_and(|after| after == state)
            });
            match quiet {
                Some(call) => self.take(call),
                None => break next,
            }
        };
        let answered: Vec<usize> =
            options.iter().copied().filter(|call| !self.rules.is_open(self.calls[*call])).collect();
        if answered.is_empty() {
            return None;
        }
        if self.deepest.as_ref().is_none_or(|(path, ..)| path.len() < self.path.len()) {
            self.deepest = Some((self.path.clone(), state.clone(), answered));
        }
        if !self.tried.insert((self.done.clone().into(), state.clone())) {
            options.clear();
        }
        // The last is tried first.
        options.reverse();
        Some(Frame { state, options, mark })
    }

    /// The calls that may come next: answered ones by when they ended, then those without an answer.
    fn next(&self) -> Vec<usize> {
        let mut first_end = u64::MAX;
        let mut found = Vec::new();
        let first = 64 * self.done.iter().take_while(|word| **word == u64::MAX).count();
        for (call, what) in self.calls.iter().enumerate().skip(first) {
            let span = self.rules.span(what);
            if span.begin > first_end {
                break;
            }
            if self.is_done(call) {
                continue;
            }
            let end = if self.rules.is_open(what) { u64::MAX } else { span.end };
            first_end = first_end.min(end);
            found.push((end, span.begin, call));
        }
        found.retain(|(_, begin, _)| *begin <= first_end);
        found.sort_unstable();
        found.into_iter().map(|(.., call)| call).collect()
    }

    fn is_done(&self, call: usize) -> bool {
        self.done[call / 64] >> (call % 64) & 1 == 1
    }

    fn take(&mut self, call: usize) {
        self.done[call / 64] |= 1 << (call % 64);
        self.path.push(call);
    }

    fn untake_to(&mut self, mark: usize) {
        for call in self.path.drain(mark..) {
            self.done[call / 64] &= !(1 << (call % 64));
        }
    }
}
