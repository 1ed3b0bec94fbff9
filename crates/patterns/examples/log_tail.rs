//! T7: the latest expense claims first, at the cost of the latest only.

mod support;

use larimar_client::{Entity, Timestamp};
use larimar_patterns::log_tail::{LogTail, LogTailKey};
use std::time::Duration;
use support::{Outcome, Stage};

#[derive(Debug, Entity)]
struct Claim {
    #[entity(partition_key)]
    employee: String,
    /// Made by the log tail; what stands here before is not used.
    #[entity(row_key)]
    key: String,
    amount: i32,
}

#[tokio::main]
async fn main() -> Outcome {
    let stage = Stage::start().await?;
    let claims = LogTail::new(stage.table("Claims").await?);
    let monday: Timestamp = "2026-02-09T09:00:00Z".parse()?;
    println!("Don hands in a claim each day for two weeks.");
    for day in 0..14 {
        let claim = Claim { employee: "000123".to_owned(), key: String::new(), amount: 10 + day };
        let at = monday.after(Duration::from_secs(24 * 3600) * day.unsigned_abs());
        claims.append_at(at, &claim).await?;
    }
    let today = Claim { employee: "000123".to_owned(), key: String::new(), amount: 99 };
    stage.cost("append one of now", claims.append(&today)).await?;

    let latest = stage.cost("the three latest", claims.latest::<Claim>("000123", 3)).await?;
    for claim in &latest {
        let key: LogTailKey = claim.key.parse()?;
        println!("  {} on {}", claim.amount, key.time());
    }
    assert_eq!(latest.iter().map(|claim| claim.amount).collect::<Vec<_>>(), [99, 23, 22]);

    let first_week = monday..monday.after(Duration::from_secs(7 * 24 * 3600));
    let first_week = claims.between::<Claim>("000123", first_week);
    let first_week = stage.cost("those of the first week", first_week.all()).await?;
    println!("  {} claims, from {} down to {}", first_week.len(), first_week[0].amount, first_week[6].amount);
    stage.end().await
}
