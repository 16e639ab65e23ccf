//! The kustomize base is what the chart makes if nothing is set.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::{assert_same, comparable, deploy, output, render};

#[test]
fn the_base_is_up_to_date() {
    let rendered = render(&[]);
    let objects = [&rendered.namespace].into_iter().chain(&rendered.objects);
    holds(&deploy("kustomize/base/tortie.yaml"), objects);
    holds(
        &deploy("kustomize/crds/projectcalico.org.yaml"),
        &rendered.definitions,
    );
}

#[test]
fn kubectl_makes_the_same_of_the_base() {
    let mut kubectl = Command::new("kubectl");
    let text = output(kubectl.arg("kustomize").arg(deploy("kustomize/base")));
    let theirs = tortie_api::yaml::parse(&text).unwrap();
    let rendered = render(&[]);
    assert_same(&comparable(rendered.all()), &comparable(&theirs));
}

/// Writes beside the file what should be in it, if that is not so.
#[track_caller]
fn holds<'a>(file: &Path, objects: impl IntoIterator<Item = &'a Value>) {
    let documents = objects
        .into_iter()
        .map(|object| format!("---\n{}", tortie_install::to_yaml(object).unwrap()));
    let want: String = documents.collect();
    if std::fs::read_to_string(file).ok().as_deref() != Some(want.as_str()) {
        let new = file.with_extension("yaml.new");
        std::fs::write(&new, want).unwrap();
        panic!(
            "{} is not what the chart makes: compare it with {}",
            file.display(),
            new.display()
        );
    }
}
