//! T2, T3, T4, T11: writers and workers as processes of their own, killed (SIGKILL) at random moments, again and again.

use crate::harness::{Random, healthy, settle};
use futures_util::TryStreamExt as _;
use larimar_client::{Account, DynamicEntity};
use larimar_embedded::Larimar;
use larimar_patterns::eventual::{Place, Worker};
use larimar_patterns::eventual_table::EventualTable;
use larimar_patterns::index_entities::KeyLists;
use larimar_patterns::inter_partition_index::InterPartitionIndex;
use larimar_patterns::large_entity::LargeEntities;
use larimar_patterns::mover::Mover;
use std::collections::BTreeSet;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

const SECOND: Duration = Duration::from_secs(1);
const EMPLOYEES: usize = 6;
/// How often a process is killed.
const KILLS: usize = 30;

/// Everything at once: an index, lists in a table and in blobs, photos, and moves to an archive.
struct Company {
    by_email: InterPartitionIndex,
    lists: [KeyLists; 2],
    employees: LargeEntities,
    mover: Mover,
}

impl Company {
    fn new(account: &Account) -> Self {
        let email = |entity: &DynamicEntity| entity.get::<Option<String>>("Email").ok().flatten();
        let by_email = InterPartitionIndex::new(&account.table("Employees"), "email", email);
        let lists = [
            KeyLists::in_table(&account.table("Lists"), "lists", email).buckets(2),
            KeyLists::in_blobs(&account.container("lists"), "blobs", email),
        ];
        let builder = EventualTable::builder(account, "Employees", "work").grace(SECOND);
        let builder = builder.derive(&by_email).derive(&lists[0]).derive(&lists[1]);
        let employees = LargeEntities::new(builder, &account.container("photos"), "Employees", ["Photo"]);
        Self { by_email, lists, employees, mover: Mover::new(account, "moves").grace(SECOND) }
    }

    fn workers(&self) -> (Worker<EventualTable>, Worker<Mover>) {
        let mover = Worker::new(self.mover.queue().clone(), self.mover.clone());
        let table = self.employees.worker();
        // Many die here, and none of that is the messages' fault.
        (
            table.visibility(SECOND).backoff(SECOND, SECOND).attempts_max(1000),
            mover.visibility(SECOND).backoff(SECOND, SECOND).attempts_max(1000),
        )
    }

    /// A write or a move of some employee; whatever fails is as good as killed.
    async fn act(&self, random: &mut Random) {
        let row = random.below(EMPLOYEES).to_string();
        let turn = i32::try_from(random.below(1000)).expect("small");
        match random.below(6) {
            0 => drop(self.employees.delete("Sales", &row).await),
            1 => drop(self.mover.submit(&current(&row), &archive(&row)).await),
            2 => drop(self.mover.submit(&archive(&row), &current(&row)).await),
            _ => {
                let email = ["a", "b", "c"][random.below(3)];
                let entity = DynamicEntity::new("Sales", row).with("Email", email).with("Turn", turn);
                drop(self.employees.put(&entity, [("Photo", Some(photo(turn)))]).await);
            }
        }
    }
}

fn current(row: &str) -> Place {
    Place::new("Current", "Sales", row)
}

fn archive(row: &str) -> Place {
    Place::new("Archive", "Sales", row)
}

fn photo(turn: i32) -> Vec<u8> {
    turn.to_le_bytes().repeat(20_000)
}

/// What a killed process does: nothing, unless this test started it.
#[tokio::test]
async fn a_process_that_will_be_killed() {
    let (Ok(role), Ok(server)) = (std::env::var(ROLE), std::env::var(SERVER)) else { return };
    let company = Company::new(&Account::connect(&server).expect("an account"));
    let seed = role.parse().ok();
    // Should the test itself be killed, nobody kills this.
    let _ = tokio::time::timeout(60 * SECOND, live(&company, seed)).await;
}

/// Writes with the random numbers of a seed, or works if there is none.
async fn live(company: &Company, seed: Option<u64>) {
    let Some(seed) = seed else {
        let (table, mover) = company.workers();
        let never = std::future::pending::<()>;
        tokio::join!(table.run(never()), mover.run(never()));
        return;
    };
    let mut random = Random::new(seed);
    loop {
        company.act(&mut random).await;
    }
}

/// A process, killed when it is dropped.
struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        self.0.kill().expect("it is killed");
        self.0.wait().expect("it is gone");
    }
}

fn start(server: &Larimar, role: &str) -> Killed {
    let mut command = Command::new(std::env::current_exe().expect("this test"));
    command
        .args(["--exact", "killed_processes::a_process_that_will_be_killed"])
        .env(ROLE, role)
        .env(SERVER, server.connection_string());
    Killed(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("a process"))
}

#[tokio::test(flavor = "multi_thread")]
async fn t3_processes_that_are_killed_leave_everything_right_in_the_end() {
    let server = Larimar::ephemeral().await.expect("a server");
    let account = healthy(&server);
    let company = Company::new(&account);
    company.employees.create_if_missing().await.expect("tables");
    company.mover.create_if_missing().await.expect("queues");
    for table in ["Current", "Archive"] {
        account.table(table).create_if_missing().await.expect("a table");
    }
    for row in 0..EMPLOYEES {
        let employee = DynamicEntity::new("Sales", row.to_string()).with("Number", i32::try_from(row).expect("small"));
        account.table("Current").insert(&employee).await.expect("an employee");
    }
    let mut random = Random::new(7);
    let role = |number: usize, turn: usize| match number < 2 {
        true => "worker".to_owned(),
        false => (turn * 10 + number).to_string(),
    };
    let mut processes = (0..4).map(|number| start(&server, &role(number, 0))).collect::<Vec<_>>();
    for turn in 1..=KILLS {
        tokio::time::sleep(Duration::from_millis(30 + random.below(250) as u64)).await;
        let victim = random.below(4);
        // The old one is killed when it is replaced.
        processes[victim] = start(&server, &role(victim, turn));
    }
    drop(processes);
    let (table, mover) = company.workers();
    tokio::join!(settle(&table), settle(&mover));
    assert!(table.stats().poisoned + mover.stats().poisoned == 0);
    compare(&account, &company).await;
}

async fn compare(account: &Account, company: &Company) {
    let mut emails = BTreeSet::new();
    let mut addresses = BTreeSet::new();
    for row in (0..EMPLOYEES).map(|row| row.to_string()) {
        if let Some(found) = company.employees.get::<DynamicEntity>("Sales", &row).await.expect("a read") {
            let turn = found.entity.get::<i32>("Turn").expect("a turn");
            assert!(found.values["Photo"] == photo(turn), "the photo of {row}");
            emails.insert((found.entity.get::<String>("Email").expect("an email"), row.clone(), turn));
            addresses.insert(found.entity.get::<String>("Photo").expect("an address"));
        }
        let places = [current(&row), archive(&row)];
        let mut found = Vec::new();
        for place in &places {
            found.extend(company.mover.get::<DynamicEntity>(place).await.expect("a read"));
        }
        assert_eq!(found.len(), 1, "employee {row} is at one place: {found:?}");
        assert_eq!(found[0].get::<i32>("Number").expect("a number").to_string(), row);
    }
    assert!(!emails.is_empty(), "some were written");
    let copies: Vec<DynamicEntity> = company.by_email.find_prefix("email_Sales", "").await.expect("copies");
    let text = |copy: &DynamicEntity| copy.get::<String>("Email").expect("an email");
    let copies = copies.iter().map(|c| (text(c), c.row_key.clone(), c.get::<i32>("Turn").expect("a turn")));
    assert_eq!(copies.collect::<BTreeSet<_>>(), emails);
    for list in &company.lists {
        for email in ["a", "b", "c"] {
            let wanted = emails.iter().filter(|entry| entry.0 == email).map(|entry| entry.1.clone());
            assert_eq!(
                list.keys("Sales", email).await.expect("keys"),
                wanted.collect::<Vec<_>>(),
                "{email} in {list:?}"
            );
        }
    }
    // A request that was cut off may have brought a blob after its intent was done: the second look, or a sweep, finds it.
    company.employees.sweep(Duration::ZERO).await.expect("swept");
    let blobs: Vec<_> = account.container("photos").list("").try_collect().await.expect("a list");
    assert_eq!(blobs.into_iter().map(|blob| blob.name).collect::<BTreeSet<_>>(), addresses);
}

const ROLE: &str = "LARIMAR_KILLED_ROLE";
const SERVER: &str = "LARIMAR_KILLED_SERVER";
