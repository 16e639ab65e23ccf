//! confd's own answers: every file that it wrote, statement by statement.

use std::fs;

use tortie_bgp::{Plan, render};
use tortie_testkit::{bird_statements, vector_folders};

use crate::world;

#[test]
fn all_files_are_confds() {
    let mut wrong = Vec::new();
    for folder in vector_folders("bgp") {
        let plan = Plan::new(&world::vector(&folder));
        for (file, text) in render::bird1(&plan).files() {
            let expected = fs::read_to_string(folder.join(file)).unwrap();
            let (expected, found) = (bird_statements(&expected), bird_statements(text));
            if expected != found {
                let at = expected.iter().zip(&found).position(|(a, b)| a != b);
                let at = at.unwrap_or(expected.len().min(found.len()));
                let (a, b) = (expected.get(at), found.get(at));
                wrong.push(format!(
                    "{}: statement {at} is {b:?} instead of {a:?}",
                    folder.join(file).display()
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
