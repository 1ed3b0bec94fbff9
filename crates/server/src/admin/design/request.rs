//! What the page asks of the designer, and the answers, as JSON. Pure.

use larimar_design::{Description, Design, DesignError, Proposal, Sample, examples, propose};
use serde::{Deserialize, Serialize};

/// A request that is refused: why, and the line of the TOML text that the reason is about, if there is one.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Refused {
    pub(super) message: String,
    pub(super) line: Option<usize>,
}

/// What is asked for: the list of examples, an example, or designs for what is described.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct DesignRequest {
    #[serde(default)]
    examples: bool,
    example: Option<String>,
    description: Option<Description>,
    toml: Option<String>,
    sample: Option<SampleText>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TrialRequest {
    toml: String,
    design: usize,
    entities: usize,
}

/// Entities to take properties from.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SampleText {
    format: SampleFormat,
    text: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum SampleFormat {
    Csv,
    Jsonl,
    Json,
}

#[derive(Serialize)]
struct Designs {
    #[serde(flatten)]
    proposal: Proposal,
    /// What the designs are for, in TOML, with what a sample added.
    description: String,
}

/// Answers `/design`.
pub(super) fn design(body: &[u8]) -> Result<Vec<u8>, Refused> {
    let request: DesignRequest = parse(body)?;
    match request {
        DesignRequest { examples: true, example: None, description: None, toml: None, sample: None } => {
            let list = examples::ALL.iter().map(|it| serde_json::json!({ "name": it.name, "title": it.about() }));
            json(&serde_json::json!({ "examples": list.collect::<Vec<_>>() }))
        }
        DesignRequest { examples: false, example: Some(name), description: None, toml: None, sample: None } => {
            let example = examples::find(&name).ok_or_else(|| refused("there is no example of this name"))?;
            json(&serde_json::json!({ "name": example.name, "toml": example.text }))
        }
        DesignRequest { examples: false, example: None, description, toml, sample } => {
            let text = toml.as_deref().unwrap_or_default();
            let description = described(description, toml.as_deref(), sample)?;
            let proposal = propose(&description).map_err(|error| at_line(&error, text))?;
            let description = description.to_toml().map_err(|error| at_line(&error, text))?;
            json(&Designs { proposal, description })
        }
        _ => Err(refused(EXPECTED)),
    }
}

/// Answers `/design/trial`.
pub(super) fn trial(body: &[u8]) -> Result<Vec<u8>, Refused> {
    let request: TrialRequest = parse(body)?;
    let description = Description::from_toml(&request.toml).map_err(|error| at_line(&error, &request.toml))?;
    let proposal = propose(&description).map_err(|error| at_line(&error, &request.toml))?;
    let found = request.design.checked_sub(1).and_then(|index| proposal.designs.get(index));
    let design =
        found.ok_or_else(|| refused(&format!("expected design to be from 1 to {}", proposal.designs.len())))?;
    if trial_bytes(&description, design, request.entities) > TRIAL_BYTES_MAX {
        return Err(refused("expected a trial of at most 32 MiB: try fewer entities"));
    }
    let trial = larimar_design::trial::trial(&description, &design.layout, request.entities);
    json(&trial.map_err(|error| at_line(&error, &request.toml))?)
}

/// The description of a request, with the properties of its sample.
fn described(
    description: Option<Description>,
    toml: Option<&str>,
    sample: Option<SampleText>,
) -> Result<Description, Refused> {
    let mut described = match (description, toml) {
        (Some(description), None) => description,
        (None, Some(toml)) => Description::from_toml(toml).map_err(|error| at_line(&error, toml))?,
        (None, None) if sample.is_some() => {
            Description::from_toml(NOTHING_KNOWN).expect("the constant is a description")
        }
        (None, None) | (Some(_), Some(_)) => return Err(refused(EXPECTED)),
    };
    let Some(sample) = sample else { return Ok(described) };
    let sample = match sample.format {
        SampleFormat::Csv => Sample::from_csv(&sample.text),
        SampleFormat::Jsonl | SampleFormat::Json => Sample::from_json(&sample.text),
    };
    let added = sample.and_then(|sample| sample.add_to(&mut described));
    added.map_err(|error| match error {
        DesignError::Syntax { line, reason } => refused(&format!("line {line} of the sample: {reason}")),
        other => refused(&format!("the sample: {other}")),
    })?;
    Ok(described)
}

/// Roughly what the rows of a trial take in memory.
fn trial_bytes(description: &Description, design: &Design, entities: usize) -> usize {
    let names: usize = description.properties.iter().map(|property| property.name.len() + VALUE_BYTES).sum();
    entities.saturating_mul(design.layout.structures.len()).saturating_mul(names + ROW_BYTES)
}

fn parse<'a, T: Deserialize<'a>>(body: &'a [u8]) -> Result<T, Refused> {
    serde_json::from_slice(body).map_err(|error| refused(&error.to_string()))
}

fn json(value: &impl Serialize) -> Result<Vec<u8>, Refused> {
    let mut json = serde_json::to_vec(value).map_err(|error| refused(&error.to_string()))?;
    json.push(b'\n');
    Ok(json)
}

fn at_line(error: &DesignError, text: &str) -> Refused {
    Refused { line: error.line(text), ..refused(&error.to_string()) }
}

/// A refusal of some words: it may quote the request.
fn refused(message: &str) -> Refused {
    Refused { message: message.chars().take(MESSAGE_CHARS_MAX).collect(), line: None }
}

/// The description of a sample about which nothing else is said.
const NOTHING_KNOWN: &str = "entity = 'Entity'\n[volume]\n";

/// Bytes of a trial's rows at most, and what is counted for each row and value besides its name.
const TRIAL_BYTES_MAX: usize = 32 << 20;
const ROW_BYTES: usize = 400;
const VALUE_BYTES: usize = 96;

const MESSAGE_CHARS_MAX: usize = 500;
const EXPECTED: &str =
    "expected one of examples, example, description and toml; a sample may stand alone or beside the last two";

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn asked(request: &Value) -> Result<Value, Refused> {
        design(request.to_string().as_bytes()).map(|json| serde_json::from_slice(&json).expect("JSON"))
    }

    fn example() -> &'static str {
        examples::find("employees").expect("an example").text
    }

    #[test]
    fn examples_are_listed_and_each_gives_designs_that_can_be_tried() {
        let list = asked(&json!({ "examples": true })).expect("a list");
        let list = list["examples"].as_array().expect("a list").clone();
        assert!(list.len() > 10 && list.iter().all(|it| it["title"].as_str().is_some_and(|title| !title.is_empty())));
        for it in list {
            let text = asked(&json!({ "example": it["name"] })).expect("an example")["toml"].clone();
            let designs = asked(&json!({ "toml": text })).unwrap_or_else(|refused| panic!("{it}: {refused:?}"));
            assert!(!designs["designs"].as_array().expect("designs").is_empty(), "{it}");
            let again = asked(&json!({ "toml": designs["description"] })).expect("the description reads back");
            assert_eq!(again["designs"], designs["designs"], "{it}");
            let request = json!({ "toml": text, "design": 1, "entities": 100 }).to_string();
            match trial(request.as_bytes()) {
                Ok(tried) => {
                    let tried: Value = serde_json::from_slice(&tried).expect("JSON");
                    assert!(tried["rows"].as_array().is_some_and(|rows| !rows.is_empty()), "{it}");
                    assert!(tried["queries"].is_array() && tried["notTried"].is_array(), "{it}");
                }
                Err(refused) => assert!(refused.message.starts_with("trial: "), "{it}: {refused:?}"),
            }
        }
    }

    #[test]
    fn a_sample_adds_properties_to_what_is_described() {
        let rows: String = (0..50).map(|n| format!("P{n},{}\n", n % 5)).collect();
        let sample = json!({ "format": "csv", "text": format!("Id,Team\n{rows}") });
        let toml = "entity = 'Person'\n[volume]\nentities = 9000\n[[query]]\nname = 'by team'\nequals = ['Team']\nrate = '5/s'\n";
        let designs = asked(&json!({ "toml": toml, "sample": sample })).expect("designs");
        let described = designs["description"].as_str().expect("text");
        assert!(described.contains("\"Id\"") && described.contains("entities = 9000"), "{described}");
        let alone = asked(&json!({ "sample": sample })).expect("designs");
        let described = alone["description"].as_str().expect("text");
        assert!(described.contains("\"Team\"") && described.contains("entities = 50"), "{described}");
        let lines = json!({ "format": "jsonl", "text": "{\"Id\":\"a\",\"N\":1}\n{\"Id\":\"b\",\"N\":2}\n" });
        assert!(asked(&json!({ "sample": lines })).is_ok());
        let broken = json!({ "format": "jsonl", "text": "{\"Id\":\"a\"}\n{" });
        let message = asked(&json!({ "sample": broken })).expect_err("no JSON").message;
        assert!(message.contains("line 2 of the sample"), "{message}");
    }

    #[test]
    fn what_is_wrong_is_said_with_its_line() {
        let refusal = |request: Value| asked(&request).expect_err("a refusal");
        let toml = "entity = 'E'\n[volume]\nentities = 9\n[[query]]\nname = 'q'\nequals = ['A']";
        let found = refusal(json!({ "toml": toml }));
        assert_eq!(found.line, Some(5));
        assert!(found.message.starts_with("query 'q': unknown property 'A'"), "{found:?}");
        for (request, message) in [
            (json!({}), EXPECTED),
            (json!({ "toml": "", "description": { "entity": "E", "volume": {} } }), EXPECTED),
            (json!({ "examples": true, "toml": "" }), EXPECTED),
            (json!({ "example": "none" }), "there is no example"),
            (json!({ "tomml": "" }), "unknown field"),
            (json!({ "sample": { "format": "parquet", "text": "" } }), "unknown variant"),
            (json!([]), "invalid"),
        ] {
            let found = refusal(request.clone()).message;
            assert!(found.contains(message), "{request}: {found}");
        }
        let long = refusal(json!({ "x".repeat(100_000): 1 }));
        assert!(long.message.len() <= 4 * MESSAGE_CHARS_MAX);
        for bytes in [&b""[..], b"\xff", &b"[".repeat(200_000), &b"{\"toml\":".repeat(30_000)] {
            assert!(design(bytes).is_err() && trial(bytes).is_err());
        }
    }

    #[test]
    fn trials_are_bounded() {
        let ask = |design: Value, entities: Value| {
            let request = json!({ "toml": example(), "design": design, "entities": entities }).to_string();
            trial(request.as_bytes()).map(|json| json.len())
        };
        assert!(ask(json!(1), json!(1000)).is_ok());
        for (design, entities, message) in [
            (json!(0), json!(10), "expected design to be from 1"),
            (json!(99), json!(10), "expected design to be from 1"),
            (json!(-1), json!(10), "invalid value"),
            (json!(1), json!(0), "expected 1 to"),
            (json!(1), json!(10_000_000), "expected a trial of at most 32 MiB"),
            (json!(1), json!(u64::MAX), "expected a trial of at most 32 MiB"),
        ] {
            let found = ask(design, entities).expect_err(message).message;
            assert!(found.contains(message), "{found}");
        }
        // Long names, many properties.
        let property = |n: usize| format!("[[property]]\nname = '{}{n:03}'\ntype = 'string'\n", "p".repeat(120));
        let properties: String = (0..100).map(property).collect();
        let toml = format!("entity = 'E'\n[volume]\nentities = 99999\n{properties}");
        let request = json!({ "toml": toml, "design": 1, "entities": 20_000 }).to_string();
        assert!(trial(request.as_bytes()).is_err_and(|refused| refused.message.contains("32 MiB")));
    }
}
