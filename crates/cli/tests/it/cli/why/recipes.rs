//! The recipes in `examples/network-policies`: every answer is the expected one.

use serde_json::Value;

use crate::cli::program::{Tortie, fixture};

/// How many recipes there must be, so that none gets lost.
const LEAST: usize = 18;

#[test]
fn every_recipe_gives_the_expected_answers() {
    let folder = fixture("../../../../../examples/network-policies");
    let world = folder.join("world.yaml").display().to_string();
    let mut recipes = 0;
    for entry in std::fs::read_dir(&folder).unwrap() {
        let expected = entry.unwrap().path();
        let name = expected.file_name().unwrap().to_string_lossy().into_owned();
        let Some(name) = name.strip_suffix(".expected.jsonl") else {
            continue;
        };
        recipes += 1;
        let recipe = folder.join(format!("{name}.yaml")).display().to_string();
        let batch = expected.display().to_string();
        let arguments = [
            "why", "-f", &world, "-f", &recipe, "--batch", &batch, "-o", "json",
        ];
        let output = Tortie::with_variables(Vec::new()).run(&arguments);
        assert_eq!((output.code, &*output.stderr), (0, ""), "{name}");
        let parse = |line: &str| serde_json::from_str::<Value>(line).unwrap();
        let answers: Vec<Value> = output.stdout.lines().map(parse).collect();
        let flows = std::fs::read_to_string(&expected).unwrap();
        let flows: Vec<Value> = flows.lines().map(parse).collect();
        assert_eq!(answers.len(), flows.len(), "{name}");
        for (flow, answer) in flows.iter().zip(&answers) {
            assert_eq!(
                flow["expected"], answer["verdict"],
                "{name}: {flow}\n{answer}"
            );
        }
    }
    assert!(recipes >= LEAST, "only {recipes} recipes");
}
