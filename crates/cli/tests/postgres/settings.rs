//! Settings that one server changes, read and applied by another at once: what is remembered for a moment allows
//! requests, and never refuses one nor answers for the database (D8, S4, X1, X2).
//!
//! Every case first has the second server remember the old state, by a request that it allows.

use super::fleet::Fleet;
use larimar_testkit::http::{Batch, Client, Response, Sas, entity};
use larimar_testkit::postgres::Cluster;

const ROUNDS: usize = 3;

/// Two servers over one database and one store of bytes.
struct Pair {
    fleet: Fleet,
    _store: tempfile::TempDir,
}

impl Pair {
    fn start() -> Self {
        let url = Cluster::shared().fresh_url();
        let store = tempfile::tempdir().expect("a folder");
        let store_url = format!("file://{}", store.path().display());
        Self { fleet: Fleet::start_each(&[url.clone(), url], &["--blob-store", &store_url]), _store: store }
    }

    /// Clients of the two servers, of which the first makes the changes; the rounds change places.
    fn tables(&self, round: usize) -> (Client, Client) {
        (self.fleet.client(round), self.fleet.client(round + 1))
    }

    fn queues(&self, round: usize) -> (Client, Client) {
        (self.fleet.queues(round), self.fleet.queues(round + 1))
    }

    fn blobs(&self, round: usize) -> (Client, Client) {
        (self.fleet.blobs(round), self.fleet.blobs(round + 1))
    }
}

/// An access control list of one policy.
fn policy(id: &str, permissions: &str) -> String {
    format!(
        "<SignedIdentifiers><SignedIdentifier><Id>{id}</Id><AccessPolicy><Expiry>2099-01-01T00:00:00Z</Expiry>\
         <Permission>{permissions}</Permission></AccessPolicy></SignedIdentifier></SignedIdentifiers>"
    )
}

/// Sends a request whose body cannot be read a second time as clients do: again if the server asks for it.
fn insistent(send: impl Fn() -> Response) -> Response {
    let mut reply = send();
    for _ in 0..5 {
        if reply.status != 503 {
            break;
        }
        reply = send();
    }
    reply
}

#[test]
fn d8_a_table_is_on_one_server_as_the_other_left_it() {
    let pair = Pair::start();
    for round in 0..ROUNDS {
        let (ours, theirs) = pair.tables(round);
        let table = format!("table{round}");
        let (rows, acl, single) = (format!("/{table}()"), format!("/{table}?comp=acl"), format!("/Tables('{table}')"));
        ours.create_table(&table);
        theirs.get(&rows).send().is_status(200);

        // A policy that is new counts, and so does a wider one.
        let holder = theirs.with_sas(&Sas::policy(&table, "one").token());
        holder.get(&rows).send().is_error(403, "AuthenticationFailed");
        theirs.get(&rows).send().is_status(200);
        ours.put(&acl, policy("one", "r")).header("Content-Type", "application/xml").send().is_status(204);
        holder.get(&rows).send().is_status(200);
        holder.post(&format!("/{table}"), entity("p", "r", "")).send().is_status(403);
        holder.get(&rows).send().is_status(200);
        ours.put(&acl, policy("one", "ra")).header("Content-Type", "application/xml").send().is_status(204);
        holder.post(&format!("/{table}"), entity("p", "r", "")).send().is_status(201);
        let transaction = || Batch::new().upsert(&holder, &table, "p", "s", "").send(&holder).statuses();
        assert_eq!(transaction(), [403]);
        holder.get(&rows).send().is_status(200);
        ours.put(&acl, policy("one", "rau")).header("Content-Type", "application/xml").send().is_status(204);
        assert_eq!(transaction(), [204]);
        ours.put(&acl, policy("two", "r")).header("Content-Type", "application/xml").send().is_status(204);
        let shown = theirs.get(&acl).accept("application/xml").send();
        assert_eq!(shown.elements("Id"), ["two"]);

        // Gone and there again.
        theirs.get(&rows).send().is_status(200);
        ours.delete(&single).send().is_status(204);
        theirs.get(&single).send().is_error(404, "ResourceNotFound");
        ours.create_table(&table);
        theirs.get(&single).send().is_status(200);
        theirs.post(&format!("/{table}"), entity("p", "r", "")).send().is_status(201);
        ours.delete(&single).send().is_status(204);
        theirs.get(&rows).send().is_error(404, "TableNotFound");
    }
}

#[test]
fn x1_a_queue_is_on_one_server_as_the_other_left_it() {
    let pair = Pair::start();
    for round in 0..ROUNDS {
        let (ours, theirs) = pair.queues(round);
        let queue = format!("queue{round}");
        let (path, acl) = (format!("/{queue}"), format!("/{queue}?comp=acl"));
        let (meta, messages) = (format!("/{queue}?comp=metadata"), format!("/{queue}/messages"));
        ours.request("PUT", &path).send().is_status(201);
        for value in ["red", "blue"] {
            theirs.get(&messages).send().is_status(200);
            ours.request("PUT", &meta).header("x-ms-meta-color", value).send().is_status(204);
            assert_eq!(theirs.get(&meta).send().header("x-ms-meta-color"), Some(value));
            // To create it again is right or wrong by its metadata.
            theirs.get(&messages).send().is_status(200);
            ours.request("PUT", &meta).header("x-ms-meta-size", value).send().is_status(204);
            theirs.request("PUT", &path).header("x-ms-meta-size", value).send().is_status(204);
            theirs.request("PUT", &path).header("x-ms-meta-color", value).send().is_error(409, "QueueAlreadyExists");
        }

        let holder = theirs.with_sas(&Sas::queue_policy(&queue, "one").token());
        let body = "<QueueMessage><MessageText>x</MessageText></QueueMessage>";
        holder.get(&messages).send().is_error(403, "AuthenticationFailed");
        theirs.get(&messages).send().is_status(200);
        ours.put(&acl, policy("one", "p")).send().is_status(204);
        holder.get(&messages).send().is_status(200);
        holder.post(&messages, body).send().is_status(403);
        holder.get(&messages).send().is_status(200);
        ours.put(&acl, policy("one", "pa")).send().is_status(204);
        holder.post(&messages, body).send().is_status(201);
        ours.put(&acl, policy("two", "r")).send().is_status(204);
        assert_eq!(theirs.get(&acl).send().elements("Id"), ["two"]);

        theirs.get(&messages).send().is_status(200);
        ours.request("DELETE", &path).send().is_status(204);
        theirs.get(&meta).send().is_error(404, "QueueNotFound");
        ours.request("PUT", &path).send().is_status(201);
        theirs.get(&meta).send().is_status(200);
        theirs.post(&messages, body).send().is_status(201);
        ours.request("DELETE", &path).send().is_status(204);
        ours.request("PUT", &path).header("x-ms-meta-new", "1").send().is_status(201);
        theirs.request("PUT", &path).send().is_error(409, "QueueAlreadyExists");
    }
}

#[test]
fn x2_the_settings_of_a_container_are_on_one_server_as_the_other_left_them() {
    let pair = Pair::start();
    for round in 0..ROUNDS {
        let (ours, theirs) = pair.blobs(round);
        let name = format!("box{round}");
        let (path, acl) = (format!("/{name}?restype=container"), format!("/{name}?restype=container&comp=acl"));
        let (meta, list) = (format!("{path}&comp=metadata"), format!("{path}&comp=list"));
        ours.request("PUT", &path).send().is_status(201);
        for value in ["red", "blue"] {
            theirs.get(&list).send().is_status(200);
            let set = ours.request("PUT", &meta).header("x-ms-meta-color", value).send();
            set.is_status(200);
            let read = theirs.get(&meta).send();
            assert_eq!((read.header("x-ms-meta-color"), read.header("etag")), (Some(value), set.header("etag")));
            assert_eq!(theirs.get(&path).send().header("etag"), set.header("etag"));
        }

        // What strangers may read.
        let stranger = theirs.anonymous();
        ours.put(&format!("/{name}/a"), "x").header("x-ms-blob-type", "BlockBlob").send().is_status(201);
        stranger.get(&format!("/{name}/a")).send().is_status(401);
        theirs.get(&list).send().is_status(200);
        ours.request("PUT", &acl).header("x-ms-blob-public-access", "blob").send().is_status(200);
        stranger.get(&format!("/{name}/a")).send().is_status(200);
        stranger.get(&list).send().is_status(401);
        theirs.get(&list).send().is_status(200);
        ours.request("PUT", &acl).header("x-ms-blob-public-access", "container").send().is_status(200);
        stranger.get(&list).send().is_status(200);
        assert_eq!(theirs.get(&path).send().header("x-ms-blob-public-access"), Some("container"));
        ours.put(&acl, policy("two", "r")).send().is_status(200);
        let shown = theirs.get(&acl).send();
        assert_eq!((shown.elements("Id"), shown.header("x-ms-blob-public-access")), (vec!["two"], None));
        stranger.get(&path).send().is_status(401);
    }
}

#[test]
fn x2_policies_of_a_container_count_on_one_server_as_the_other_left_them() {
    let pair = Pair::start();
    for round in 0..ROUNDS {
        let (ours, theirs) = pair.blobs(round);
        let name = format!("box{round}");
        let (path, acl) = (format!("/{name}?restype=container"), format!("/{name}?restype=container&comp=acl"));
        let (list, blob) = (format!("{path}&comp=list"), format!("/{name}/a"));
        ours.request("PUT", &path).send().is_status(201);
        let token = Sas::container_policy(&name, "one").token();
        let holder = theirs.with_sas(&token);
        let put = |body: &str| holder.put(&blob, body).header("x-ms-blob-type", "BlockBlob").send();
        let allow = |permissions: &str| {
            theirs.get(&list).send().is_status(200);
            ours.put(&acl, policy("one", permissions)).send().is_status(200);
        };
        put("x").is_error(403, "AuthenticationFailed");
        allow("r");
        holder.get(&blob).send().is_error(404, "BlobNotFound");
        put("x").is_status(403);
        allow("c");
        put("x").is_status(201);
        put("y").is_error(403, "UnauthorizedBlobOverwrite");
        allow("cw");
        put("z").is_status(201);
        holder.get(&blob).send().is_status(403);
        // A source is judged by its own signature.
        let copy = |to: &str| {
            let source = format!("{}{blob}?{token}", theirs.base());
            theirs.request("PUT", &format!("/{name}/{to}")).header("x-ms-copy-source", source).send()
        };
        copy("b").is_error(403, "CannotVerifyCopySource");
        allow("rc");
        copy("b").is_status(202);
        assert_eq!(holder.get(&blob).send().text(), "z");
        holder.request("DELETE", &blob).send().is_status(403);
        allow("d");
        holder.request("DELETE", &blob).send().is_status(202);
    }
}

#[test]
fn x2_the_lease_of_a_container_holds_on_one_server_as_the_other_left_it() {
    let pair = Pair::start();
    for round in 0..ROUNDS {
        let (ours, theirs) = pair.blobs(round);
        let path = format!("/box{round}?restype=container");
        let (list, lease_path) = (format!("{path}&comp=list"), format!("{path}&comp=lease"));
        let lease = |client: &Client, action: &str, id: Option<&str>| {
            let request = client.request("PUT", &lease_path).header("x-ms-lease-action", action);
            match id {
                Some(id) => request.header("x-ms-lease-id", id).send(),
                None => request.header("x-ms-lease-duration", "-1").send(),
            }
        };
        let state = |client: &Client| client.get(&path).send().header("x-ms-lease-state").map(str::to_owned);
        ours.request("PUT", &path).send().is_status(201);
        theirs.get(&list).send().is_status(200);
        let id = lease(&ours, "acquire", None).header("x-ms-lease-id").expect("a lease").to_owned();
        // Remembered as free, it is not deleted all the same.
        theirs.request("DELETE", &path).send().is_error(412, "LeaseIdMissing");
        assert_eq!(state(&theirs).as_deref(), Some("leased"));
        lease(&theirs, "acquire", None).is_error(409, "LeaseAlreadyPresent");
        theirs.get(&path).header("x-ms-lease-id", id.as_str()).send().is_status(200);
        theirs.get(&list).send().is_status(200);
        lease(&ours, "release", Some(&id)).is_status(200);
        assert_eq!(state(&theirs).as_deref(), Some("available"));
        theirs.get(&path).header("x-ms-lease-id", id.as_str()).send().is_status(412);
        let id = lease(&theirs, "acquire", None).header("x-ms-lease-id").expect("a lease").to_owned();
        ours.request("DELETE", &path).header("x-ms-lease-id", id.as_str()).send().is_status(202);
        theirs.get(&path).send().is_error(404, "ContainerNotFound");
    }
}

#[test]
fn x2_a_container_made_anew_by_one_server_takes_blobs_on_the_other() {
    let pair = Pair::start();
    for round in 0..ROUNDS {
        let (ours, theirs) = pair.blobs(round);
        let path = format!("/box{round}?restype=container");
        let list = format!("{path}&comp=list");
        let blob = format!("/box{round}/a");
        let again = || {
            theirs.get(&list).send().is_status(200);
            ours.request("DELETE", &path).send().is_status(202);
            ours.request("PUT", &path).send().is_status(201);
        };
        let put = || theirs.put(&blob, "x").header("x-ms-blob-type", "BlockBlob").send();
        ours.request("PUT", &path).send().is_status(201);
        again();
        // The bytes were received for the old container: clients are asked to send them again.
        insistent(put).is_status(201);
        again();
        theirs.get(&blob).send().is_error(404, "BlobNotFound");
        again();
        theirs.put(&blob, "").header("x-ms-blob-type", "AppendBlob").send().is_status(201);
        again();
        let part = format!(
            "--batch_1\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\nContent-ID: 0\r\n\r\n\
             DELETE /{}{blob}?{} HTTP/1.1\r\nContent-Length: 0\r\n\r\n\r\n--batch_1--\r\n",
            larimar_testkit::http::ACCOUNT,
            Sas::container(&format!("box{round}"), "d").token()
        );
        let batch = theirs.request("POST", "/?comp=batch").header("Content-Type", "multipart/mixed; boundary=batch_1");
        let reply = batch.body(part).send();
        assert!(reply.text().contains("BlobNotFound"), "the new container has no such blob: {}", reply.text());
        theirs.get(&list).send().is_status(200);
        ours.request("DELETE", &path).send().is_status(202);
        theirs.get(&list).send().is_error(404, "ContainerNotFound");
        put().is_error(404, "ContainerNotFound");
    }
}
