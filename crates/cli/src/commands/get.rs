//! `tortie get`

mod watch;

use std::cmp::Ordering;
use std::io::Write as _;
use std::process::ExitCode;

use anyhow::{Result, bail};
use tortie_api::columns::TableContext;
use tortie_api::{Kind, Resource};
use tortie_client::Client;
use tortie_store::{Key, Query};

use super::{kinds, report};
use crate::args::Get;
use crate::input;
use crate::output::{Form, Shown};

/// The word for every kind.
const ALL: &str = "all";

/// Kinds that address management keeps for itself.
const IPAM_KINDS: [Kind; 3] = [Kind::BlockAffinity, Kind::IpamBlock, Kind::IpamHandle];

pub(super) async fn run(args: Get, client: &Client) -> Result<ExitCode> {
    let form = Form::parse(&args.output)?;
    if args.watch {
        watch::run(&args, form, client).await?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut shown = if args.kind.as_deref() == Some(ALL) {
        find_all(client, &args).await?
    } else if args.filename.is_empty() {
        let Some(word) = &args.kind else {
            bail!(
                "say which kind of resource to show, such as `tortie get networkpolicy`, or give -f"
            );
        };
        let (kind, names) = kinds::parse_with_names(word, &args.names)?;
        find(client, kind, &names, &args).await?
    } else {
        find_in_files(client, &args).await?
    };
    if let Some(kind) = shown.kind {
        shown.context = context_of(&form, kind, client).await;
    }
    for resource in &mut shown.resources {
        resource.metadata_mut().managed_fields = None;
    }
    if args.export {
        shown.resources.iter_mut().for_each(strip_cluster_fields);
    }
    let mut out = std::io::BufWriter::new(anstream::stdout().lock());
    form.write(&shown, &mut out)?;
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}

async fn find(client: &Client, kind: Kind, names: &[String], args: &Get) -> Result<Shown> {
    let mut shown = Shown {
        kind: Some(kind),
        resources: Vec::new(),
        list_revision: None,
        with_namespace: args.all_namespaces || args.namespace.is_some(),
        context: TableContext::default(),
    };
    if names.is_empty() {
        if !kind.is_namespaced() && args.namespace.is_some() {
            kinds::key(kind, "", args.namespace.as_deref())?;
        }
        let query = if kind.is_namespaced() && !args.all_namespaces {
            Query::in_namespace(kind, args.namespace.as_deref().unwrap_or("default"))
        } else {
            Query::all(kind)
        };
        let list = client.list(&query).await?;
        for invalid in &list.invalid {
            writeln!(
                anstream::stderr(),
                "warning: {} is left out: {}",
                invalid.key,
                invalid.reason
            )?;
        }
        shown.resources = list.items;
        if kind == Kind::Tier {
            shown.resources.sort_by(by_order);
        }
        shown.list_revision = Some(list.revision.0);
        return Ok(shown);
    }
    if args.all_namespaces && kind.is_namespaced() {
        let all = client.list(&Query::all(kind)).await?.items;
        for name in names {
            let before = shown.resources.len();
            shown
                .resources
                .extend(all.iter().filter(|r| r.metadata().name == *name).cloned());
            if shown.resources.len() == before {
                bail!("resource does not exist: {kind}({name}) in any namespace");
            }
        }
        return Ok(shown);
    }
    for name in names {
        let key = kinds::key(kind, name, args.namespace.as_deref())?;
        shown.resources.push(client.get(&key).await?);
    }
    Ok(shown)
}

/// The resources of every kind that people write or look at.
async fn find_all(client: &Client, args: &Get) -> Result<Shown> {
    if !args.names.is_empty() {
        bail!("`all` means every resource of every kind; names need a kind");
    }
    let mut shown = Shown {
        kind: None,
        resources: Vec::new(),
        list_revision: None,
        with_namespace: args.all_namespaces || args.namespace.is_some(),
        context: TableContext::default(),
    };
    for kind in Kind::ALL.iter().copied() {
        if IPAM_KINDS.contains(&kind) || (args.namespace.is_some() && !kind.is_namespaced()) {
            continue;
        }
        match find(client, kind, &[], args).await {
            Ok(found) => shown.resources.extend(found.resources),
            Err(error) if is_unsupported(&error) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(shown)
}

/// Whether the datastore has no resources of such a kind.
fn is_unsupported(error: &anyhow::Error) -> bool {
    let error = error.downcast_ref::<tortie_store::Error>();
    matches!(error, Some(tortie_store::Error::Unsupported { .. }))
}

/// Tiers in the order in which they are asked; one without an order is the last.
fn by_order(one: &Resource, other: &Resource) -> Ordering {
    let order = |resource: &Resource| match resource {
        Resource::Tier(tier) => tier.spec.order.unwrap_or(f64::INFINITY),
        _ => f64::INFINITY,
    };
    order(one).total_cmp(&order(other))
}

async fn find_in_files(client: &Client, args: &Get) -> Result<Shown> {
    let mut resources = Vec::new();
    for document in input::read_all(&args.filename, args.recursive, false)? {
        let wanted = document
            .decode(args.namespace.as_deref())
            .map_err(|problems| {
                let (origin, name) = (&document.origin, document.name());
                anyhow::anyhow!(report::problem_lines_of(origin, &name, &problems))
            })?;
        resources.push(client.get(&Key::of(&wanted)).await?);
    }
    let with_namespace = args.namespace.is_some();
    Ok(Shown {
        kind: None,
        resources,
        list_revision: None,
        with_namespace,
        context: TableContext::default(),
    })
}

/// What the cells of a table depend on: the AS number that nodes without one of their own have.
async fn context_of(form: &Form, kind: Kind, client: &Client) -> TableContext {
    if !matches!(form, Form::Table { wide: true }) || kind != Kind::Node {
        return TableContext::default();
    }
    let as_number = match client
        .get(&Key::global(Kind::BgpConfiguration, "default"))
        .await
    {
        Ok(Resource::BgpConfiguration(config)) => config.spec.as_number,
        _ => None,
    };
    TableContext { as_number }
}

/// Removes what would not make sense in another cluster.
fn strip_cluster_fields(resource: &mut Resource) {
    let metadata = resource.metadata_mut();
    metadata.namespace.clear();
    metadata.uid.clear();
    metadata.resource_version.clear();
    metadata.creation_timestamp = None;
    metadata.deletion_timestamp = None;
    metadata.deletion_grace_period_seconds = None;
    metadata.generation = None;
}
