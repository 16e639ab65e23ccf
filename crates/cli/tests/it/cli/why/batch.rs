//! Many questions at once.

use serde_json::{Value, json};

use super::SHOP;
use crate::cli::program::{Output, Tortie};

fn batch(lines: &str, more: &[&str]) -> Output {
    let folder = tempfile::tempdir().unwrap();
    let world = folder.path().join("world.yaml");
    std::fs::write(&world, SHOP).unwrap();
    let world = world.display().to_string();
    let arguments: Vec<&str> = ["why", "-f", &world, "--batch", "-"]
        .iter()
        .chain(more)
        .copied()
        .collect();
    Tortie::with_variables(Vec::new()).run_with_input(&arguments, lines)
}

fn answers(output: &Output) -> Vec<Value> {
    let lines = output.stdout.lines();
    lines
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

#[test]
fn answers_come_in_order() {
    let lines = "\
{\"from\":\"shop/api\",\"to\":\"shop/db\",\"protocol\":\"TCP\",\"port\":5432}

{\"from\":\"blog/api\",\"to\":\"shop/db\",\"protocol\":6,\"port\":5432,\"srcPort\":1025}
{\"from\":\"10.0.0.1\",\"to\":\"fd01::2\",\"protocol\":\"TCP\",\"port\":5432,\"srcPort\":null}
{\"from\":\"shop/api\",\"to\":\"shop/db\",\"icmpType\":8,\"icmpCode\":0}
{\"from\":\"shop/api\",\"to\":\"shop/db\",\"protocol\":\"tcp\",\"port\":5432,\"ipVersion\":6,\"note\":\"fine\"}
";
    let output = batch(lines, &["-o", "json"]);
    assert_eq!(
        output.code, 1,
        "an address of each version cannot be one packet"
    );
    let answers = answers(&output);
    let verdicts: Vec<&Value> = answers.iter().map(|answer| &answer["verdict"]).collect();
    assert_eq!(
        json!(verdicts),
        json!(["Allow", "Deny", null, "Deny", "Allow"])
    );
    assert_eq!(answers[0]["from"], "shop/api");
    assert_eq!(answers[0]["to"], "shop/db");
    assert_eq!(answers[1]["ingress"]["by"]["tier"], "default");
    assert!(answers[2]["error"].as_str().unwrap().contains("IPv4"));
}

#[test]
fn a_batch_is_no_failure_when_connections_are_denied() {
    let output = batch(
        "{\"from\":\"blog/api\",\"to\":\"shop/db\"}\n",
        &["-o", "json"],
    );
    assert_eq!(output.code, 0, "{}", output.stderr);
    assert_eq!(answers(&output)[0]["verdict"], "Deny");
    assert_eq!(batch("", &["-o", "json"]).code, 0);
}

#[test]
fn errors_stand_in_their_place() {
    let lines = "\
{\"from\":\"shop/api\",\"to\":\"shop/db\",\"protocol\":\"TCP\",\"port\":5432}
{\"from\":\"shop/pai\",\"to\":\"shop/db\"}
not json
{\"from\":\"shop/api\"}
{\"from\":\"shop/api\",\"to\":\"shop/db\",\"prot\":\"TCP\"}
{\"from\":\"shop/api\",\"to\":\"shop/db\",\"protocol\":\"TCP\",\"port\":\"http\"}
{\"from\":\"shop/api\",\"to\":\"shop/db\",\"port\":80}
{\"from\":\"shop/api\",\"to\":\"blog/api\"}
";
    let output = batch(lines, &["-o", "json"]);
    assert_eq!(output.code, 1);
    let answers = answers(&output);
    assert_eq!(answers.len(), 8);
    let expected = [
        None,
        Some("did you mean `shop/api`?"),
        Some("line 3 is not a JSON object"),
        Some("`to` is missing"),
        Some("there is no field `prot`; did you mean `port` or `protocol`?"),
        Some("`shop/db` has no port named `http`: it has none with a name"),
        Some("port 80 needs a protocol"),
        None,
    ];
    for (answer, expected) in answers.iter().zip(expected) {
        match expected {
            None => assert_eq!(answer["verdict"], "Allow", "{answer}"),
            Some(piece) => {
                let error = answer["error"].as_str().unwrap();
                assert!(error.contains(piece), "no `{piece}` in {error}");
            }
        }
    }
    assert_eq!(answers[1]["from"], "shop/pai");
    assert_eq!(answers[1]["to"], "shop/db");
    assert!(
        output.stderr.contains("6 of 8 flows have an error"),
        "{}",
        output.stderr
    );
}

#[test]
fn text_is_one_line_a_flow() {
    let lines = "\
{\"from\":\"shop/api\",\"to\":\"shop/db\",\"protocol\":\"TCP\",\"port\":5432}
{\"from\":\"blog/api\",\"to\":\"shop/db\",\"protocol\":\"TCP\",\"port\":5432}
{\"from\":\"blog/api\",\"to\":\"shop/bd\"}
";
    let output = batch(lines, &["--verbose"]);
    assert_eq!(output.code, 1);
    let lines: Vec<&str> = output.stdout.lines().collect();
    assert_eq!(lines.len(), 3, "{}", output.stdout);
    let starts = [
        "ALLOWED  shop/api -> shop/db TCP 5432  (ingress: Allow by rule 0 of",
        "DENIED   blog/api -> shop/db TCP 5432  (ingress: Deny at the end of tier",
        "ERROR    blog/api -> shop/bd  (line 3: there is no pod `shop/bd`; did you mean `shop/db`?",
    ];
    for (line, start) in lines.iter().zip(starts) {
        assert!(line.starts_with(start), "{line}");
    }
    assert!(
        output.stderr.contains("note: answered 3 flows in"),
        "{}",
        output.stderr
    );
}

#[test]
fn standard_input_cannot_be_both() {
    let tortie = Tortie::with_variables(Vec::new());
    let output = tortie.run_with_input(&["why", "-f", "-", "--batch", "-"], SHOP);
    assert_eq!(output.code, 1);
    assert!(output.stderr.contains("cannot both read standard input"));
    let output = tortie.run_with_input(&["why", "-f", "-", "--batch", "/no/file"], SHOP);
    assert_eq!(output.code, 1);
    assert!(output.stderr.contains("/no/file"), "{}", output.stderr);
}
