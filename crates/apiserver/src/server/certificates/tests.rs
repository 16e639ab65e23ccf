use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use super::*;

fn purpose(folder: &Path) -> Purpose {
    Purpose {
        folder: folder.join("pki"),
        url: "https://127.0.0.1:6443".to_owned(),
        names: Vec::new(),
    }
}

fn content(folder: &Path) -> BTreeMap<String, (u32, String)> {
    let entries = std::fs::read_dir(folder.join("pki")).unwrap();
    let read = |entry: std::io::Result<std::fs::DirEntry>| {
        let entry = entry.unwrap();
        let mode = entry.metadata().unwrap().permissions().mode() & 0o777;
        let text = std::fs::read_to_string(entry.path()).unwrap();
        (entry.file_name().into_string().unwrap(), (mode, text))
    };
    entries.map(read).collect()
}

#[test]
fn what_is_there_is_kept_and_secrets_are_private() {
    let folder = tempfile::tempdir().unwrap();
    let credentials = prepare(&purpose(folder.path())).unwrap();
    let first = content(folder.path());
    let modes: Vec<_> = first
        .iter()
        .map(|(name, (mode, _))| format!("{name} {mode:o}"))
        .collect();
    assert_eq!(
        modes,
        [
            "admin.crt 644",
            "admin.key 600",
            "ca.crt 644",
            "ca.key 600",
            "kubeconfig 600",
            "server.crt 644",
            "server.key 600",
            "service-account.key 600",
            "token 600"
        ]
    );
    assert_eq!(credentials.read_token().unwrap().len(), 64);
    assert_eq!(prepare(&purpose(folder.path())).unwrap(), credentials);
    assert_eq!(content(folder.path()), first);
}

#[track_caller]
fn check_changed(folder: &Path, before: &BTreeMap<String, (u32, String)>, expected: &[&str]) {
    let after = content(folder);
    let changed = after
        .iter()
        .filter(|(name, file)| before.get(*name) != Some(file));
    let changed: Vec<_> = changed.map(|(name, _)| name.as_str()).collect();
    assert_eq!(changed, expected);
}

#[test]
fn only_what_is_no_longer_right_is_made_anew() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let mut purpose = purpose(folder);
    prepare(&purpose).unwrap();

    let before = content(folder);
    purpose.names.push("192.0.2.7".to_owned());
    prepare(&purpose).unwrap();
    check_changed(folder, &before, &["server.crt", "server.key"]);

    let before = content(folder);
    std::fs::remove_file(purpose.folder.join("admin.key")).unwrap();
    prepare(&purpose).unwrap();
    check_changed(folder, &before, &["admin.crt", "admin.key", "kubeconfig"]);

    let before = content(folder);
    std::fs::write(purpose.folder.join("server.crt"), "broken").unwrap();
    prepare(&purpose).unwrap();
    check_changed(folder, &before, &["server.crt", "server.key"]);

    // A certificate of another authority.
    let other = tempfile::tempdir().unwrap();
    let theirs = prepare(&super::Purpose {
        folder: other.path().join("pki"),
        ..purpose.clone()
    });
    let theirs = theirs.unwrap();
    let before = content(folder);
    std::fs::copy(theirs.certificate, purpose.folder.join("server.crt")).unwrap();
    std::fs::copy(theirs.key, purpose.folder.join("server.key")).unwrap();
    prepare(&purpose).unwrap();
    check_changed(folder, &before, &["server.crt", "server.key"]);

    let before = content(folder);
    std::fs::remove_file(purpose.folder.join("ca.key")).unwrap();
    prepare(&purpose).unwrap();
    let all_but_the_token = before
        .keys()
        .map(String::as_str)
        .filter(|name| !matches!(*name, "service-account.key" | "token"));
    // The certificate that was there is kept beside the new one; a key of it there was none.
    let mut changed: Vec<_> = all_but_the_token.collect();
    let after = content(folder);
    let kept: Vec<_> = after
        .keys()
        .filter(|name| name.contains(".before-"))
        .collect();
    assert!(
        matches!(kept[..], [one] if one.starts_with("ca.crt.before-")),
        "{kept:?}"
    );
    changed.extend(kept.iter().map(|name| name.as_str()));
    changed.sort_unstable();
    check_changed(folder, &before, &changed);
}

fn years(count: i64) -> jiff::SignedDuration {
    jiff::SignedDuration::from_hours(count * 365 * 24)
}

#[test]
fn a_clock_that_is_behind_makes_nothing_void() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let mut purpose = purpose(folder);
    prepare(&purpose).unwrap();
    let before = content(folder);
    let past = Timestamp::now() - years(2);
    prepare_at(&purpose, past).unwrap();
    check_changed(folder, &before, &[]);

    // What is made meanwhile is good once the clock is right.
    purpose.names.push("192.0.2.7".to_owned());
    prepare_at(&purpose, past).unwrap();
    check_changed(folder, &before, &["server.crt", "server.key"]);
    let before = content(folder);
    prepare(&purpose).unwrap();
    check_changed(folder, &before, &[]);
}

#[test]
fn what_was_made_by_a_clock_that_was_behind_is_renewed() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let purpose = purpose(folder);
    prepare_at(&purpose, Timestamp::now() - years(3)).unwrap();
    let before = content(folder);
    prepare(&purpose).unwrap();
    let renewed = [
        "admin.crt",
        "admin.key",
        "kubeconfig",
        "server.crt",
        "server.key",
    ];
    check_changed(folder, &before, &renewed);
}

#[test]
fn an_authority_that_ends_is_kept_beside_the_new_one_whose_clients_are_let_in() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let purpose = purpose(folder);
    prepare(&purpose).unwrap();
    let before = content(folder);
    let clients = Authorities::from_pem(before["ca.crt"].1.as_bytes()).unwrap();
    let later = Timestamp::now() + years(10);
    renew(&purpose, &clients, later).unwrap();
    let after = content(folder);
    let date = later.strftime("%Y%m%dT%H%M%SZ");
    for name in ["ca.crt", "ca.key"] {
        let (mode, text) = &after[&format!("{name}.before-{date}")];
        assert_eq!((*mode, text), (0o600, &before[name].1), "{name}");
        assert_ne!(after[name].1, before[name].1, "{name}");
    }
    // The new one is in use already.
    assert!(!clients.replace(after["ca.crt"].1.as_bytes()).unwrap());
}

#[test]
fn certificates_name_users_and_groups() {
    let folder = tempfile::tempdir().unwrap();
    let credentials = prepare(&purpose(folder.path())).unwrap();
    let pem = std::fs::read(credentials.client_certificate).unwrap();
    let (_, pem) = x509_parser::pem::parse_x509_pem(&pem).unwrap();
    let user = crate::access::user_of_certificate(&pem.contents).unwrap();
    assert_eq!(user.name, "kubernetes-admin");
    assert!(user.is_administrator());
    assert_eq!(crate::access::user_of_certificate(b"nothing"), None);
}
