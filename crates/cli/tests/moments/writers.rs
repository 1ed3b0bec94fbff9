//! What writers do and what clients see of it: entities in transactions, messages, blobs of all types.

use larimar_testkit::http::{Batch, BatchReply, Client, Response, entity, entity_path};
use larimar_testkit::{Dice, Server};
use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

/// What clients see of a writer's entities, messages or blobs, by their names.
pub(super) type View = BTreeMap<String, Item>;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Item {
    /// The etag of an entity or a blob; how a message is hidden, or nothing.
    pub(super) tag: String,
    pub(super) content: Arc<Vec<u8>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Table,
    Queue,
    Blob,
}

/// A writer of one kind. Its entities, messages or blobs are its own, and it has one request under way at a time.
#[derive(Clone, Debug)]
pub(super) struct Writer {
    pub(super) kind: Kind,
    /// A partition, a queue, or how names of blobs begin.
    pub(super) name: String,
}

impl Writer {
    pub(super) fn client(&self, server: &Server) -> Client {
        match self.kind {
            Kind::Table => server.client(),
            Kind::Queue => server.queues(),
            Kind::Blob => server.blobs(),
        }
    }

    /// Makes a change; returns what clients see after it.
    pub(super) fn step(&self, client: &Client, before: &View, dice: &mut Dice) -> io::Result<View> {
        match self.kind {
            Kind::Table => self.change_entities(client, before, dice),
            Kind::Queue => self.change_messages(client, before, dice),
            Kind::Blob => self.change_blobs(client, before, dice),
        }
    }

    /// What clients see.
    pub(super) fn seen(&self, client: &Client) -> View {
        match self.kind {
            Kind::Table => self.seen_entities(client),
            Kind::Queue => self.seen_messages(client),
            Kind::Blob => self.seen_blobs(client),
        }
    }

    /// A transaction that writes three entities, one that writes two and deletes one, or a single write.
    fn change_entities(&self, client: &Client, before: &View, dice: &mut Dice) -> io::Result<View> {
        let mut after = before.clone();
        let text = Arc::new(format!("{}{}", dice.next(), "x".repeat(dice.below(2000) as usize)).into_bytes());
        let members = format!(r#""Text":"{}""#, String::from_utf8_lossy(&text));
        let mut rows: Vec<String> = (0..3).map(|row| format!("{}", (dice.below(2) * 3) + row)).collect();
        if dice.below(4) == 0 {
            let row = rows.remove(0);
            let path = entity_path(TABLE, &self.name, &row);
            let request = client.put(&path, entity(&self.name, &row, &members));
            let request = match before.get(&row) {
                Some(item) => request.if_match(&item.tag),
                None => request,
            };
            let reply = request.try_send()?;
            reply.is_status(204);
            after.insert(row, Item { tag: etag(&reply), content: text });
            return Ok(after);
        }
        let deleted = match before.get(&rows[0]) {
            Some(item) if dice.below(2) == 0 => Some((rows.remove(0), item.tag.clone())),
            _ => None,
        };
        let mut batch = Batch::new();
        for row in &rows {
            batch = batch.upsert(client, TABLE, &self.name, row, &members);
        }
        if let Some((row, tag)) = &deleted {
            batch = batch.delete(client, TABLE, &self.name, row, tag);
            after.remove(row);
        }
        let reply = BatchReply::new(batch.request(client).try_send()?);
        assert_eq!(reply.parts.len(), rows.len() + usize::from(deleted.is_some()), "{}", reply.outer);
        for (row, part) in rows.into_iter().zip(&reply.parts) {
            part.response.is_status(204);
            after.insert(row, Item { tag: etag(&part.response), content: Arc::clone(&text) });
        }
        Ok(after)
    }

    fn seen_entities(&self, client: &Client) -> View {
        let request = client.get(&format!("/{TABLE}()")).query("$filter", &format!("PartitionKey eq '{}'", self.name));
        let reply = request.accept("application/json;odata=fullmetadata").send();
        reply.is_status(200);
        let text = |value: &larimar_testkit::serde_json::Value| value.as_str().expect("text").to_owned();
        let items = reply.values().into_iter().map(|entity| {
            let content = Arc::new(text(&entity["Text"]).into_bytes());
            (text(&entity["RowKey"]), Item { tag: text(&entity["odata.etag"]), content })
        });
        items.collect()
    }

    /// Puts a message, claims one for an hour, or deletes one that is claimed.
    fn change_messages(&self, client: &Client, before: &View, dice: &mut Dice) -> io::Result<View> {
        let mut after = before.clone();
        let messages = format!("/{}/messages", self.name);
        let claimed: Vec<(&String, &Item)> = before.iter().filter(|(_, item)| !item.tag.is_empty()).collect();
        let visible = before.len() - claimed.len();
        if visible < 3 || visible < 20 && dice.below(3) == 0 {
            let text = format!("{}{}", dice.next(), "x".repeat(dice.below(2000) as usize));
            let body = format!("<QueueMessage><MessageText>{text}</MessageText></QueueMessage>");
            let reply = client.request("POST", &format!("{messages}?messagettl=-1")).body(body).try_send()?;
            reply.is_status(201);
            let id = reply.element("MessageId").expect("an id").to_owned();
            after.insert(id, Item { tag: String::new(), content: Arc::new(text.into_bytes()) });
        } else if claimed.is_empty() || dice.below(2) == 0 {
            let reply = client.get(&format!("{messages}?visibilitytimeout=3600")).try_send()?;
            reply.is_status(200);
            let (id, receipt) = (reply.element("MessageId"), reply.element("PopReceipt"));
            let item = after.get_mut(id.expect("a message")).expect("a message that was put");
            item.tag = receipt.expect("a receipt").to_owned();
        } else {
            let (id, item) = *dice.pick(&claimed);
            let reply = client.delete(&format!("{messages}/{id}")).query("popreceipt", &item.tag).try_send()?;
            reply.is_status(204);
            after.remove(id);
        }
        Ok(after)
    }

    /// The messages that are visible, and how many are not.
    fn seen_messages(&self, client: &Client) -> View {
        let reply = client.get(&format!("/{}/messages?peekonly=true&numofmessages=32", self.name)).send();
        if reply.code() == "QueueNotFound" {
            return listed(self.kind, &View::new());
        }
        reply.is_status(200);
        let ids = reply.elements("MessageId").into_iter().map(str::to_owned);
        let texts = reply.elements("MessageText").into_iter().map(|text| text.as_bytes().to_vec());
        let items = texts.map(|text| Item { tag: String::new(), content: Arc::new(text) });
        let mut view: View = ids.zip(items).collect();
        let counted = client.get(&format!("/{}?comp=metadata", self.name)).send();
        let count: usize =
            counted.header("x-ms-approximate-messages-count").expect("a count").parse().expect("a number");
        view.insert(HIDDEN.to_owned(), hidden(count - view.len()));
        view
    }

    /// Deletes what is claimed, with the receipts of the claims.
    pub(super) fn use_receipts(&self, client: &Client, view: &View) {
        for (id, item) in view.iter().filter(|(id, item)| !item.tag.is_empty() && *id != HIDDEN) {
            let path = format!("/{}/messages/{id}", self.name);
            client.delete(&path).query("popreceipt", &item.tag).send().is_status(204);
        }
    }

    /// Puts, replaces, appends to, snapshots or deletes a blob.
    fn change_blobs(&self, client: &Client, before: &View, dice: &mut Dice) -> io::Result<View> {
        let mut after = before.clone();
        let kind = *dice.pick(&["block", "block", "list", "append", "pages"]);
        let name = format!("{}-{kind}{}", self.name, dice.below(2));
        let path = format!("/{CONTAINER}/{name}");
        let old = before.get(&name);
        let reply = match (dice.below(8), old) {
            (0, Some(item)) => {
                let reply = client.request("PUT", &format!("{path}?comp=snapshot")).body("").try_send()?;
                reply.is_status(201);
                let time = reply.header("x-ms-snapshot").expect("a time");
                after.insert(format!("{name} {time}"), item.clone());
                return Ok(after);
            }
            (1, Some(item)) => {
                let request = client.delete(&path).header("x-ms-delete-snapshots", "include");
                request.if_match(&item.tag).try_send()?.is_status(202);
                after.retain(|key, _| key.split(' ').next() != Some(&name));
                return Ok(after);
            }
            _ => put(client, &path, kind, old.map(|item| &**item.content), dice)?,
        };
        let (reply, content) = reply;
        reply.is_status(201);
        after.insert(name, Item { tag: etag(&reply), content: Arc::new(content) });
        Ok(after)
    }

    fn seen_blobs(&self, client: &Client) -> View {
        let list = format!("/{CONTAINER}?restype=container&comp=list&include=snapshots&prefix={}-", self.name);
        let list = client.get(&list).send();
        list.is_status(200);
        let inside = |blob: &str, name: &str| {
            let (_, rest) = blob.split_once(&format!("<{name}>"))?;
            rest.split_once('<').map(|(text, _)| text.to_owned())
        };
        let mut view = View::new();
        for blob in list.elements("Blob") {
            let name = inside(blob, "Name").expect("a name");
            let (snapshot, request) = (inside(blob, "Snapshot"), client.get(&format!("/{CONTAINER}/{name}")));
            let (key, reply) = match snapshot {
                Some(time) => (format!("{name} {time}"), request.query("snapshot", &time).send()),
                None => (name, request.send()),
            };
            reply.is_status(200);
            view.insert(key, Item { tag: etag(&reply), content: Arc::new(reply.body) });
        }
        view
    }
}

/// Writes to a blob of a type; returns the reply and what the blob then holds.
fn put(
    client: &Client,
    path: &str,
    kind: &str,
    old: Option<&[u8]>,
    dice: &mut Dice,
) -> io::Result<(Response, Vec<u8>)> {
    let put = |query: &str| client.request("PUT", &format!("{path}{query}"));
    // On both sides of what a segment of the archive holds, and of what is a chunk.
    let most = *dice.pick(&[600, 30_000, 400_000, 5_000_000]);
    let content = noise(dice.next(), 1 + dice.below(most) as usize);
    match (kind, old) {
        ("block", _) => Ok((put("").header("x-ms-blob-type", "BlockBlob").body(content.clone()).try_send()?, content)),
        ("list", _) => {
            let list: String = ["AAAA", "BBBB"].map(|id| format!("<Latest>{id}</Latest>")).concat();
            let (first, second) = content.split_at(content.len() / 2);
            for (id, part) in [("AAAA", first), ("BBBB", second)] {
                // A block has bytes.
                let part = if part.is_empty() { &content } else { part };
                put(&format!("?comp=block&blockid={id}")).body(part.to_vec()).try_send()?.is_status(201);
            }
            let reply = put("?comp=blocklist").body(format!("<BlockList>{list}</BlockList>")).try_send()?;
            let content = if first.is_empty() { [&content[..], &content[..]].concat() } else { content };
            Ok((reply, content))
        }
        ("append", None) => Ok((put("").header("x-ms-blob-type", "AppendBlob").body("").try_send()?, Vec::new())),
        ("append", Some(old)) => {
            let added = &content[..content.len().min(300_000)];
            Ok((put("?comp=appendblock").body(added.to_vec()).try_send()?, [old, added].concat()))
        }
        (_, None) => {
            let request = put("").header("x-ms-blob-type", "PageBlob");
            let request = request.header("x-ms-blob-content-length", (PAGES * 512).to_string());
            Ok((request.body("").try_send()?, vec![0; PAGES * 512]))
        }
        (_, Some(old)) => {
            let start = dice.below(PAGES as u64) as usize;
            let end = start + 1 + dice.below((PAGES - start) as u64) as usize;
            let (range, pages) = (start * 512..end * 512, noise(dice.next(), (end - start) * 512));
            let mut content = old.to_vec();
            content[range.clone()].copy_from_slice(&pages);
            let request = put("?comp=page").header("x-ms-page-write", "update");
            let request = request.header("x-ms-range", format!("bytes={}-{}", range.start, range.end - 1));
            Ok((request.body(pages).try_send()?, content))
        }
    }
}

/// A view as [`Writer::seen`] has it: messages that are claimed are counted only.
pub(super) fn listed(kind: Kind, view: &View) -> View {
    if kind != Kind::Queue || view.contains_key(HIDDEN) {
        return view.clone();
    }
    let mut listed = view.clone();
    listed.retain(|_, item| item.tag.is_empty());
    listed.insert(HIDDEN.to_owned(), hidden(view.len() - listed.len()));
    listed
}

fn hidden(count: usize) -> Item {
    Item { tag: count.to_string(), content: Arc::default() }
}

fn etag(reply: &Response) -> String {
    reply.header("ETag").unwrap_or_else(|| panic!("an etag: {reply}")).to_owned()
}

/// Bytes that belong to one write only.
fn noise(seed: u64, length: usize) -> Vec<u8> {
    let mut dice = Dice::new(seed);
    let mut bytes: Vec<u8> = (0..length.div_ceil(8)).flat_map(|_| dice.next().to_le_bytes()).collect();
    bytes.truncate(length);
    bytes
}

pub(super) const TABLE: &str = "orders";
pub(super) const CONTAINER: &str = "photos";
/// Beside the ids of messages, how many are hidden.
const HIDDEN: &str = "hidden";
const PAGES: usize = 64;
