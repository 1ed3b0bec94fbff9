//! Encrypted connections, passwords, and what is refused.

use crate::support::name;
use larimar_engine::Spaces as _;
use larimar_engine_postgres::{Password, PostgresEngine, Settings};
use larimar_testkit::postgres::{Cluster, Options};

fn certificate(names: &[&str]) -> (String, String) {
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    let made = rcgen::generate_simple_self_signed(names).expect("a certificate");
    (made.cert.pem(), made.signing_key.serialize_pem())
}

async fn opens(url: &str, password: Option<&str>) -> Result<(), String> {
    let settings = Settings { password: password.map(|text| Password::Text(text.to_owned())), ..Settings::new(url) };
    let engine = PostgresEngine::open(&settings).await.map_err(|error| error.to_string())?;
    engine.space(name("t")).await.map(drop).map_err(|fault| fault.to_string())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn certificates_are_checked_as_sslmode_says_and_passwords_come_apart_from_the_url() {
    let folder = tempfile::tempdir().expect("a folder");
    let (cert, key) = certificate(&["127.0.0.1"]);
    let (other, _) = certificate(&["127.0.0.1"]);
    let write = |file: &str, text: &str| {
        let path = folder.path().join(file);
        std::fs::write(&path, text).expect("a file");
        path.display().to_string()
    };
    let (right, wrong) = (write("right.pem", &cert), write("wrong.pem", &other));
    let cluster =
        Cluster::start_with(&Options { tls: Some((&cert, &key)), password: Some("open sesame"), settings: &[] });
    let url = format!("postgres://larimar@127.0.0.1:{}/postgres", cluster.port());
    let password = Some("open sesame");

    for good in [
        String::new(),
        "?sslmode=require".to_owned(),
        format!("?sslmode=verify-ca&sslrootcert={right}"),
        format!("?sslmode=verify-full&sslrootcert={right}"),
    ] {
        assert_eq!(opens(&format!("{url}{good}"), password).await, Ok(()), "{good}");
    }
    for bad in [
        "?sslmode=disable".to_owned(),
        "?sslmode=verify-full".to_owned(),
        format!("?sslmode=verify-ca&sslrootcert={wrong}"),
        format!("?sslmode=require&sslrootcert={wrong}"),
    ] {
        assert!(opens(&format!("{url}{bad}"), password).await.is_err(), "{bad}");
    }
    let refused = opens(&url, Some("wrong")).await.expect_err("the password is wrong");
    assert!(!refused.contains("wrong\""), "{refused}");
    assert!(opens(&url, None).await.is_err());
    // A certificate for another name is refused where the name counts.
    let by_name = url.replace("127.0.0.1", "localhost");
    assert_eq!(opens(&format!("{by_name}?sslmode=verify-ca&sslrootcert={right}"), password).await, Ok(()));
    assert!(opens(&format!("{by_name}?sslmode=verify-full&sslrootcert={right}"), password).await.is_err());
}
