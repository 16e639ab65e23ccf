//! However the datastore is named: what is rolled back is in that one, and never in the one that would be used without.

use std::process::{Child, Command, Stdio};

use tortie_testkit::Etcd;

use crate::confirm::site::{AFTER, BEFORE, ROLLED_BACK, Site, until};

/// Rolls back in the datastore of a site, while the usual one holds policies of the same names.
#[track_caller]
fn check(site: &Site) {
    let other = site.without_datastore();
    other.apply(AFTER);
    let others = other.resources();
    site.apply(BEFORE);
    let before = site.resources();
    assert_ne!(before, others);
    let output = site.apply_with_confirm("1", AFTER).end();
    assert_eq!(output.code, 1, "{output:?}");
    assert!(output.stderr.ends_with(ROLLED_BACK), "{output:?}");
    assert_eq!(site.resources(), before, "{output:?}");
    assert_eq!(other.resources(), others, "{output:?}");
}

#[test]
fn by_a_folder() {
    check(&Site::named(&["--data-dir", "{}/data"], &[]));
    check(&Site::named(&[], &[("TORTIE_DATA_DIR", "{}/data")]));
}

#[test]
fn by_a_file() {
    check(&Site::named(&["--data-file", "{}/data.redb"], &[]));
    check(&Site::named(&[], &[("TORTIE_DATA_FILE", "{}/data.redb")]));
}

#[test]
fn by_a_configuration_file() {
    let etcd = Etcd::start().unwrap();
    let site = Site::named(&["--config", "{}/calicoctl.cfg"], &[]);
    let text = format!(
        "apiVersion: projectcalico.org/v3\nkind: CalicoAPIConfig\nmetadata:\nspec:\n  datastoreType: etcdv3\n  etcdEndpoints: {}\n",
        etcd.endpoint()
    );
    std::fs::write(site.folder().join("calicoctl.cfg"), text).unwrap();
    check(&site);
}

#[test]
fn through_the_process_that_has_it_open() {
    let site = Site::named(&["--data-dir", "{}/data"], &[]);
    let mut up = up(&site);
    check(&site);
    up.kill().unwrap();
    up.wait().unwrap();
}

#[test]
fn another_datastore_in_the_same_place_is_left_alone() {
    let site = Site::named(&["--data-dir", "{}/data"], &[]);
    site.apply(BEFORE);
    let waiting = site.apply_with_confirm("600", AFTER);
    let (data, aside) = (site.folder().join("data"), site.folder().join("aside"));
    std::fs::rename(&data, &aside).unwrap();
    site.apply(AFTER);
    let other = site.resources();
    waiting.signal("INT");
    let output = waiting.end();
    assert_eq!(output.code, 3, "{output:?}");
    assert!(
        output
            .stderr
            .contains("this is not the datastore that was written to"),
        "{output:?}"
    );
    assert_eq!(site.resources(), other);
    std::fs::remove_dir_all(&data).unwrap();
    std::fs::rename(&aside, &data).unwrap();
    site.ok(&["confirm", "--roll-back"]);
    assert_eq!(
        site.ok(&["get", "gnp", "-o", "name"]),
        "globalnetworkpolicy/kept\n"
    );
}

/// A `tortie up` on the datastore of a site, without what would change the kernel.
pub(crate) fn up(site: &Site) -> Child {
    let arguments = [
        "up",
        "--listen=127.0.0.1:0",
        "--node=n1",
        "--without=agent",
        "--without=controllers",
    ];
    let name_file = site.folder().join("nodename");
    let mut command: Command = site.command(&arguments);
    let command = command
        .env("CALICO_NODENAME_FILE", name_file)
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let up = command.spawn().unwrap();
    let socket = site.folder().join("data/tortie.sock");
    until("the socket", || socket.exists().then_some(()));
    up
}
