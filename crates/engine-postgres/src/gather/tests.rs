//! Workers that hang or panic, over a real connection.

use super::*;
use crate::settings::Settings;
use larimar_testkit::postgres::Cluster;

/// Requests that do what they say, one at a time in order.
struct Scripted;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Script {
    Answer,
    Hang,
    Panic,
}

impl RequestKind for Scripted {
    type Request = Script;
    type Answer = ();

    const LIMITS: Limits = Limits {
        name: "scripts",
        running_freely: 1,
        enough: 1,
        group_max: 1,
        group_bytes_max: usize::MAX,
        waiting_max: 10,
        waiting_bytes_max: usize::MAX,
    };
    const KEEP: Keep = Keep::WhileIdle;

    fn writes(_: &Script) -> usize {
        0
    }

    fn turn(_: &Script) -> Option<u64> {
        Some(1)
    }

    fn shares_group(_: &Script, _: &Script) -> bool {
        false
    }

    fn retry(_: &Failure) -> Retry {
        Retry::No
    }

    async fn send(_: &Connection, group: &[&Script]) -> Result<Vec<()>, Failure> {
        match group[0] {
            Script::Answer => Ok(vec![()]),
            Script::Hang => std::future::pending().await,
            Script::Panic => panic!("as the test asks"),
        }
    }
}

/// A gather with one worker, and its tasks.
fn gather(timeout: Duration) -> (Arc<Gather<Scripted>>, JoinSet<()>) {
    let settings = Settings { timeout, ..Settings::new(Cluster::shared().fresh_url()) };
    let pool = Arc::new(Pool::new(Arc::new(Core::new(settings.target().expect("a URL"))), 2));
    let (gather, mut tasks) = (Gather::new(&pool, 1), JoinSet::new());
    gather.start(&mut tasks);
    (gather, tasks)
}

/// A limit for a test that hangs; nothing is measured by it.
const PATIENCE: Duration = Duration::from_secs(60);

#[tokio::test]
async fn a_request_is_answered_at_its_time_limit_while_every_worker_hangs() {
    let (gather, _tasks) = gather(Duration::from_secs(1));
    let hanging = gather.request(Script::Hang);
    let waiting = async {
        tokio::task::yield_now().await;
        gather.request(Script::Answer).await
    };
    let answer = tokio::select! {
        answer = waiting => answer,
        _ = hanging => panic!("it hangs"),
        () = tokio::time::sleep(PATIENCE) => panic!("the request waits for the worker"),
    };
    assert!(matches!(answer, Err(Failure::Refused(_))), "nothing was sent: {answer:?}");
}

#[tokio::test]
async fn a_worker_that_panics_frees_the_turn_of_its_request_and_continues() {
    let (gather, _tasks) = gather(PATIENCE);
    for _ in 0..2 {
        let answer = tokio::time::timeout(PATIENCE, gather.request(Script::Panic)).await.expect("a worker takes it");
        assert!(matches!(answer, Err(Failure::Unknown(_))), "it may have been sent: {answer:?}");
    }
    let answer = tokio::time::timeout(PATIENCE, gather.request(Script::Answer)).await;
    answer.expect("a worker takes it").expect("its turn is free");
}
