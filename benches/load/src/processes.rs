//! Processor time of processes, from `/proc`: one process, or a parent with everything it started.

use std::time::{Duration, Instant};

use anyhow::Context as _;

/// Time used by one process since its start, by all its threads.
pub(crate) fn own_time(pid: u32) -> anyhow::Result<Duration> {
    Ok(times(&stat(pid)?)?.own)
}

/// Time used by a process and by the children it has waited for.
pub(crate) fn time_with_ended_children(pid: u32) -> anyhow::Result<Duration> {
    let times = times(&stat(pid)?)?;
    Ok(times.own + times.ended_children)
}

/// Time used by a process and its children, those that have ended included.
pub(crate) fn family_time(pid: u32) -> anyhow::Result<Duration> {
    // A child that ends between the two looks is missed in this sum and is in the next one.
    let children = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"))?;
    let children = children.split_whitespace().filter_map(|child| child.parse().ok());
    let running: Duration = children.filter_map(|child| own_time(child).ok()).sum();
    Ok(time_with_ended_children(pid)? + running)
}

/// Waits until the measured processes are idle, for at most this long.
pub(crate) async fn settle(longest: Duration, time: impl Fn() -> anyhow::Result<Duration>) -> anyhow::Result<()> {
    let deadline = Instant::now() + longest;
    let mut quiet = 0;
    while quiet < 2 && Instant::now() < deadline {
        let before = time()?;
        tokio::time::sleep(Duration::from_millis(100)).await;
        let used = time()?.saturating_sub(before);
        quiet = if used <= Duration::from_millis(10) { quiet + 1 } else { 0 };
    }
    Ok(())
}

#[derive(Debug, PartialEq)]
struct Times {
    own: Duration,
    ended_children: Duration,
}

fn stat(pid: u32) -> anyhow::Result<String> {
    Ok(std::fs::read_to_string(format!("/proc/{pid}/stat"))?)
}

/// The second field is a name in parentheses that may hold anything; the 14th to 17th are ticks.
fn times(stat: &str) -> anyhow::Result<Times> {
    let rest = stat.rsplit_once(')').context("a process name")?.1;
    let ticks: Vec<u64> = rest.split_whitespace().skip(11).take(4).filter_map(|text| text.parse().ok()).collect();
    let [user, system, children_user, children_system] = ticks[..] else { anyhow::bail!("four numbers of ticks") };
    let per_second = rustix::param::clock_ticks_per_second();
    let time = |ticks: u64| Duration::from_millis(ticks * 1000 / per_second);
    Ok(Times { own: time(user + system), ended_children: time(children_user + children_system) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_process_may_hold_anything() {
        let read = times("7 (a) b) 3) S 1 7 7 0 -1 4194304 1 2 3 4 100 200 300 400 20 0 1 0 5").expect("a good line");
        let per_second = rustix::param::clock_ticks_per_second();
        let time = |ticks: u64| Duration::from_millis(ticks * 1000 / per_second);
        assert_eq!(read, Times { own: time(300), ended_children: time(700) });
        assert!(times("7 (a) S 1 2").is_err());
    }

    #[test]
    fn a_child_that_ended_still_counts() {
        let pid = std::process::id();
        let before = family_time(pid).expect("this process");
        let script = "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done";
        std::process::Command::new("sh").args(["-c", script]).status().expect("a shell");
        assert!(family_time(pid).expect("this process") > before);
    }
}
