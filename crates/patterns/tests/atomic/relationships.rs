//! R1 to R4: the code of the examples, held to what the examples say.

use crate::atomic::fixture::Fixture;
use larimar_client::Timestamp;

#[allow(dead_code, reason = "the example's own start is not needed here")]
#[path = "../../examples/client_side_join.rs"]
mod client_side_join;
#[allow(dead_code, reason = "the example's own start is not needed here")]
#[path = "../../examples/inheritance.rs"]
mod inheritance;
#[allow(dead_code, reason = "the example's own start is not needed here")]
#[path = "../../examples/one_to_many.rs"]
mod one_to_many;
#[allow(dead_code, reason = "the example's own start is not needed here")]
#[path = "../../examples/one_to_one.rs"]
mod one_to_one;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r1_in_one_partition_the_count_is_right_whoever_joins_at_once() {
    use one_to_many::{Department, Member, employee, join_in_one_partition, read_one_partition};
    let fixture = Fixture::new().await;
    let table = fixture.table("Company").await;
    let department = Department { name: "Sales".to_owned(), etag: None, employees: 0 };
    table.insert(&Member::Department(department)).await.expect("inserted");
    let first = join_in_one_partition(&table, employee("Sales", "000001", "Don"));
    let (joined, requests) = fixture.counted(first).await;
    joined.expect("joined");
    assert_eq!(requests, 2);
    let others: Vec<_> = (2..10)
        .map(|id| {
            let table = table.clone();
            tokio::spawn(async move {
                let joins = || employee("Sales", &format!("{id:06}"), "Jun");
                // Each round one of them succeeds.
                for _ in 0..64 {
                    if join_in_one_partition(&table, joins()).await.is_ok() {
                        return;
                    }
                }
                panic!("nobody else was there to be faster so often");
            })
        })
        .collect();
    for other in others {
        other.await.expect("no panic");
    }
    let (read, requests) = fixture.counted(read_one_partition(&table, "Sales")).await;
    let (sales, employees) = read.expect("read");
    assert_eq!((sales.expect("it is there").employees, employees.len(), requests), (9, 9, 1));
    assert!(join_in_one_partition(&table, employee("Sales", "000001", "Don")).await.is_err(), "already there");
    assert!(join_in_one_partition(&table, employee("None", "000001", "Don")).await.is_err(), "no department");
}

#[tokio::test]
async fn r1_in_two_tables_and_in_one_entity() {
    use one_to_many::{Department, Team, TeamMember, employee, join_in_one_entity, read_two_tables};
    let fixture = Fixture::new().await;
    let (departments, employees) = (fixture.table("Departments").await, fixture.table("Employees").await);
    departments.insert(&Department { name: "Sales".to_owned(), etag: None, employees: 0 }).await.expect("inserted");
    employees.insert(&employee("Sales", "000123", "Don")).await.expect("inserted");
    employees.insert(&employee("Marketing", "000124", "Jun")).await.expect("inserted");
    let (read, requests) = fixture.counted(read_two_tables(&departments, &employees, "Sales")).await;
    let (sales, found) = read.expect("read");
    assert_eq!(
        (sales.name.as_str(), found.as_slice(), requests),
        ("Sales", &[employee("Sales", "000123", "Don")][..], 2)
    );
    assert!(read_two_tables(&departments, &employees, "None").await.is_err());

    let teams = fixture.table("Teams").await;
    teams.insert(&Team { name: "Sales".to_owned(), employees: Vec::new() }).await.expect("inserted");
    let don = TeamMember { id: "000123".to_owned(), name: "Don \"D\" Hall".to_owned() };
    let (joined, requests) = fixture.counted(join_in_one_entity(&teams, "Sales", &don)).await;
    joined.expect("joined");
    assert_eq!(requests, 2);
    let team: Team = teams.get("Sales", "department").await.expect("read").expect("it is there");
    assert_eq!(team.employees, [don]);
}

#[tokio::test]
async fn r2_what_is_read_together_is_one_entity_and_the_rest_is_beside_it() {
    use one_to_one::{Employee, Passport, Photo, hire};
    let fixture = Fixture::new().await;
    let table = fixture.table("Employees").await;
    let passport = Some(Passport { number: "1".to_owned(), country: "Norway".to_owned() });
    for (id, passport) in [("1", passport), ("2", None)] {
        let [department, id, name] = ["Sales", id, "Don"].map(str::to_owned);
        let photo = Photo { department: department.clone(), id: id.clone(), jpeg: vec![7; 100] };
        let employee = Employee { department, id, name, passport };
        let (hired, requests) = fixture.counted(hire(&table, &employee, &photo)).await;
        hired.expect("hired");
        assert_eq!(requests, 1);
        let row = format!("empid_{}", employee.id);
        assert_eq!(table.get::<Employee>("Sales", &row).await.expect("read").as_ref(), Some(&employee));
        assert!(hire(&table, &employee, &photo).await.is_err(), "both or neither");
    }
}

#[tokio::test]
async fn r3_look_up_data_is_read_once_while_it_is_fresh() {
    use client_side_join::{Department, Departments, Employee, directory};
    use std::time::Duration;
    let fixture = Fixture::new().await;
    let (employees, departments) = (fixture.table("Employees").await, fixture.table("Departments").await);
    let sales = |floor| Department { id: "1".to_owned(), name: "Sales".to_owned(), floor };
    departments.insert(&sales(2)).await.expect("inserted");
    for (id, department_id) in [("1", "1"), ("2", "9")] {
        let [office, id, name, department_id] = ["Oslo", id, "Don", department_id].map(str::to_owned);
        employees.insert(&Employee { office, id, name, department_id }).await.expect("inserted");
    }
    let mut kept = Departments::new(departments.clone(), Duration::from_secs(3600));
    for expected in [2, 1, 1] {
        let (lines, requests) = fixture.counted(directory(&employees, &mut kept, "Oslo")).await;
        assert_eq!(
            (lines.expect("read"), requests),
            (vec!["Don, Sales, floor 2".to_owned(), "Don, no department".to_owned()], expected)
        );
    }
    departments.insert_or_replace(&sales(3)).await.expect("replaced");
    assert_eq!(directory(&employees, &mut kept, "Oslo").await.expect("read")[0], "Don, Sales, floor 2", "it is kept");
    let mut fresh = Departments::new(departments, Duration::ZERO);
    for _ in 0..2 {
        let (lines, requests) = fixture.counted(directory(&employees, &mut fresh, "Oslo")).await;
        assert_eq!((lines.expect("read")[0].as_str(), requests), ("Don, Sales, floor 3", 2));
    }
}

#[tokio::test]
async fn r4_each_is_read_as_what_it_is() {
    use inheritance::{Staff, staff};
    let fixture = Fixture::new().await;
    let table = fixture.table("Staff").await;
    for one in staff() {
        table.insert(&one).await.expect("inserted");
    }
    let (all, requests) = fixture.counted(table.query::<Staff>().partition("Sales").all()).await;
    assert_eq!((all.expect("read"), requests), (staff().to_vec(), 1));
    let names: Vec<_> = staff().iter().map(|one| one.person().first_name.clone()).collect();
    assert_eq!(names, ["Don", "Jun", "Ann"]);
    // An entity of none of the types is an error.
    let stranger = larimar_client::DynamicEntity::new("Sales", "9").with("EntityType", "Robot");
    table.insert(&stranger.with("Since", Timestamp::now())).await.expect("inserted");
    assert!(table.query::<Staff>().partition("Sales").all().await.is_err());
}
