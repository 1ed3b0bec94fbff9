//! Point reads: those of concurrent requests share a statement.
//!
//! A few tasks keep a connection each. A task takes everything that waits, asks for it in one statement and hands the
//! answers out; meanwhile the next questions gather. A lookup within a statement costs the database a fraction of a
//! statement of its own, so this is faster than sending many statements at once (docs/decisions/0005).

use crate::connection::{Connection, column};
use crate::core::{Core, Line};
use crate::failure::Failure;
use crate::gathering::Gathering;
use crate::pool::Pool;
use crate::statements::GET;
use larimar_engine::Fault;
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::{Notify, oneshot};
use tokio_postgres::Row;

/// The questions that wait, and whom to wake.
pub(crate) struct Reads {
    core: Arc<Core>,
    queue: Mutex<Queue>,
    wake: Notify,
}

struct Queue {
    waiting: VecDeque<Question>,
    gathering: Gathering,
}

impl Queue {
    /// Whether another statement is worth it: large groups cost the database less than many statements.
    fn has_work(&self) -> bool {
        let now = Instant::now();
        self.waiting.front().is_some_and(|first| self.gathering.is_due(self.waiting.len(), first.asked, now))
    }

    /// How long to wait for more, if anything waits at all.
    fn patience(&self) -> Option<Duration> {
        (!self.waiting.is_empty()).then(|| self.gathering.patience())
    }
}

struct Question {
    space: i64,
    pk: Vec<u8>,
    rk: Vec<u8>,
    asked: Instant,
    attempts: usize,
    answer: oneshot::Sender<Result<Answer, Fault>>,
}

/// What was found at a key.
pub(crate) struct Answer {
    /// Whether the space exists.
    pub(crate) has_space: bool,
    /// The row's version, if there is a row.
    pub(crate) version: Option<u64>,
    row: Row,
}

impl Answer {
    fn new(row: Row) -> Result<(usize, Self), Failure> {
        let number: i64 = column(&row, 0)?;
        let version: Option<i64> = column(&row, 2)?;
        let answer = Self { has_space: column(&row, 1)?, version: version.map(i64::cast_unsigned), row };
        Ok((usize::try_from(number).unwrap_or(usize::MAX), answer))
    }

    /// The row's bytes; none if there is no row.
    pub(crate) fn body(&self) -> Option<&[u8]> {
        self.row.try_get(3).ok().flatten()
    }
}

impl Reads {
    pub(crate) fn new(core: Arc<Core>) -> Arc<Self> {
        let queue = Queue { waiting: VecDeque::new(), gathering: Gathering::new(BUSY_FREELY, GATHERED) };
        Arc::new(Self { core, queue: Mutex::new(queue), wake: Notify::new() })
    }

    /// Looks up one key.
    pub(crate) async fn get(&self, space: i64, pk: Vec<u8>, rk: Vec<u8>) -> Result<Answer, Fault> {
        let (answer, answered) = oneshot::channel();
        let question = Question { space, pk, rk, asked: Instant::now(), attempts: 0, answer };
        {
            let Queue { waiting, .. } = &mut *self.queue.lock();
            self.core.health.check()?;
            if waiting.len() >= WAITING_MAX {
                return Err(Fault::Unavailable("too many reads wait for the database".to_owned()));
            }
            waiting.push_back(question);
        }
        self.wake.notify_one();
        answered.await.unwrap_or_else(|_| Err(Fault::Unavailable("the engine is closed".to_owned())))
    }

    /// Looks up several rows of a partition at one moment, on a connection on loan.
    pub(crate) async fn get_together(
        pool: &Arc<Pool>,
        space: i64,
        pk: &[u8],
        rks: &[Vec<u8>],
    ) -> Result<Vec<Answer>, Fault> {
        let numbers: Vec<i64> = (0..).take(rks.len()).collect();
        let (spaces, pks) = (vec![space; rks.len()], vec![pk; rks.len()]);
        let rows = pool.ask(GET, &[&numbers, &spaces, &pks, &rks, &distinct(&spaces)]).await?;
        in_order(rows, rks.len()).map_err(Failure::into_unavailable)
    }

    /// Answers questions on a connection of its own, for ever.
    pub(crate) async fn serve(self: Arc<Self>) {
        let mut line = Line::new(Arc::clone(&self.core));
        loop {
            while !self.queue.lock().has_work() {
                let patience = self.queue.lock().patience();
                line.rest(&self.wake, patience).await;
            }
            let connection = line.connection(&self.wake, |fault| self.refuse(fault)).await;
            let Some((questions, started)) = self.take() else { continue };
            let failed = ask(connection, questions).await.err();
            if let Some((failure, questions)) = failed {
                if failure.ends_connection() {
                    line.give_up();
                }
                self.ask_again(questions, failure);
            }
            line.share();
            self.queue.lock().gathering.end(started, Instant::now());
            self.wake.notify_one();
        }
    }

    /// Takes what waits, without those that waited too long; nothing if others were faster. Whoever takes is busy.
    fn take(&self) -> Option<(Vec<Question>, Instant)> {
        let mut queue = self.queue.lock();
        if !queue.has_work() {
            return None;
        }
        let started = Instant::now();
        queue.gathering.begin(started);
        let count = queue.waiting.len().min(QUESTIONS_MAX);
        let (taken, late): (Vec<_>, Vec<_>) =
            queue.waiting.drain(..count).partition(|question| question.asked.elapsed() < self.core.target.timeout);
        let is_more = queue.has_work();
        drop(queue);
        if is_more {
            self.wake.notify_one();
        }
        for question in late {
            let _ = question.answer.send(Err(Fault::Unavailable("the database is too slow".to_owned())));
        }
        Some((taken, started))
    }

    /// Puts questions back that met a failure, unless they did so too often.
    fn ask_again(&self, questions: Vec<Question>, failure: Failure) {
        let is_over = failure.ends_connection();
        let fault = failure.into_unavailable();
        let mut queue = self.queue.lock();
        for mut question in questions.into_iter().rev() {
            // A connection that ended says nothing of the question; it is asked on others until its time is up.
            question.attempts += usize::from(!is_over);
            if question.attempts < ATTEMPTS_MAX {
                queue.waiting.push_front(question);
            } else {
                let _ = question.answer.send(Err(fault.clone()));
            }
        }
    }

    /// Lets all go who wait.
    pub(crate) fn refuse(&self, fault: &Fault) {
        for question in self.queue.lock().waiting.drain(..) {
            let _ = question.answer.send(Err(fault.clone()));
        }
    }
}

/// The answers by the numbers of their questions, each of which has one.
fn in_order(rows: Vec<Row>, count: usize) -> Result<Vec<Answer>, Failure> {
    let mut answers = rows.into_iter().map(Answer::new).collect::<Result<Vec<_>, _>>()?;
    answers.sort_by_key(|(number, _)| *number);
    if answers.len() != count {
        return Err(Failure::Refused(format!("{} answers to {count} questions", answers.len())));
    }
    Ok(answers.into_iter().map(|(_, answer)| answer).collect())
}

/// The numbers without repeats.
pub(crate) fn distinct(numbers: &[i64]) -> Vec<i64> {
    let mut numbers = numbers.to_vec();
    numbers.sort_unstable();
    numbers.dedup();
    numbers
}

async fn ask(connection: &Connection, questions: Vec<Question>) -> Result<(), (Failure, Vec<Question>)> {
    let numbers: Vec<i64> = (0..).take(questions.len()).collect();
    let spaces: Vec<i64> = questions.iter().map(|question| question.space).collect();
    let pks: Vec<&[u8]> = questions.iter().map(|question| question.pk.as_slice()).collect();
    let rks: Vec<&[u8]> = questions.iter().map(|question| question.rk.as_slice()).collect();
    let rows = connection.query(GET, &[&numbers, &spaces, &pks, &rks, &distinct(&spaces)]).await;
    let rows = match rows {
        Ok(rows) => rows,
        Err(failure) => return Err((failure, questions)),
    };
    let mut questions: Vec<Option<Question>> = questions.into_iter().map(Some).collect();
    for row in rows {
        match Answer::new(row) {
            Ok((number, answer)) => {
                if let Some(question) = questions.get_mut(number).and_then(Option::take) {
                    // Nobody may be waiting any more.
                    let _ = question.answer.send(Ok(answer));
                }
            }
            Err(failure) => return Err((failure, questions.into_iter().flatten().collect())),
        }
    }
    Ok(())
}

/// Statements that begin as soon as one question waits, and how many have to wait for a further one.
const BUSY_FREELY: usize = 2;
const GATHERED: usize = 32;
const QUESTIONS_MAX: usize = 256;
const WAITING_MAX: usize = 20_000;
const ATTEMPTS_MAX: usize = 3;
