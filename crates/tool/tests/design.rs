//! The designs of every example, tried on a server: plans and rows are as predicted.

use larimar_client::Account;
use larimar_design::{Description, Kind, examples, propose};
use larimar_embedded::Larimar;
use larimar_tool::design::{Measured, measure};

/// The plans that the server may report for a predicted kind.
fn plans(kind: Kind) -> &'static [&'static str] {
    match kind {
        Kind::Point | Kind::Points => &["point"],
        Kind::Range | Kind::Ranges => &["row-range"],
        Kind::PartitionScan => &["partition-scan"],
        Kind::TableScan => &["table-scan", "partition-range"],
        Kind::Blobs => &[],
    }
}

/// Whether a query was as predicted.
fn is_as_predicted(measured: &Measured) -> bool {
    let Some(predicted) = measured.predicted else { return true };
    let is_planned = measured.plans.iter().all(|plan| plans(predicted.kind).contains(&plan.as_str()));
    // Values are drawn at random, and a page looks one row ahead in each partition that it asks.
    let (rows, spare) = (measured.rows as f64, predicted.seeks + 4.0);
    let is_near = rows <= 1.5 * predicted.rows + spare && predicted.rows <= 1.5 * rows + spare;
    is_planned && is_near && measured.returned > 0 && measured.requests as f64 <= 1.5 * predicted.requests + 4.0
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b6_plans_and_rows_are_as_predicted() {
    let server = Larimar::ephemeral().await.expect("a server");
    let account = Account::connect(&server.connection_string()).expect("an account");
    let (mut designs, mut queries, mut problems) = (0, 0, Vec::new());
    for example in examples::ALL {
        let description = Description::from_toml(example.text).expect(example.name);
        for design in propose(&description).expect(example.name).designs {
            let name = format!("{} {:?}", example.name, design.patterns);
            match measure(&account, &description, &design.layout, 300).await {
                Ok(measured) => {
                    designs += 1;
                    queries += measured.iter().filter(|it| it.predicted.is_some()).count();
                    let wrong = measured.into_iter().filter(|it| !is_as_predicted(it));
                    problems.extend(wrong.map(|it| format!("{name}: {it:?}")));
                }
                Err(error) => {
                    let text = error.to_string();
                    assert!(text.contains("T13") || text.contains("T10"), "{name}: {text}");
                }
            }
        }
    }
    assert!(problems.is_empty(), "{problems:#?}");
    assert!(designs >= 30 && queries >= 60, "{designs} designs, {queries} queries");
    let mut tables = account.tables().list(None);
    let left = futures_util::TryStreamExt::try_next(&mut tables).await.expect("a list");
    assert!(left.is_none(), "{left:?} is left");
}
