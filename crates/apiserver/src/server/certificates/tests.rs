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
        .filter(|name| *name != "token");
    check_changed(folder, &before, &all_but_the_token.collect::<Vec<_>>());
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
