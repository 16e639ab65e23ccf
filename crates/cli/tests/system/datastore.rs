//! Moving a datastore from etcd to Kubernetes, with the program as a user runs it.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[path = "../it/cli/program.rs"]
#[expect(dead_code, reason = "other tests use more of it")]
mod program;
mod setting;

use tortie_api::crd::Group;
use tortie_store::Kind;
use tortie_testkit::KubeApiServer;

use program::Tortie;
use setting::{Source, Target};

#[test]
fn everything_in_etcd_comes_to_kubernetes_in_the_older_group() {
    moves(Group::V1);
}

#[test]
fn everything_in_etcd_comes_to_kubernetes_in_the_newer_group() {
    moves(Group::V3);
}

fn moves(group: Group) {
    let source = Source::start();
    let refused = source.tortie.run(&["datastore", "migrate", "export"]);
    assert_eq!(refused.code, 1);
    assert!(
        refused.stderr.contains("datastore is not locked"),
        "{}",
        refused.stderr
    );
    assert_eq!(refused.stdout, "");
    source.tortie.ok(&["datastore", "migrate", "lock"]);
    let exported = source.tortie.ok(&["datastore", "migrate", "export"]);

    let server = KubeApiServer::start().unwrap();
    let target = Target::new(&server, group);
    target.create_node("node-1.example.com");
    let imported = target
        .tortie
        .run_with_input(&["datastore", "migrate", "import", "-f", "-"], &exported);
    assert_eq!(imported.code, 0, "{}", imported.stderr);
    assert!(
        imported.stderr.contains("[WARNING]") && imported.stderr.contains("other.example.com"),
        "{}",
        imported.stderr
    );
    assert!(
        imported
            .stdout
            .contains("Datastore information successfully imported"),
        "{}",
        imported.stdout
    );

    // The same resources, under the names that Kubernetes knows the nodes by.
    let (mut expected, found) = (source.resources(), target.resources());
    expected.retain(|key, _| !(key.kind == Kind::Node && key.name == "other.example.com"));
    let missing: Vec<_> = expected
        .keys()
        .filter(|key| !found.contains_key(*key))
        .collect();
    assert!(missing.is_empty(), "{missing:?}");
    for (key, content) in &expected {
        assert_eq!(found[key], *content, "{key}");
    }
    let more: Vec<_> = found
        .keys()
        .filter(|key| !expected.contains_key(*key))
        .collect();
    assert!(more.is_empty(), "{more:?}");
    let (from, to) = (source.information(), target.information());
    assert_eq!(to.spec.cluster_guid, from.spec.cluster_guid);
    assert_eq!(to.spec.datastore_ready, Some(false), "it stays locked");
    assert!(
        to.metadata.annotations.is_empty(),
        "{:?}",
        to.metadata.annotations
    );

    // A second import is refused, and the addresses are where they were.
    let again = target
        .tortie
        .run_with_input(&["datastore", "migrate", "import", "-f", "-"], &exported);
    assert_eq!(again.code, 1);
    assert!(
        again
            .stderr
            .contains("datastore already has Calico resources"),
        "{}",
        again.stderr
    );
    target.tortie.ok(&["datastore", "migrate", "unlock"]);
    let address = source.address("net.3");
    let shown = target.tortie.ok(&["ipam", "show", "--ip", &address]);
    assert!(
        shown.contains("is in use") && shown.contains("node-1.example.com"),
        "{shown}"
    );
}

#[test]
fn an_import_that_stopped_goes_on_with_the_same_file_only() {
    let source = Source::start();
    source.tortie.ok(&["datastore", "migrate", "lock"]);
    let exported = source.tortie.ok(&["datastore", "migrate", "export"]);
    let server = KubeApiServer::start().unwrap();
    let target = Target::new(&server, Group::V3);
    target.create_node("node-1.example.com");
    let import = ["datastore", "migrate", "import", "-f", "-"];

    // A file that is not whole, or has something wrong in it, changes nothing.
    let half = exported.rsplit_once("===\n").unwrap().0;
    let wrong = exported.replace("defaultAction: Pass", "defaultAction: Sometimes");
    for (text, reason) in [(half, "no export"), (&wrong, "Sometimes")] {
        let refused = target.tortie.run_with_input(&import, text);
        assert_eq!(refused.code, 1);
        assert!(refused.stderr.contains(reason), "{}", refused.stderr);
    }
    let definitions = server.kubectl(&["get", "crd", "-o", "name"]).unwrap();
    assert_eq!(definitions.into_stdout().unwrap(), "");

    // What is namespaced cannot be written without its namespace.
    server
        .kubectl(&["delete", "namespace", "shop", "--wait=false"])
        .unwrap();
    target.finalize_namespace("shop");
    let stopped = target.tortie.run_with_input(&import, &exported);
    assert_eq!(stopped.code, 1, "{}", stopped.stderr);
    assert!(
        stopped.stderr.contains("NetworkPolicy(shop/"),
        "{}",
        stopped.stderr
    );
    assert!(
        stopped.stderr.contains("run the import again"),
        "{}",
        stopped.stderr
    );
    let information = target.information();
    assert_eq!(information.spec.datastore_ready, Some(false));

    let other = exported.replace("team: web", "team: shop");
    let refused = target.tortie.run_with_input(&import, &other);
    assert!(
        refused.stderr.contains("another file"),
        "{}",
        refused.stderr
    );
    server
        .kubectl(&["create", "namespace", "shop"])
        .unwrap()
        .into_stdout()
        .unwrap();
    let finished = target.tortie.run_with_input(&import, &exported);
    assert_eq!(finished.code, 0, "{}", finished.stderr);
    assert_eq!(target.resources().len(), source.resources().len() - 1);
}

#[test]
fn each_step_is_for_its_datastore() {
    let source = Source::start();
    source.tortie.ok(&["datastore", "migrate", "lock"]);
    let exported = source.tortie.ok(&["datastore", "migrate", "export"]);
    let import = ["datastore", "migrate", "import", "-f", "-"];
    let refused = source.tortie.run_with_input(&import, &exported);
    assert!(
        refused.stderr.contains("Datastore type must be kubernetes"),
        "{}",
        refused.stderr
    );
    let folder = tempfile::tempdir().unwrap();
    let embedded = Tortie::embedded(folder.path());
    let refused = embedded.run(&["datastore", "migrate", "export"]);
    assert!(
        refused.stderr.contains("Datastore type must be etcdv3"),
        "{}",
        refused.stderr
    );
    // A node that Kubernetes does not know cannot be moved.
    let stranger = "apiVersion: projectcalico.org/v3\nkind: Node\nmetadata: {name: stranger}\n";
    let applied = source
        .tortie
        .run_with_input(&["apply", "-f", "-"], stranger);
    assert_eq!(applied.code, 0, "{}", applied.stderr);
    let refused = source.tortie.run(&["datastore", "migrate", "export"]);
    assert!(
        refused.stderr.contains("node stranger missing a 'k8s'"),
        "{}",
        refused.stderr
    );
    // What cannot be read is named, not lost.
    source.put(
        "/calico/resources/v3/projectcalico.org/networksets/shop/broken",
        "{",
    );
    let refused = source.tortie.run(&["datastore", "migrate", "export"]);
    assert!(
        refused.stderr.contains("NetworkSet(shop/broken)"),
        "{}",
        refused.stderr
    );
    assert_eq!(refused.stdout, "");
}
