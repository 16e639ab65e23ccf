//! `tortie get --watch`: what is there, and then each change.

use std::collections::BTreeMap;

use anyhow::{Result, bail};
use futures::StreamExt as _;
use tortie_api::{Kind, Resource};
use tortie_client::Client;
use tortie_store::{Change, Error, Event, Key, List, Query, Watch, watch_resumed};

use crate::args::Get;
use crate::commands::kinds;
use crate::output::{Form, Happened, Live};

/// What is followed, with the last state of each.
struct Followed {
    query: Query,
    names: Vec<String>,
    known: BTreeMap<Key, Resource>,
}

/// Goes on until an error ends it.
pub(super) async fn run(args: &Get, form: Form, client: &Client) -> Result<()> {
    let Some(word) = &args.kind else {
        bail!("say which kind of resource to watch, such as `tortie get networkpolicy --watch`");
    };
    let (kind, names) = kinds::parse_with_names(word, &args.names)?;
    let mut live = Live {
        context: super::context_of(&form, kind, client).await,
        form,
        kind,
        with_namespace: args.all_namespaces || args.namespace.is_some(),
        with_event: args.output_watch_events,
        widths: Vec::new(),
    };
    let mut followed = Followed {
        query: query(kind, &names, args)?,
        names,
        known: BTreeMap::new(),
    };
    let mut out = anstream::stdout().lock();
    let mut is_first = true;
    loop {
        let list = client.list(&followed.query).await?;
        let revision = list.revision.clone();
        let changes = followed.take_list(list);
        if is_first {
            followed.check_names()?;
        }
        if is_first || !changes.is_empty() {
            live.write(&changes, &mut out)?;
        }
        is_first = false;
        let mut watch = watch_resumed(client.store(), &followed.query, &revision).await?;
        follow(&mut watch, &mut followed, |change| {
            live.write(std::slice::from_ref(&change), &mut out)
        })
        .await?;
    }
}

/// Hands over each change, until all must be listed again.
async fn follow(
    watch: &mut Watch,
    followed: &mut Followed,
    mut tell: impl FnMut((Happened, Resource)) -> Result<()>,
) -> Result<()> {
    while let Some(event) = watch.next().await {
        let changed = match event {
            Ok(Event { change, .. }) => followed.take(change),
            Err(Error::Gone(_)) => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        if let Some(changed) = changed {
            tell(changed)?;
        }
    }
    Ok(())
}

fn query(kind: Kind, names: &[String], args: &Get) -> Result<Query> {
    if args.all_namespaces || !kind.is_namespaced() && names.len() != 1 {
        if args.namespace.is_some() {
            kinds::key(kind, "", args.namespace.as_deref())?;
        }
        return Ok(Query::all(kind));
    }
    if let [name] = names {
        let key = kinds::key(kind, name, args.namespace.as_deref())?;
        return Ok(Query::from(&key));
    }
    let namespace = args.namespace.as_deref().unwrap_or("default");
    Ok(Query::in_namespace(kind, namespace))
}

impl Followed {
    fn is_wanted(&self, key: &Key) -> bool {
        self.names.is_empty() || self.names.contains(&key.name)
    }

    /// Fails for a name that is not there.
    fn check_names(&self) -> Result<()> {
        let is_missing = |name: &&String| !self.known.keys().any(|key| key.name == **name);
        match self.names.iter().find(is_missing) {
            Some(name) => {
                let namespace = self.query.namespace.clone().unwrap_or_default();
                let key = Key::namespaced(self.query.kind, namespace, name);
                Err(Error::NotFound(key).into())
            }
            None => Ok(()),
        }
    }

    /// What is different from what was known.
    fn take_list(&mut self, list: List) -> Vec<(Happened, Resource)> {
        let mut gone = std::mem::take(&mut self.known);
        let mut changes = Vec::new();
        for mut resource in list.items {
            prepare(&mut resource);
            let key = Key::of(&resource);
            if !self.is_wanted(&key) {
                continue;
            }
            match gone.remove(&key) {
                Some(old) if old == resource => {}
                old => {
                    let happened = old.map_or(Happened::Added, |_| Happened::Modified);
                    changes.push((happened, resource.clone()));
                }
            }
            self.known.insert(key, resource);
        }
        let gone = gone.into_values();
        changes.extend(gone.map(|resource| (Happened::Deleted, resource)));
        changes
    }

    /// What happened; nothing if it is about something else.
    fn take(&mut self, change: Change) -> Option<(Happened, Resource)> {
        match change {
            Change::Put(mut resource) => {
                resource.set_read_defaults();
                prepare(&mut resource);
                let key = Key::of(&resource);
                if !self.is_wanted(&key) {
                    return None;
                }
                let old = self.known.insert(key, resource.clone());
                let happened = old.map_or(Happened::Added, |_| Happened::Modified);
                Some((happened, resource))
            }
            Change::Delete(key) => {
                let last = self.known.remove(&key)?;
                Some((Happened::Deleted, last))
            }
            Change::Invalid(invalid) => {
                tracing::warn!(object = %invalid.key, reason = invalid.reason, "An object cannot be read");
                let last = self.known.remove(&invalid.key)?;
                Some((Happened::Deleted, last))
            }
            Change::Bookmark => None,
        }
    }
}

fn prepare(resource: &mut Resource) {
    resource.metadata_mut().managed_fields = None;
}
