//! Background work that all servers share is done, by one of them at a time.

use super::fleet::{EVENTUALLY, Fleet, eventually, together};
use larimar_testkit::http::Batch;
use larimar_testkit::postgres::Cluster;

/// The schema that a URL names.
fn schema(url: &str) -> &str {
    url.rsplit_once("search_path%3D").expect("the URL names a schema").1
}

#[test]
fn t8_rows_of_tables_dropped_on_several_servers_are_removed() {
    let cluster = Cluster::shared();
    let url = cluster.fresh_url();
    let mut fleet = Fleet::start(&url);
    let rows = || cluster.sql(&format!("SELECT count(*) FROM {}.larimar_entity", schema(&url)));
    fleet.client(0).create_table("kept");
    fleet.client(0).insert("kept", "p", "r", "");
    let before = rows();
    // More rows than are removed at a time, in one partition and in several.
    together(&fleet, 6, |client, number| {
        let table = format!("dropped{number}");
        client.create_table(&table);
        for part in 0..if number == 0 { 15 } else { 2 } {
            let partition = if number < 2 { "p".to_owned() } else { format!("p{part}") };
            let add = |batch: Batch, row: usize| batch.insert(client, &table, &partition, &format!("{part}-{row}"), "");
            assert_eq!((0..100).fold(Batch::new(), add).send(client).statuses(), [204; 100]);
        }
    });
    assert_ne!(rows(), before);
    together(&fleet, 6, |client, number| {
        client.delete(&format!("/Tables('dropped{number}')")).send().is_status(204);
    });
    // The server whose turn it is may go at any time; another takes over.
    fleet.kill(0);
    eventually("the rows are removed", EVENTUALLY, || rows() == before);
    assert_eq!(fleet.client(1).get("/kept()").send().column("RowKey"), ["r"]);
    assert_eq!(fleet.client(2).get("/Tables").send().column("TableName"), ["kept"]);
}
