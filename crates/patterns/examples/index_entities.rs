//! T4: employees by last name, in lists: in their own partition at once, in another table and in blobs in the end.

mod support;

use larimar_client::{DynamicEntity, Entity};
use larimar_patterns::eventual_table::EventualTable;
use larimar_patterns::index_entities::{KeyLists, ListedTable};
use support::{Outcome, Stage};

#[derive(Clone, Debug, Entity)]
struct Employee {
    #[entity(partition_key)]
    department: String,
    #[entity(row_key)]
    id: String,
    #[entity(rename = "LastName")]
    last_name: String,
}

fn employee(id: &str, last_name: &str) -> Employee {
    let [department, id, last_name] = ["Sales", id, last_name].map(str::to_owned);
    Employee { department, id, last_name }
}

fn last_name(employee: &DynamicEntity) -> Option<String> {
    employee.get("LastName").ok()
}

#[tokio::main]
async fn main() -> Outcome {
    let stage = Stage::start().await?;
    in_the_partition(&stage).await?;
    elsewhere(&stage).await?;
    stage.end().await
}

async fn in_the_partition(stage: &Stage) -> Outcome {
    println!("Lists in the partition: entity and lists change in one transaction.");
    let employees = ListedTable::new(&stage.table("Listed").await?, "lastname", last_name);
    for (id, last_name) in [("000123", "Jones"), ("000124", "Jones"), ("000125", "Hall")] {
        stage.cost("insert", employees.insert(&employee(id, last_name))).await?;
    }
    let keys = stage.cost("the keys of all Joneses", employees.keys("Sales", "Jones")).await?;
    println!("  {keys:?}");
    stage.cost("Jones becomes Hall", employees.insert_or_replace(&employee("000123", "Hall"))).await?;
    let halls: Vec<Employee> = stage.cost("the Halls themselves", employees.find("Sales", "Hall")).await?;
    println!("  {:?}", halls.iter().map(|hall| hall.id.as_str()).collect::<Vec<_>>());
    Ok(())
}

async fn elsewhere(stage: &Stage) -> Outcome {
    println!("Lists in another table and in blobs: they follow in the end.");
    let (primaries, lists) = (stage.table("Employees").await?, stage.table("Lists").await?);
    let (container, queue) = (stage.account.container(stage.name("lists")), stage.name("work"));
    let in_table = KeyLists::in_table(&lists, "lastname", last_name).buckets(4);
    let in_blobs = KeyLists::in_blobs(&container, "byname", last_name);
    let employees = EventualTable::builder(&stage.account, primaries.name(), &queue);
    let employees = employees.derive(&in_table).derive(&in_blobs).build();
    employees.create_if_missing().await?;
    let worker = employees.worker();
    for (id, last_name) in [("000123", "Jones"), ("000124", "Jones"), ("000125", "Hall")] {
        employees.insert(&employee(id, last_name)).await?;
    }
    println!("  before a worker ran: {:?}", in_table.keys("Sales", "Jones").await?);
    worker.drain().await?;
    println!("  afterwards, in the table: {:?}", in_table.keys("Sales", "Jones").await?);
    println!("  and in the blob: {:?}", in_blobs.keys("Sales", "Jones").await?);

    println!("Jones becomes Hall: the old list and the new one are touched.");
    employees.insert_or_replace(&employee("000123", "Hall")).await?;
    let late: Vec<Employee> = in_table.find(&employees, "Sales", "Jones").await?;
    println!("  the list is late, what is found by it is right: {} Jones", late.len());
    worker.drain().await?;
    println!("  Halls in the blob: {:?}", in_blobs.keys("Sales", "Hall").await?);
    for name in [queue.clone(), format!("{queue}-poison")] {
        stage.account.queue(name).delete_queue_if_exists().await?;
    }
    container.delete_container_if_exists().await?;
    Ok(())
}
