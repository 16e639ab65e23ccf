//! `tortie why`.

mod addresses;
mod batch;
mod datastore;
mod files;
mod hosts;
mod kernels;
mod listing;
mod names;
mod output;
mod recipes;
mod recording;
mod services;

use serde_json::Value;

use crate::cli::program::{Output, Tortie};

/// Two namespaces with pods, and a policy: only the API may use the shop's database.
const SHOP: &str = "\
apiVersion: v1
kind: Namespace
metadata: {name: shop, labels: {project: shop}}
---
apiVersion: v1
kind: Pod
metadata: {name: api, namespace: shop, labels: {app: api}}
spec: {nodeName: n1, containers: [{name: c, image: i}]}
status: {phase: Running, podIP: 10.0.0.1, podIPs: [{ip: 10.0.0.1}, {ip: 'fd01::1'}]}
---
apiVersion: v1
kind: Pod
metadata: {name: db, namespace: shop, labels: {app: db}}
spec: {nodeName: n1, containers: [{name: c, image: i}]}
status: {phase: Running, podIP: 10.0.0.2, podIPs: [{ip: 10.0.0.2}, {ip: 'fd01::2'}]}
---
apiVersion: v1
kind: Pod
metadata: {name: api, namespace: blog, labels: {app: api}}
spec: {nodeName: n2, containers: [{name: c, image: i}]}
status: {phase: Running, podIP: 10.0.0.3, podIPs: [{ip: 10.0.0.3}]}
---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: db, namespace: shop}
spec:
  podSelector: {matchLabels: {app: db}}
  ingress:
  - from: [{podSelector: {matchLabels: {app: api}}}]
    ports: [{protocol: TCP, port: 5432}]
";

/// Asks about a world given as YAML.
fn ask(world: &str, arguments: &[&str]) -> Output {
    let arguments: Vec<&str> = ["why", "-f", "-"]
        .iter()
        .chain(arguments)
        .copied()
        .collect();
    Tortie::with_variables(Vec::new()).run_with_input(&arguments, world)
}

/// Asks, and expects an exit code.
#[track_caller]
fn ask_for(code: i32, world: &str, arguments: &[&str]) -> Output {
    let output = ask(world, arguments);
    let shown = format!("{arguments:?}\n{}{}", output.stdout, output.stderr);
    assert_eq!(output.code, code, "{shown}");
    output
}

/// Asks, and expects the connection to be allowed.
#[track_caller]
fn allowed(world: &str, arguments: &[&str]) -> String {
    ask_for(0, world, arguments).stdout
}

/// Asks, and expects the connection to be denied.
#[track_caller]
fn denied(world: &str, arguments: &[&str]) -> String {
    ask_for(2, world, arguments).stdout
}

/// Asks, and expects an error with these pieces, on a line without anything on stdout.
#[track_caller]
fn refused(world: &str, arguments: &[&str], pieces: &[&str]) {
    let output = ask_for(1, world, arguments);
    assert_eq!(output.stdout, "", "{arguments:?}");
    for piece in pieces {
        let stderr = &output.stderr;
        assert!(stderr.contains(piece), "no `{piece}` in\n{stderr}");
    }
}

/// Asks for JSON, with an exit code.
#[track_caller]
fn json(code: i32, world: &str, arguments: &[&str]) -> Value {
    let arguments: Vec<&str> = arguments.iter().chain(&["-o", "json"]).copied().collect();
    serde_json::from_str(&ask_for(code, world, &arguments).stdout).unwrap()
}

/// A pod as a cluster gives it.
fn pod(name: &str, node: &str, addresses: &[&str], more: &str) -> String {
    let (namespace, name) = name.split_once('/').unwrap();
    let ips: Vec<String> = addresses.iter().map(|a| format!("{{ip: '{a}'}}")).collect();
    let first = addresses.first().copied().unwrap_or_default();
    format!(
        "---\napiVersion: v1\nkind: Pod\nmetadata: {{name: {name}, namespace: {namespace}, labels: {{app: {name}}}}}\n\
         spec: {{nodeName: {node}, containers: [{{name: c, image: i}}]{more}}}\n\
         status: {{phase: Running, podIP: '{first}', podIPs: [{}]}}\n",
        ips.join(", ")
    )
}

/// A policy that denies all connections to the pods of a namespace.
fn deny_all(namespace: &str) -> String {
    format!(
        "---\napiVersion: networking.k8s.io/v1\nkind: NetworkPolicy\nmetadata: {{name: deny, namespace: {namespace}}}\n\
         spec: {{podSelector: {{}}, policyTypes: [Ingress]}}\n"
    )
}
