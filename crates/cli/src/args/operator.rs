//! Arguments of `operator`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

const EXAMPLES: &str = "\
Examples:
  tortie operator new shop-guard --kind ShopGuard --framework ~/tortie
  tortie operator new shop-guard --kind ShopGuard --group ops.example.com --dir ~/src/shop-guard

The project is a complete operator that builds and passes its test: a custom resource, its controller, admission webhooks
and manifests for kustomize. It does something useful already, which you replace by what you need.";

/// Arguments of `operator`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Operator {
    #[command(subcommand)]
    pub(crate) command: OperatorCommand,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum OperatorCommand {
    /// Write a new operator's project.
    #[command(after_help = EXAMPLES)]
    New(OperatorNew),
}

/// Arguments of `operator new`.
#[derive(Debug, Args)]
pub(crate) struct OperatorNew {
    /// Name of the project, of its program and of its namespace: lower case letters, digits and `-`.
    pub(crate) name: String,
    /// Kind of the custom resource, in camel case.
    #[arg(long, value_name = "KIND")]
    pub(crate) kind: String,
    /// Group of the custom resource.
    #[arg(long, value_name = "GROUP", default_value = "example.tortie.dev")]
    pub(crate) group: String,
    /// Folder of Tortie's sources, which the project builds on [default: the checkout that the project is in].
    #[arg(long, value_name = "FOLDER")]
    pub(crate) framework: Option<PathBuf>,
    /// Folder of the project, empty or not there yet [default: the name].
    #[arg(long, value_name = "FOLDER")]
    pub(crate) dir: Option<PathBuf>,
}
