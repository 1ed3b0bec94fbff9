//! T2: employees found by id in their department, and by e-mail address in another partition, equal in the end.

mod support;

use larimar_client::Entity;
use larimar_patterns::eventual_table::EventualTable;
use larimar_patterns::inter_partition_index::InterPartitionIndex;
use support::{Outcome, Stage};

#[derive(Clone, Debug, Entity)]
struct Employee {
    #[entity(partition_key)]
    department: String,
    #[entity(row_key)]
    id: String,
    #[entity(rename = "FirstName")]
    first_name: String,
    #[entity(rename = "Email")]
    email: String,
}

fn employee(id: &str, first_name: &str, email: &str) -> Employee {
    let [department, id, first_name, email] = ["Sales", id, first_name, email].map(str::to_owned);
    Employee { department, id, first_name, email }
}

#[tokio::main]
async fn main() -> Outcome {
    let stage = Stage::start().await?;
    let table = stage.table("Employees").await?;
    let queue = stage.name("work");
    let by_email = InterPartitionIndex::on_property(&table, "email", "Email");
    let employees = EventualTable::builder(&stage.account, table.name(), &queue).derive(&by_email).build();
    employees.create_if_missing().await?;
    let worker = employees.worker();

    println!("Don and Jun join Sales.");
    employees.insert(&employee("000123", "Don", "donh@contoso.com")).await?;
    employees.insert(&employee("000124", "Jun", "junc@contoso.com")).await?;
    let don: Option<Employee> = employees.get("Sales", "000123").await?;
    println!("  by id at once: {:?}", don.map(|don| don.first_name));
    let found: Vec<Employee> = by_email.find("email_Sales", "donh@contoso.com").await?;
    println!("  by e-mail address not yet: {} found", found.len());

    println!("A worker brings the index along.");
    worker.drain().await?;
    let found: Vec<Employee> = by_email.find("email_Sales", "donh@contoso.com").await?;
    println!("  {} is found, as {} in {}", found[0].first_name, found[0].id, found[0].department);

    println!("Don's address changes, and a duplicate of Jun's last intent would do no harm.");
    employees.update("Sales", "000123", |don: &mut Employee| don.email = "don@fabrikam.com".to_owned()).await?;
    worker.drain().await?;
    assert!(by_email.find::<Employee>("email_Sales", "donh@contoso.com").await?.is_empty());
    let all: Vec<Employee> = by_email.find_prefix("email_Sales", "").await?;
    println!("  all by address: {:?}", all.iter().map(|employee| employee.email.as_str()).collect::<Vec<_>>());

    println!("An entity is written without the index, and a repair finds it.");
    table.insert(&employee("000125", "Ann", "annh@contoso.com")).await?;
    let repaired = employees.repair().await?;
    println!(
        "  {} primaries and {} copies looked at, {} corrected",
        repaired.primaries, repaired.places, repaired.corrected
    );
    assert_eq!(by_email.find::<Employee>("email_Sales", "annh@contoso.com").await?.len(), 1);

    println!("Jun leaves.");
    employees.delete("Sales", "000124").await?;
    let stats = worker.drain().await?;
    assert!(by_email.find::<Employee>("email_Sales", "junc@contoso.com").await?.is_empty());
    println!("  {} intents were carried out, the oldest after {:?}", stats.done, stats.oldest_age);
    for name in [queue.clone(), format!("{queue}-poison")] {
        stage.account.queue(name).delete_queue_if_exists().await?;
    }
    stage.end().await
}
