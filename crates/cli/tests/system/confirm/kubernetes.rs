//! On a real kube-apiserver.

use tortie_testkit::KubeApiServer;

use crate::confirm::site::{AFTER, BEFORE, Site};

#[test]
fn what_is_not_confirmed_is_rolled_back_in_both_groups() {
    for group in ["v3", "v1"] {
        let server = KubeApiServer::start().unwrap();
        let site = Site::kubernetes(server.kubeconfig());
        let crds = site.ok(&["crds", "--group", group]);
        let applied = server.kubectl_stdin(&["apply", "-f", "-"], &crds).unwrap();
        assert!(applied.success(), "{}", applied.stderr);
        let waited = [
            "wait",
            "--for=condition=Established",
            "crd",
            "--all",
            "--timeout=60s",
        ];
        assert!(server.kubectl(&waited).unwrap().success());
        site.apply(BEFORE);
        let mut before = site.resources();
        let waiting = site.apply_with_confirm("2", AFTER);
        assert_ne!(site.resources(), before, "{group}");
        let output = waiting.end();
        assert_eq!(output.code, 1, "{group}: {output:?}");
        // Counts changes, of which there were two.
        let mut after = site.resources();
        for list in [&mut before, &mut after] {
            for item in list[0].as_array_mut().unwrap() {
                item["metadata"]
                    .as_object_mut()
                    .unwrap()
                    .remove("generation");
            }
        }
        assert_eq!(after, before, "{group}: {output:?}");
    }
}
