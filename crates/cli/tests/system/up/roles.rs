//! Users other than the administrator: what they are given, what they may do, and what not.

mod credentials;
mod escalation;
mod objects;
mod reviews;
mod rights;
mod tokens;

use std::path::PathBuf;

use serde_json::{Value, json};

use crate::up::server::Up;

/// Somebody with a kubeconfig.
struct Person<'a> {
    up: &'a Up,
    file: PathBuf,
}

impl<'a> Person<'a> {
    fn new(up: &'a Up, user: &str, more: &[&str]) -> Self {
        let file = up
            .folder()
            .join(format!("{}.kubeconfig", user.replace(':', "-")));
        let output = file.to_str().unwrap();
        let arguments = ["kubeconfig", "--user", user, "--output", output];
        up.tortie(&[&arguments, more].concat());
        Self { up, file }
    }

    fn arguments<'b>(&'b self, arguments: &[&'b str]) -> Vec<&'b str> {
        let own = ["--kubeconfig", self.file.to_str().unwrap()];
        [&own, arguments].concat()
    }

    /// What `kubectl` prints for this one, which must succeed.
    #[track_caller]
    fn kubectl(&self, arguments: &[&str]) -> String {
        self.up.kubectl(&self.arguments(arguments))
    }

    #[track_caller]
    fn create(&self, object: &Value) {
        let arguments = self.arguments(&["create", "--filename=-"]);
        self.up.kubectl_with(&arguments, &object.to_string());
    }

    /// A refusal that says this.
    #[track_caller]
    fn refused(&self, arguments: &[&str], text: &str) {
        self.refused_with(arguments, &Value::Null, text);
    }

    #[track_caller]
    fn refused_with(&self, arguments: &[&str], object: &Value, text: &str) {
        let input = if object.is_null() {
            String::new()
        } else {
            object.to_string()
        };
        let told = self.up.refusal(&self.arguments(arguments), &input);
        assert!(told.contains(text), "{told:?} has no {text:?}");
    }

    /// The answer to `kubectl auth can-i`.
    #[track_caller]
    fn can(&self, arguments: &[&str]) -> bool {
        let arguments = [&["auth", "can-i"], arguments].concat();
        let output = self.up.try_kubectl(&self.arguments(&arguments), "");
        match output.stdout.trim() {
            "yes" => true,
            answer if answer.starts_with("no") => false,
            _ => panic!("{output:?}"),
        }
    }
}

/// A policy of Calico's in a tier.
fn policy(tier: &str, namespace: &str, name: &str) -> Value {
    json!({
        "apiVersion": "projectcalico.org/v3", "kind": "NetworkPolicy",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"tier": tier, "selector": "all()"},
    })
}

fn config_map(namespace: &str, name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": namespace}})
}
