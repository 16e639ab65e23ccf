//! Running another plugin.

use std::path::PathBuf;
use std::process::Stdio;

use serde_json::Value;
use tokio::io::AsyncWriteExt as _;
use tortie_variables as variables;

use crate::context::Context;
use crate::error::{Code, Error, Result};
use crate::request::Command;
use crate::result::CniResult;

/// Runs the IPAM plugin that the configuration names. Only ADD has a result.
pub(super) async fn run(
    context: &Context<'_>,
    command: Command,
    config: &Value,
) -> Result<Option<CniResult>> {
    let plugin = context.config.ipam.r#type.as_str();
    let program = find(context, plugin)?;
    let failed = |doing: &str| {
        let message = format!("the IPAM plugin {} cannot be {doing}", program.display());
        Error::of(Code::Address, message)
    };
    let request = context.request;
    let mut child = tokio::process::Command::new(&program)
        .env(variables::CNI_COMMAND, name(command))
        .env(variables::CNI_CONTAINERID, &request.container_id)
        .env(variables::CNI_NETNS, &request.namespace)
        .env(variables::CNI_IFNAME, &request.interface)
        .env(variables::CNI_ARGS, request.arguments.for_delegate())
        .env(
            variables::CNI_PATH,
            std::env::join_paths(&request.path).unwrap_or_default(),
        )
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit())
        .kill_on_drop(true)
        .spawn()
        .map_err(failed("started"))?;
    let input = config.to_string();
    if let Some(mut stdin) = child.stdin.take() {
        // It may end without reading; its status tells whether that was an error.
        let _ = stdin.write_all(input.as_bytes()).await;
    }
    let output = child.wait_with_output().await.map_err(failed("heard"))?;
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
    if !output.status.success() {
        let text = |key: &str| answer.get(key).and_then(Value::as_str).unwrap_or_default();
        let message = match (text("msg"), text("details")) {
            ("", _) => format!("it ended with {}", output.status),
            (message, "") => message.to_owned(),
            (message, details) => format!("{message}: {details}"),
        };
        let message = format!("the IPAM plugin `{plugin}` failed: {message}");
        return Err(Error::new(Code::Address, message));
    }
    if command != Command::Add {
        return Ok(None);
    }
    CniResult::parse(&answer).map(Some).map_err(|error| {
        let message = format!("the IPAM plugin `{plugin}` gave what is no result: {error}");
        Error::new(Code::Address, message)
    })
}

fn find(context: &Context<'_>, plugin: &str) -> Result<PathBuf> {
    let is_name = !plugin.is_empty() && !plugin.contains('/');
    let mut candidates = context
        .request
        .path
        .iter()
        .map(|folder| folder.join(plugin));
    let found = is_name.then(|| candidates.find(|path| path.is_file()));
    found.flatten().ok_or_else(|| {
        let folders: Vec<String> = context
            .request
            .path
            .iter()
            .map(|folder| folder.display().to_string())
            .collect();
        let message = format!(
            "network configuration: `ipam.type` is `{plugin}`, and there is no such plugin in CNI_PATH ({})",
            folders.join(":")
        );
        Error::new(Code::InvalidConfig, message)
    })
}

fn name(command: Command) -> &'static str {
    match command {
        Command::Add => "ADD",
        Command::Del => "DEL",
        Command::Check => "CHECK",
        Command::Version => "VERSION",
        Command::Status => "STATUS",
        Command::Gc => "GC",
    }
}
