//! Credentials: bearer tokens, which are sent, where, for how long they are kept, and what becomes of those that are not
//! taken; keys as they come from files; and that nothing of them is shown.

use bytes::Bytes;
use http::{HeaderMap, Request, Response};
use larimar_client::{
    AccessToken, Account, AccountBuilder, BoxError, BoxFuture, DynamicEntity, Error, Guid, Table, TokenProvider,
    Transport, TransportError,
};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};
use tokio::time::Instant;

/// Answers with the statuses of a plan, and remembers what was sent.
#[derive(Debug, Default)]
struct Service {
    plan: Mutex<VecDeque<u16>>,
    sent: Mutex<Vec<HeaderMap>>,
}

impl Service {
    fn plan(&self, statuses: &[u16]) {
        *self.plan.lock().expect("no panic") = statuses.iter().copied().collect();
        self.sent.lock().expect("no panic").clear();
    }

    /// A header of all requests since the last plan was made.
    fn sent(&self, name: &str) -> Vec<String> {
        let text = |headers: &HeaderMap| headers[name].to_str().expect("text").to_owned();
        self.sent.lock().expect("no panic").iter().map(text).collect()
    }
}

impl Transport for Service {
    fn send(&self, request: Request<Bytes>) -> BoxFuture<'_, Result<Response<Bytes>, TransportError>> {
        self.sent.lock().expect("no panic").push(request.headers().clone());
        let status = self.plan.lock().expect("no panic").pop_front().unwrap_or(204);
        let answer = Response::builder().status(status).header("etag", "W/\"1\"").body(Bytes::new());
        Box::pin(async move { Ok(answer.expect("an answer")) })
    }
}

/// Gives out tokens that say how many there were before, and for which scope.
#[derive(Debug)]
struct Provider {
    given: Mutex<u32>,
    lasts: Duration,
}

impl TokenProvider for Provider {
    fn token<'a>(&'a self, scope: &'a str) -> BoxFuture<'a, Result<AccessToken, BoxError>> {
        Box::pin(async move {
            let mut given = self.given.lock().expect("no panic");
            *given += 1;
            Ok(AccessToken::new(format!("{given}-{scope}"), SystemTime::now() + self.lasts))
        })
    }
}

fn provider(lasts: Duration) -> Arc<Provider> {
    Arc::new(Provider { given: Mutex::new(0), lasts })
}

const HOUR: Duration = Duration::from_secs(3600);

fn builder(service: &Arc<Service>, endpoint: &str, provider: Arc<dyn TokenProvider>) -> AccountBuilder {
    let transport = Arc::clone(service) as Arc<dyn Transport>;
    Account::builder().table_endpoint(endpoint).token(provider).transport(transport)
}

fn table(service: &Arc<Service>, endpoint: &str, provider: Arc<dyn TokenProvider>) -> Table {
    builder(service, endpoint, provider).build().expect("an account").table("Employees")
}

const AZURE: &str = "https://example.table.core.windows.net";

#[tokio::test]
async fn tokens_are_for_the_service_and_in_a_version_that_takes_them() {
    let service = Arc::new(Service::default());
    for (endpoint, scope) in [
        (AZURE, "https://storage.azure.com/.default"),
        ("https://example.table.cosmos.azure.com:443", "https://cosmos.azure.com/.default"),
    ] {
        let table = table(&service, endpoint, provider(HOUR));
        service.plan(&[]);
        table.insert(&DynamicEntity::new("p", "r")).await.expect("inserted");
        table.insert(&DynamicEntity::new("p", "r")).await.expect("inserted");
        assert_eq!(service.sent("authorization"), [(); 2].map(|()| format!("Bearer 1-{scope}")), "kept");
        // Before, the Table service refuses every token (service reference: authorize with Microsoft Entra ID).
        assert_eq!(service.sent("x-ms-version"), ["2020-12-06"; 2]);
    }
}

#[tokio::test]
async fn tokens_that_end_soon_are_not_used_again() {
    let service = Arc::new(Service::default());
    let table = table(&service, AZURE, provider(Duration::from_secs(60)));
    for _ in 0..2 {
        table.insert(&DynamicEntity::new("p", "r")).await.expect("inserted");
    }
    let first: Vec<_> = service.sent("authorization").iter().map(|sent| sent[..9].to_owned()).collect();
    assert_eq!(first, ["Bearer 1-", "Bearer 2-"]);
}

#[tokio::test(start_paused = true)]
async fn a_token_that_is_not_taken_is_renewed_once() {
    let service = Arc::new(Service::default());
    let table = table(&service, AZURE, provider(HOUR));
    service.plan(&[401]);
    table.insert(&DynamicEntity::new("p", "r")).await.expect("taken the second time");
    assert_eq!(service.sent("authorization").len(), 2);
    service.plan(&[503, 401]);
    table.insert(&DynamicEntity::new("p", "r")).await.expect("taken after other failures, too");
    assert_eq!(service.sent("authorization").len(), 3);
    service.plan(&[401, 401, 401]);
    assert_eq!(table.insert(&DynamicEntity::new("p", "r")).await.expect_err("refused").status(), Some(401));
    assert_eq!(service.sent("authorization").len(), 2);
}

#[tokio::test]
async fn tokens_are_not_sent_in_the_clear() {
    let service = Arc::new(Service::default());
    let table = table(&service, "http://example.table.core.windows.net", provider(HOUR));
    let error = table.insert(&DynamicEntity::new("p", "r")).await.expect_err("not sent");
    assert!(matches!(error, Error::Credential(_)), "{error}");
    assert!(service.sent("authorization").is_empty());
}

/// Never gives anything.
#[derive(Debug)]
struct Silent;

impl TokenProvider for Silent {
    fn token<'a>(&'a self, _: &'a str) -> BoxFuture<'a, Result<AccessToken, BoxError>> {
        Box::pin(std::future::pending())
    }
}

#[tokio::test(start_paused = true)]
async fn c10_the_time_limit_of_a_call_holds_for_its_token_too() {
    let service = Arc::new(Service::default());
    let account = builder(&service, AZURE, Arc::new(Silent)).timeout(Duration::from_secs(5));
    let table = account.build().expect("an account").table("Employees");
    let start = Instant::now();
    let error = table.insert(&DynamicEntity::new("p", "r")).await.expect_err("no token");
    assert!(matches!(error, Error::Credential(_)) && !error.is_ambiguous(), "{error}");
    assert!(start.elapsed() <= Duration::from_secs(5), "{:?} of made-up time", start.elapsed());
}

#[tokio::test]
async fn keys_may_come_from_files_and_names_from_anywhere() {
    let service = Arc::new(Service::default());
    let table = |account: &str| {
        let transport = Arc::clone(&service) as Arc<dyn Transport>;
        let account = Account::builder().table_endpoint(AZURE).shared_key(account, "c2VjcmV0\r\n").transport(transport);
        account.build().expect("an account").table("Employees")
    };
    table("example\n").insert(&DynamicEntity::new("p", "r")).await.expect("inserted");
    assert!(service.sent("authorization")[0].starts_with("SharedKey example:"));
    let error = table("exam\nple").insert(&DynamicEntity::new("p", "r")).await.expect_err("no name");
    assert!(matches!(error, Error::Credential(_)), "{error}");
}

#[tokio::test(start_paused = true)]
async fn requests_tell_who_sends_them_and_which_are_the_same() {
    let service = Arc::new(Service::default());
    let account = builder(&service, AZURE, provider(HOUR)).user_agent("Payroll/2.1").build().expect("an account");
    let table = account.table("Employees");
    service.plan(&[503]);
    table.insert(&DynamicEntity::new("p", "r")).await.expect("inserted");
    table.insert(&DynamicEntity::new("p", "s")).await.expect("inserted");
    let agent = concat!("Payroll/2.1 larimar-client/", env!("CARGO_PKG_VERSION"));
    assert_eq!(service.sent("user-agent"), [agent; 3]);
    let ids = service.sent("x-ms-client-request-id");
    assert!(ids.iter().all(|id| id.parse::<Guid>().is_ok()), "{ids:?}");
    assert!(ids[0] == ids[1] && ids[1] != ids[2], "a retry has the id of its call: {ids:?}");
}

#[test]
fn secrets_are_not_shown() {
    let account = Account::builder()
        .connection_string("AccountName=a;AccountKey=c2VjcmV0S2V5")
        .table_secondary_endpoint("https://a-secondary.table.core.windows.net?sig=secretSignature")
        .queue_endpoint("https://a.queue.core.windows.net?sig=secretSignature")
        .sas("sv=2019-02-02&sig=secretSignature")
        .proxy("http://user:secretPassword@proxy:3128");
    let shown = format!("{account:?} {:?}", account.clone().build().expect("an account"));
    assert!(!shown.contains("secret") && !shown.contains("c2VjcmV0"), "{shown}");
}
