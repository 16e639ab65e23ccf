//! A table of commands, with what the real calicoctl answers.

use std::fs;

use crate::cli::program::Tortie;

const TABLE: &str = include_str!("calicoctl.txt");

/// A command and what is expected of it.
#[derive(Debug, Default)]
struct Case<'a> {
    words: Vec<&'a str>,
    stdout: String,
    stderr: Vec<&'a str>,
    code: i32,
}

#[test]
fn every_command_of_the_table_answers_as_calicoctl_does() {
    let folder = tempfile::tempdir().unwrap();
    let (files, commands) = TABLE.split_at(TABLE.find("\n$ ").unwrap());
    for file in files.split("\n@ ").skip(1) {
        let (name, text) = file.split_once('\n').unwrap();
        fs::write(folder.path().join(name), text).unwrap();
    }
    let tortie = Tortie::embedded(folder.path());
    let cases: Vec<Case<'_>> = commands.split("\n$ ").skip(1).map(case).collect();
    assert!(cases.len() >= 60, "{}", cases.len());
    let mut failures = Vec::new();
    for case in &cases {
        let folder = folder.path().display().to_string();
        let words: Vec<String> = case
            .words
            .iter()
            .map(|word| word.replace("{dir}", &folder))
            .collect();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let output = tortie.run(&words);
        let is_right = output.stdout == case.stdout
            && output.code == case.code
            && case
                .stderr
                .iter()
                .all(|piece| output.stderr.contains(piece));
        if !is_right {
            failures.push(format!("{case:#?}\nanswered {output:#?}"));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
}

fn case(text: &str) -> Case<'_> {
    let mut lines = text.lines();
    let mut case = Case {
        words: lines.next().unwrap().split(' ').collect(),
        ..Case::default()
    };
    for line in lines.filter(|line| !line.is_empty()) {
        let rest = line.get(2..).unwrap_or_default();
        match &line[..1] {
            "|" => {
                case.stdout.push_str(rest);
                case.stdout.push('\n');
            }
            "~" => case.stderr.push(rest),
            "=" => case.code = rest.parse().unwrap(),
            _ => panic!("what is `{line}`?"),
        }
    }
    case
}
