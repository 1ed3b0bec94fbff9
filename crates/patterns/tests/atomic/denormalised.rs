//! T5: the department always shows its manager as the manager is, whichever clients write at the same time.

use crate::atomic::fixture::Fixture;
use larimar_client::{Entity, Table};
use larimar_patterns::Error;
use larimar_patterns::denormalised::{Denormalised, Embeds};

#[derive(Clone, Debug, PartialEq, Entity)]
struct Employee {
    #[entity(partition_key)]
    department: String,
    #[entity(row_key)]
    id: String,
    name: String,
    phone: i64,
}

#[derive(Clone, Debug, PartialEq, Entity)]
struct Department {
    #[entity(partition_key)]
    department: String,
    #[entity(row_key)]
    kind: String,
    budget: i64,
    manager_id: Option<String>,
    manager_name: Option<String>,
    manager_phone: Option<i64>,
}

impl Embeds<Employee> for Department {
    fn embeds(&self, manager: &Employee) -> bool {
        self.manager_id.as_ref() == Some(&manager.id)
    }

    fn embed(&mut self, manager: &Employee) {
        self.manager_id = Some(manager.id.clone());
        self.manager_name = Some(manager.name.clone());
        self.manager_phone = Some(manager.phone);
    }
}

async fn company(fixture: &Fixture) -> (Table, Denormalised<Employee, Department>) {
    let table = fixture.table("Company").await;
    for id in ["1", "2"] {
        let [department, id, name] = ["Sales", id, id].map(str::to_owned);
        table.insert(&Employee { department, id, name, phone: 0 }).await.expect("inserted");
    }
    for kind in ["department", "office"] {
        let [department, kind] = ["Sales", kind].map(str::to_owned);
        let none = (None, None, None);
        let (manager_id, manager_name, manager_phone) = none;
        let department = Department { department, kind, budget: 0, manager_id, manager_name, manager_phone };
        table.insert(&department).await.expect("inserted");
    }
    (table.clone(), Denormalised::new(table))
}

async fn department(table: &Table, kind: &str) -> Department {
    table.get("Sales", kind).await.expect("read").expect("it is there")
}

async fn employee(table: &Table, id: &str) -> Employee {
    table.get("Sales", id).await.expect("read").expect("it is there")
}

#[tokio::test]
async fn t5_both_change_in_three_requests_and_are_read_in_one() {
    let fixture = Fixture::new().await;
    let (table, managers) = company(&fixture).await;
    let (assigned, requests) = fixture.counted(managers.assign("Sales", "1", "department")).await;
    assert_eq!((assigned.expect("assigned").manager_id.as_deref(), requests), (Some("1"), 3));
    let rename = |one: &mut Employee| one.name = "Don Hall".to_owned();
    let (updated, requests) = fixture.counted(managers.update("Sales", "1", &["department"], rename)).await;
    assert_eq!((updated.expect("updated").expect("it is there").name.as_str(), requests), ("Don Hall", 3));
    let (sales, requests) = fixture.counted(department(&table, "department")).await;
    assert_eq!((sales.manager_name.as_deref(), requests), (Some("Don Hall"), 1));
    assert_eq!(employee(&table, "1").await.name, "Don Hall");
}

#[tokio::test]
async fn t5_only_holders_of_the_entity_are_changed() {
    let fixture = Fixture::new().await;
    let (table, managers) = company(&fixture).await;
    managers.assign("Sales", "1", "department").await.expect("assigned");
    managers.assign("Sales", "2", "office").await.expect("assigned");
    let all = ["department", "office", "missing"];
    managers.update("Sales", "1", &all, |one| one.phone = 7).await.expect("updated").expect("it is there");
    assert_eq!(department(&table, "department").await.manager_phone, Some(7));
    assert_eq!(department(&table, "office").await.manager_phone, Some(0), "another one's");
    assert!(managers.update("Sales", "9", &all, |_| ()).await.expect("no error").is_none());
    assert!(matches!(managers.assign("Sales", "9", "office").await, Err(Error::NotFound)));
    assert!(matches!(managers.assign("Sales", "1", "missing").await, Err(Error::NotFound)));
    let moved = managers.update("Sales", "1", &all, |one| one.id = "3".to_owned()).await;
    assert!(matches!(moved, Err(Error::Invalid(_))));
    let (refused, requests) = fixture.counted(managers.update("Sales", "1", &["x"; 100], |_| ())).await;
    assert!(matches!(refused, Err(Error::Invalid(_))));
    assert_eq!(requests, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn t5_copies_never_differ_while_managers_change_and_are_changed() {
    let fixture = Fixture::new().await;
    let (table, managers) = company(&fixture).await;
    managers.assign("Sales", "1", "department").await.expect("assigned");
    let mut writers = Vec::new();
    for writer in 0..4 {
        let managers = managers.clone();
        writers.push(tokio::spawn(async move {
            for step in 0..10 {
                let id = ["1", "2"][(writer + step) % 2];
                let call = |one: &mut Employee| one.phone += 1;
                managers.update("Sales", id, &["department", "office"], call).await.expect("updated");
                if step % 3 == 0 {
                    let holder = ["department", "office"][step % 2];
                    managers.assign("Sales", id, holder).await.expect("assigned");
                }
            }
        }));
    }
    for writer in writers {
        writer.await.expect("no panic");
    }
    let phones = [employee(&table, "1").await.phone, employee(&table, "2").await.phone];
    assert_eq!(phones.iter().sum::<i64>(), 40, "no call is lost");
    for holder in ["department", "office"] {
        let holder = department(&table, holder).await;
        let manager = employee(&table, holder.manager_id.as_deref().expect("a manager")).await;
        assert_eq!((holder.manager_name, holder.manager_phone), (Some(manager.name), Some(manager.phone)));
    }
}
