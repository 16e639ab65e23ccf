//! `tortie install`

mod text;

use std::io::Write as _;
use std::process::ExitCode;

use anyhow::{Context as _, Result, bail};
use serde_json::{Value, json};
use tortie_install::apply::{self, Options, Outcome};
use tortie_install::cluster::Cluster;
use tortie_install::{Chart, Release, Rendered, Values};

use crate::args::{Global, Install, InstallOutput};
use crate::config::cluster;

pub(super) async fn run(args: &Install, global: &Global) -> Result<ExitCode> {
    if args.show_values {
        anstream::stdout().write_all(tortie_install::DEFAULTS.as_bytes())?;
        return Ok(ExitCode::SUCCESS);
    }
    if args.output == InstallOutput::Yaml {
        if !args.dry_run {
            bail!("-o yaml prints what would be installed: give --dry-run too");
        }
        return print(&render(args, None)?);
    }
    let client = cluster(None, global).await?;
    let found = Cluster::examine(&client).await;
    let found = found.context("the cluster cannot be examined")?;
    let rendered = render(args, Some(&found))?;
    let mut out = anstream::stdout();
    write!(out, "{}", text::found(&found))?;
    refuse_other_networks(&found, &args.namespace)?;
    let is_complete = put(&client, args, &rendered).await?;
    if args.dry_run {
        writeln!(out, "Nothing was stored.")?;
        return Ok(code(is_complete));
    }
    if !is_complete {
        bail!("not all of it could be stored: see above");
    }
    if args.no_wait {
        return Ok(ExitCode::SUCCESS);
    }
    let tell = |progress: &apply::Progress| text::tell_progress(progress);
    let done = apply::await_pods(&client, &args.namespace, args.timeout, tell).await;
    let done = done.with_context(|| text::where_to_look(&args.namespace))?;
    writeln!(out, "{}", text::ready(&done))?;
    Ok(ExitCode::SUCCESS)
}

fn code(is_well: bool) -> ExitCode {
    if is_well {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

/// The objects: what the cluster has decides where nothing else is said.
fn render(args: &Install, found: Option<&Cluster>) -> Result<Rendered> {
    let mut files = Vec::new();
    if let Some(group) = found.and_then(|found| found.api_group) {
        let known = json!({"datastore": {"apiGroup": group}}).to_string();
        files.push(("the cluster".to_owned(), known));
    }
    for file in &args.files {
        let name = file.display().to_string();
        let text =
            std::fs::read_to_string(file).with_context(|| format!("{name} cannot be read"))?;
        files.push((name, text));
    }
    let files = files
        .iter()
        .map(|(name, text)| (name.as_str(), text.as_str()));
    let values = Values::new(files, args.set.iter().map(String::as_str))?;
    let group = found.and_then(|found| found.api_group);
    if let Some(group) = group.filter(|group| *group != values.datastore.api_group) {
        bail!(
            "datastore.apiGroup: {} was given, and the cluster has its resources in {}: what is there would not be seen",
            values.datastore.api_group.definitions().name(),
            group.definitions().name()
        );
    }
    let release = Release {
        namespace: args.namespace.clone(),
    };
    Ok(Chart::new()?.render(&values, &release)?)
}

/// Two networks on one node would undo each other's work, and an installation in two namespaces too.
fn refuse_other_networks(found: &Cluster, namespace: &str) -> Result<()> {
    if let Some(other) = &found.other_network {
        bail!(
            "{other} is another network ({}): take it out of the cluster first",
            other.image
        );
    }
    match &found.installed {
        Some(ours) if ours.namespace != namespace => bail!(
            "{ours} is there already: give --namespace {} to change it",
            ours.namespace
        ),
        _ => Ok(()),
    }
}

fn print(rendered: &Rendered) -> Result<ExitCode> {
    let mut out = std::io::BufWriter::new(anstream::stdout().lock());
    for object in rendered.all() {
        write!(out, "---\n{}", tortie_install::to_yaml(object)?)?;
    }
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}

/// Stores all objects, or tries it, and says what became of each. Gives whether that was possible with all.
async fn put(client: &kube::Client, args: &Install, rendered: &Rendered) -> Result<bool> {
    let options = Options {
        is_dry_run: args.dry_run,
        takes_over_fields: args.force_conflicts,
    };
    let mut tally = text::Tally::default();
    tally
        .add(client, std::slice::from_ref(&rendered.namespace), options)
        .await?;
    tally.add(client, &rendered.definitions, options).await?;
    let has_new = tally.count(Outcome::Created) > 0;
    if has_new && !args.dry_run {
        let names = rendered
            .definitions
            .iter()
            .filter_map(|one| one["metadata"]["name"].as_str());
        let names: Vec<String> = names.map(ToOwned::to_owned).collect();
        apply::await_definitions(client, &names, args.timeout).await?;
    }
    tally.add(client, &rendered.objects, options).await?;
    tally.finish(args.dry_run)
}

/// What an object is called in the list of what was done.
fn kind_of(object: &Value) -> &str {
    object["kind"].as_str().unwrap_or("")
}
