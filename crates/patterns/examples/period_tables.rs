//! T8: logins in a table a day, and whole days dropped when they are no longer wanted.

mod support;

use futures_util::TryStreamExt as _;
use larimar_client::{DynamicEntity, Timestamp};
use larimar_patterns::Period;
use larimar_patterns::period_tables::PeriodTables;
use std::time::Duration;
use support::{Outcome, Stage};

#[tokio::main]
async fn main() -> Outcome {
    let stage = Stage::start().await?;
    let logins = PeriodTables::new(stage.account.clone(), stage.name("Logins"), Period::Day)?;
    let monday: Timestamp = "2026-02-09T08:00:00Z".parse()?;
    let day = |number: u32| monday.after(Duration::from_secs(24 * 3600) * number);
    println!("People log in for a week.");
    for number in 0..7 {
        for (turn, name) in ["Don", "Jun", "Ann"].into_iter().enumerate() {
            let login = DynamicEntity::new(name, day(number).to_string());
            let writes = logins.insert(day(number), &login);
            match (number, turn) {
                (0, 0) => stage.cost("the first write of a day makes its table", writes).await?,
                (0, 1) => stage.cost("the others", writes).await?,
                _ => writes.await?,
            };
        }
    }
    println!("  today's table is {}", logins.name(day(6)));

    println!("When did Don log in from Wednesday to Friday?");
    let span = Period::Day.start(day(2))..Period::Day.start(day(5));
    let of_don = logins.stream(span, |table| table.query::<DynamicEntity>().partition("Don"));
    let of_don: Vec<_> = stage.cost("one list, and one query a table", of_don.try_collect()).await?;
    for login in &of_don {
        println!("  {}", login.row_key);
    }
    assert_eq!(of_don.len(), 3);

    println!("Only three days are kept.");
    let kept_from = Period::Day.start(day(6)).before(Duration::from_secs(2 * 24 * 3600));
    let dropped = stage.cost("drop four tables", logins.drop_before(kept_from)).await?;
    assert_eq!(dropped.len(), 4);
    let left: Vec<DynamicEntity> =
        logins.stream(day(0)..day(7), |table| table.query().partition("Don")).try_collect().await?;
    println!("  {} of Don's logins are left", left.len());
    logins.drop_before(day(30)).await?;
    stage.end().await
}
