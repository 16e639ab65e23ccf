//! The embedded store: the contract, and what only a store in a file has to do.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::collections::BTreeMap;
use std::fs;
use std::future::{Ready, ready};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use futures::StreamExt;
use tempfile::TempDir;
use tortie_api::network_set::NetworkSetSpec;
use tortie_api::{NetworkSet, Resource};
use tortie_store::embedded::{DocumentKey, EmbeddedStore};
use tortie_store::{Change, Error, Key, Kind, Query, Revision, Store};
use tortie_store_contract::Subject;

/// Tells a child process which store to open.
const STORE: &str = "TORTIE_TEST_STORE";

fn setup(case: &str) -> Ready<(Subject, TempDir)> {
    let folder = tempfile::tempdir().unwrap();
    let store = EmbeddedStore::open(folder.path().join("store.redb")).unwrap();
    ready((Subject::new(store, case), folder))
}

mod contract {
    tortie_store_contract::store_contract!(super::setup);
}

fn set(name: &str, nets: usize) -> Resource {
    let nets = (0..nets)
        .map(|index| format!("10.0.{index}.0/24"))
        .collect();
    NetworkSet::new("ns", name, NetworkSetSpec { nets }).into()
}

fn document_key(name: &str) -> DocumentKey {
    DocumentKey::new("pods", "ns", name)
}

/// Runs one of the ignored functions below in a process of its own.
fn child(function: &str, store: &Path) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args([
            "--ignored",
            "--exact",
            &format!("embedded::{function}"),
            "--nocapture",
        ])
        .env(STORE, store)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

fn child_store() -> EmbeddedStore {
    EmbeddedStore::open(std::env::var_os(STORE).unwrap()).unwrap()
}

#[tokio::test]
async fn a_reopened_store_has_its_objects_and_goes_on_counting() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store");
    let store = EmbeddedStore::open(&path).unwrap();
    let created = store.create(set("a", 1)).await.unwrap();
    let before = store.list(&Query::all(Kind::NetworkSet)).await.unwrap();
    drop(store);

    let store = EmbeddedStore::open(&path).unwrap();
    let after = store.list(&Query::all(Kind::NetworkSet)).await.unwrap();
    assert_eq!(
        (after.items, after.revision),
        (before.items, before.revision.clone())
    );
    let updated = store.update(created).await.unwrap();
    let number = |text: &str| text.parse::<u64>().unwrap();
    assert_eq!(
        number(&updated.metadata().resource_version),
        number(&before.revision.0) + 1
    );
}

#[tokio::test]
async fn a_watch_goes_on_after_the_store_was_reopened() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store");
    let store = EmbeddedStore::open(&path).unwrap();
    let first = store.create(set("a", 1)).await.unwrap();
    store.create(set("b", 1)).await.unwrap();
    drop(store);

    let store = EmbeddedStore::open(&path).unwrap();
    let from = Revision(first.metadata().resource_version.clone());
    let mut watch = store
        .watch(&Query::all(Kind::NetworkSet), &from)
        .await
        .unwrap();
    store.create(set("c", 1)).await.unwrap();
    for expected in ["b", "c"] {
        match watch.next().await.unwrap().unwrap().change {
            Change::Put(resource) => assert_eq!(resource.metadata().name, expected),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn the_file_and_its_folder_are_for_the_owner_only() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("new/store");
    let _store = EmbeddedStore::open(&path).unwrap();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&path), mode(path.parent().unwrap())), (0o600, 0o700));
}

#[test]
fn a_second_process_is_told_that_the_store_is_in_use() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store");
    let mut child = child("hold_the_store", &path);
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap().ends_with("holding")));

    let message = EmbeddedStore::open(&path).unwrap_err().to_string();
    assert!(
        message.contains(&format!("is open in process {}", child.id())),
        "{message}"
    );
    assert!(message.contains(path.to_str().unwrap()), "{message}");
    child.kill().unwrap();
    child.wait().unwrap();
    EmbeddedStore::open(&path).unwrap();
}

#[test]
#[ignore = "is run by another test, in a process of its own"]
fn hold_the_store() {
    let _store = child_store();
    println!("\nholding");
    std::io::stdin().lines().for_each(drop);
    std::thread::park();
}

#[tokio::test]
async fn a_kill_during_writes_loses_nothing_that_was_answered() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store");
    for round in 1..=3 {
        let mut child = child("write_until_killed", &path);
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut answered = BTreeMap::new();
        let mut note = |line: String| {
            if let Some((name, nets)) = line
                .strip_prefix("wrote ")
                .and_then(|rest| rest.split_once(' '))
            {
                answered.insert(name.to_owned(), nets.parse::<usize>().unwrap());
            }
        };
        for line in lines.by_ref().take(200 * round) {
            note(line.unwrap());
        }
        child.kill().unwrap();
        child.wait().unwrap();
        // What was answered before the kill may still be in the pipe; its last line may be torn.
        let rest: Vec<String> = lines.map_while(Result::ok).collect();
        rest.into_iter().rev().skip(1).rev().for_each(note);

        let store = EmbeddedStore::open(&path).unwrap();
        assert!(answered.len() > 1);
        for (name, written) in answered {
            let key = Key::namespaced(Kind::NetworkSet, "ns", &name);
            let found = NetworkSet::try_from(store.get(&key).await.unwrap()).unwrap();
            assert!(found.spec.nets.len() >= written, "{name}: {written}");
            let document = store.documents().get(&document_key(&name)).unwrap();
            let stored: usize = str::from_utf8(&document.json).unwrap().parse().unwrap();
            assert!(stored >= written, "{name}: {written}, document: {stored}");
        }
        let list = store.list(&Query::all(Kind::NetworkSet)).await.unwrap();
        assert!(list.invalid.is_empty());
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "is run by another test, in a process of its own"]
async fn write_until_killed() {
    let store = Arc::new(child_store());
    println!();
    let writers = (0..8).map(|writer| {
        let store = Arc::clone(&store);
        tokio::spawn(async move {
            for round in 0.. {
                let name = format!("{}-{writer}-{round}", std::process::id());
                let mut resource = store.create(set(&name, 1)).await.unwrap();
                let (documents, key) = (store.documents(), document_key(&name));
                let mut revision = documents.create(key.clone(), *b"1").await.unwrap();
                for nets in 2..20 {
                    let Resource::NetworkSet(object) = &mut resource else {
                        unreachable!()
                    };
                    object.spec.nets.push(format!("10.1.{nets}.0/24"));
                    resource = store.update(resource).await.unwrap();
                    let json = nets.to_string().into_bytes();
                    let updated = documents.update(key.clone(), json, revision).await;
                    revision = updated.unwrap();
                    writeln!(std::io::stdout(), "wrote {name} {nets}").unwrap();
                }
            }
        })
    });
    futures::future::join_all(writers).await;
}

#[track_caller]
fn check_refused(content: &[u8]) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store");
    fs::write(&path, content).unwrap();
    let message = EmbeddedStore::open(&path).unwrap_err().to_string();
    assert!(
        message.contains("is not a store of tortie, or is damaged"),
        "{message}"
    );
    assert!(message.contains(path.to_str().unwrap()), "{message}");
    assert_eq!(fs::read(&path).unwrap(), content, "the file was changed");
}

#[test]
fn files_of_others_are_refused_and_left_alone() {
    check_refused(b"apiVersion: v1\n");
    check_refused(&[0; 10_000]);
    check_refused(&b"nonsense".repeat(10_000));
}

#[test]
fn a_redb_file_of_another_program_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store");
    let database = redb::Database::create(&path).unwrap();
    let txn = database.begin_write().unwrap();
    txn.open_table(redb::TableDefinition::<u64, u64>::new("other"))
        .unwrap();
    txn.commit().unwrap();
    drop(database);
    let message = EmbeddedStore::open(&path).unwrap_err().to_string();
    assert!(message.contains("is not a store of tortie"), "{message}");
}

#[test]
fn a_file_of_a_later_version_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store");
    drop(EmbeddedStore::open(&path).unwrap());
    let database = redb::Database::create(&path).unwrap();
    let txn = database.begin_write().unwrap();
    let meta = redb::TableDefinition::<&str, u64>::new("meta");
    txn.open_table(meta).unwrap().insert("format", 2).unwrap();
    txn.commit().unwrap();
    drop(database);
    let message = EmbeddedStore::open(&path).unwrap_err().to_string();
    assert!(
        message.contains("has format 2, and this version reads only 1"),
        "{message}"
    );
}

#[tokio::test]
async fn a_truncated_file_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store");
    let store = EmbeddedStore::open(&path).unwrap();
    for index in 0..50 {
        store
            .create(set(&format!("set-{index}"), 100))
            .await
            .unwrap();
    }
    drop(store);
    let whole = fs::read(&path).unwrap();
    check_refused(&whole[..whole.len() / 2]);
}

#[tokio::test]
async fn names_with_a_nul_are_refused() {
    let store = setup("nul").await;
    let result = store.0.store.create(set("a\0b", 1)).await;
    assert!(matches!(result, Err(Error::Invalid { .. })), "{result:?}");
    let key = Key::namespaced(Kind::NetworkSet, "ns", "a\0b");
    assert!(matches!(
        store.0.store.get(&key).await,
        Err(Error::NotFound(_))
    ));
}
