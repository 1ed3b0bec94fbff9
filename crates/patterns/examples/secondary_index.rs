//! T1: employees found by id, by e-mail address and by last name, each with one request.

mod support;

use larimar_client::Entity;
use larimar_patterns::secondary_index::{Index, IndexRange, IndexedTable};
use support::{Outcome, Stage};

#[derive(Debug, Entity)]
struct Employee {
    #[entity(partition_key)]
    department: String,
    #[entity(row_key)]
    id: String,
    first_name: String,
    last_name: String,
    email: String,
}

fn employee(id: &str, first_name: &str, last_name: &str, email: &str) -> Employee {
    let [department, id, first_name, last_name, email] = ["Sales", id, first_name, last_name, email].map(str::to_owned);
    Employee { department, id, first_name, last_name, email }
}

#[tokio::main]
async fn main() -> Outcome {
    let stage = Stage::start().await?;
    let employees = IndexedTable::new(stage.table("Employees").await?, "empid")?
        .index(Index::unique("email", |employee: &Employee| Some(employee.email.clone())))?
        .index(Index::many("lastname", |employee: &Employee| Some(employee.last_name.clone())))?;

    println!("Three people join Sales.");
    for (id, first_name, last_name, email) in [
        ("000123", "Don", "Hall", "donh@contoso.com"),
        ("000124", "Jun", "Cao", "junc@contoso.com"),
        ("000125", "Ann", "Hall", "annh@contoso.com"),
    ] {
        let joins = employee(id, first_name, last_name, email);
        stage.cost(&format!("insert {first_name} with two copies"), employees.insert(&joins)).await?;
    }

    println!("Each can be found in three ways.");
    let by_id = stage.cost("by id", employees.get("Sales", "000124")).await?;
    let by_email = stage.cost("by e-mail address", employees.get_by("Sales", "email", "junc@contoso.com")).await?;
    assert_eq!(by_id.map(|jun| jun.first_name), by_email.map(|jun| jun.first_name));
    let halls = stage.cost("by last name", employees.find("Sales", "lastname", "Hall")).await?;
    println!("  the Halls are {} and {}", halls[0].first_name, halls[1].first_name);
    let from_a_to_d = IndexRange::Between("A".to_owned(), "D".to_owned());
    let early = employees.query::<Employee>("Sales", "lastname", from_a_to_d)?;
    let early = stage.cost("last names from A to C", early.all()).await?;
    println!("  {} of them: {}", early.len(), early[0].last_name);

    println!("Don marries Jun. The copies under the old name and address go in the same moment.");
    let marries = |don: &mut Employee| {
        don.last_name = "Cao".to_owned();
        don.email = "donc@contoso.com".to_owned();
    };
    stage.cost("update", employees.update("Sales", "000123", marries)).await?;
    assert!(employees.get_by("Sales", "email", "donh@contoso.com").await?.is_none());
    println!("  the Caos are now {}", employees.find("Sales", "lastname", "Cao").await?.len());

    println!("An address is one person's.");
    let refused = employees.insert(&employee("000126", "Doris", "Cao", "donc@contoso.com")).await;
    println!("  {}", refused.expect_err("the address is Don's"));

    println!("Ann leaves.");
    stage.cost("delete with all copies", employees.delete("Sales", "000125")).await?;
    assert!(employees.find("Sales", "lastname", "Hall").await?.is_empty());
    stage.end().await
}
