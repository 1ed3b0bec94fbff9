//! Point reads: those of concurrent requests share a statement.
//!
//! A few tasks keep a connection each. A task takes everything that waits, asks for it in one statement and hands the
//! answers out; meanwhile the next questions gather. A lookup within a statement costs the database a fraction of a
//! statement of its own, so this is faster than sending many statements at once (docs/decisions/0005).

use crate::connection::{Connection, column};
use crate::core::{Core, Line};
use crate::failure::Failure;
use crate::pool::Pool;
use crate::statements::GET;
use larimar_engine::Fault;
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;
use tokio::sync::{Notify, oneshot};
use tokio_postgres::Row;

/// The questions that wait, and whom to wake.
pub(crate) struct Reads {
    core: Arc<Core>,
    waiting: Mutex<VecDeque<Question>>,
    wake: Notify,
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
        Arc::new(Self { core, waiting: Mutex::default(), wake: Notify::new() })
    }

    /// Looks up one key.
    pub(crate) async fn get(&self, space: i64, pk: Vec<u8>, rk: Vec<u8>) -> Result<Answer, Fault> {
        let (answer, answered) = oneshot::channel();
        let question = Question { space, pk, rk, asked: Instant::now(), attempts: 0, answer };
        {
            let mut waiting = self.waiting.lock();
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
        pool: &Pool,
        space: i64,
        pk: &[u8],
        rks: &[Vec<u8>],
    ) -> Result<Vec<Answer>, Fault> {
        let numbers: Vec<i64> = (0..).take(rks.len()).collect();
        let (spaces, pks) = (vec![space; rks.len()], vec![pk; rks.len()]);
        let mut fault = Fault::Unavailable("the database did not answer".to_owned());
        for _ in 0..ATTEMPTS_MAX {
            let lent = pool.lend().await?;
            match lent.query(GET, &[&numbers, &spaces, &pks, &rks]).await {
                Ok(rows) => return in_order(rows, rks.len()).map_err(Failure::into_unavailable),
                Err(failure) => {
                    if failure.ends_connection() {
                        lent.give_up();
                    }
                    fault = failure.into_unavailable();
                }
            }
        }
        Err(fault)
    }

    /// Answers questions on a connection of its own, for ever.
    pub(crate) async fn serve(self: Arc<Self>) {
        let mut line = Line::new(Arc::clone(&self.core));
        loop {
            while self.waiting.lock().is_empty() {
                self.wake.notified().await;
            }
            let connection = line.connection(|fault| self.refuse(fault)).await;
            let questions = self.take();
            if questions.is_empty() {
                continue;
            }
            if let Err((failure, questions)) = ask(connection, questions).await {
                if failure.ends_connection() {
                    line.give_up();
                }
                self.ask_again(questions, failure);
            }
        }
    }

    /// Takes what waits, without those that waited too long.
    fn take(&self) -> Vec<Question> {
        let mut waiting = self.waiting.lock();
        let count = waiting.len().min(QUESTIONS_MAX);
        let (taken, late): (Vec<_>, Vec<_>) =
            waiting.drain(..count).partition(|question| question.asked.elapsed() < self.core.target.timeout);
        let is_more = !waiting.is_empty();
        drop(waiting);
        if is_more {
            self.wake.notify_one();
        }
        for question in late {
            let _ = question.answer.send(Err(Fault::Unavailable("the database is too slow".to_owned())));
        }
        taken
    }

    /// Puts questions back that met a failure, unless they did so too often.
    fn ask_again(&self, questions: Vec<Question>, failure: Failure) {
        let fault = failure.into_unavailable();
        let mut waiting = self.waiting.lock();
        for mut question in questions.into_iter().rev() {
            question.attempts += 1;
            if question.attempts < ATTEMPTS_MAX {
                waiting.push_front(question);
            } else {
                let _ = question.answer.send(Err(fault.clone()));
            }
        }
        drop(waiting);
        self.wake.notify_one();
    }

    /// Lets all go who wait.
    pub(crate) fn refuse(&self, fault: &Fault) {
        for question in self.waiting.lock().drain(..) {
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

const QUESTIONS_MAX: usize = 256;
const WAITING_MAX: usize = 20_000;
const ATTEMPTS_MAX: usize = 3;
