//! Output into pipes: huge answers, readers that go away, and interrupts.

use super::Fixture;
use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const QUERY: &str = "exec larimar table query Big --output";

fn ended(mut child: Child) -> (Option<i32>, String) {
    let deadline = Instant::now() + Duration::from_secs(60);
    let status = loop {
        if let Some(status) = child.try_wait().expect("a child") {
            break status;
        }
        assert!(Instant::now() < deadline, "the command does not end");
        std::thread::sleep(Duration::from_millis(20));
    };
    let mut said = String::new();
    child.stderr.take().expect("a pipe").read_to_string(&mut said).expect("text");
    (status.code(), said)
}

#[test]
fn a_reader_that_goes_away_ends_a_command_quietly_and_at_once() {
    let fixture = Fixture::start();
    fixture.fill("Big", 3000);
    for format in ["json", "csv", "table"] {
        let mut command = fixture.shell(&format!("{QUERY} {format}"));
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("a shell");
        let mut line = String::new();
        BufReader::with_capacity(64, child.stdout.take().expect("a pipe")).read_line(&mut line).expect("a line");
        assert!(line.contains("PartitionKey"), "{line}");
        assert_eq!(ended(child), (Some(0), String::new()), "{format}");
    }
    assert_eq!(fixture.run("larimar table query Big | head -n 2").lines().count(), 2);
}

#[test]
fn pipes_get_json_lines_without_colours() {
    let fixture = Fixture::start();
    fixture.fill("Big", 2);
    let text = fixture.run("larimar table query Big 2>&1");
    assert!(text.lines().all(|line| line.starts_with("{\"PartitionKey\":\"p\",\"RowKey\":\"00000")), "{text}");
    assert_eq!(fixture.run("larimar table count Big"), "2\n");
    assert_eq!(fixture.run("larimar table count Big --output json"), "{\"count\":2}\n");
    for line in ["larimar --help", "larimar table query --help", "larimar table qeury 2>&1 || true"] {
        let text = fixture.run(line);
        assert!(!text.contains('\u{1b}'), "{text:?}");
    }
}

#[test]
fn an_interrupt_ends_a_command_also_while_nobody_reads_its_output() {
    let fixture = Fixture::start();
    // More than the pipe and the buffers hold.
    fixture.fill("Big", 3000);
    for signal in ["INT", "TERM"] {
        let mut command = fixture.shell(&format!("{QUERY} json"));
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("a shell");
        let mut pipe = child.stdout.take().expect("a pipe");
        pipe.read_exact(&mut [0; 64]).expect("the first bytes");
        let sent = Command::new("kill").args([&format!("-{signal}"), &child.id().to_string()]).status();
        assert!(sent.expect("kill runs").success());
        assert_eq!(ended(child), (Some(130), "larimar: interrupted\n".to_owned()));
    }
}
