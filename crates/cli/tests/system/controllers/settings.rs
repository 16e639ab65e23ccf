//! What the process is told, and what it tells of itself.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};

use serde_json::Value;

use crate::controllers::program::Program;
use crate::controllers::site::{Site, eventually, usual_settings};

#[test]
fn settings_take_effect_at_once_and_are_told() {
    let site = Site::new();
    site.kubectl(&["create", "namespace", "shop"]);
    let port = free_port();
    let metrics = free_port();
    let program = Program::start(
        &site,
        &["--health-port", &port.to_string()],
        &[("LOG_LEVEL", "info"), ("RECONCILER_PERIOD", "7m")],
    );
    site.policy("shop", "one", "client");
    site.await_stored("networkpolicies/shop/knp.default.one", |_| true);
    let path = "kubecontrollersconfigurations/default";
    let stored = site.await_stored(path, |settings| {
        settings["status"]["runningConfig"].is_object()
    });
    let status = &stored["status"];
    assert_eq!(status["environmentVars"]["RECONCILER_PERIOD"], "7m");
    assert_eq!(
        status["runningConfig"]["controllers"]["policy"]["reconcilerPeriod"],
        "7m0s"
    );
    assert_eq!(status["runningConfig"]["logSeverityScreen"], "Info");
    // The process is well, and says so.
    assert!(eventually(
        || ask(port, "/readiness").starts_with("HTTP/1.1 200")
    ));
    assert!(ask(port, "/liveness").contains("KubeAPIServer: ready"));
    let file: Value = serde_json::from_slice(&std::fs::read(site.status_file()).unwrap()).unwrap();
    for name in ["Startup", "CalicoDatastore", "KubeAPIServer"] {
        assert_eq!(file["Readiness"][name]["Ready"], true, "{name}");
    }
    // Off: nothing happens any more. On again: what happened meanwhile is made up for.
    let mut settings = usual_settings();
    settings["spec"]["prometheusMetricsPort"] = metrics.into();
    let profiles = free_port();
    settings["spec"]["debugProfilePort"] = profiles.into();
    let controllers = settings["spec"]["controllers"].as_object_mut().unwrap();
    let policy = controllers.remove("policy").unwrap();
    site.store(&settings);
    site.await_stored(path, |settings| {
        settings["status"]["runningConfig"]["controllers"]
            .get("policy")
            .is_none()
    });
    program.await_words("configuration changed");
    assert!(eventually(
        || ask(metrics, "/metrics").starts_with("HTTP/1.1 200")
    ));
    // Profiles are not offered, which is said.
    assert_eq!(program.said("Profiles are not served"), 1);
    assert_eq!(ask(profiles, "/debug/pprof/profile?seconds=1"), "");
    let stored = site.stored(path).unwrap();
    assert!(
        stored["status"]["runningConfig"]
            .get("debugProfilePort")
            .is_none(),
        "{stored}"
    );
    site.policy("shop", "two", "client");
    site.kubectl(&["create", "namespace", "witness"]);
    site.await_stored("profiles/kns.witness", |_| true);
    assert_eq!(site.stored("networkpolicies/shop/knp.default.two"), None);
    settings["spec"]["controllers"]["policy"] = policy;
    site.store(&settings);
    site.await_stored("networkpolicies/shop/knp.default.two", |_| true);
    // Without a resource there is a new one.
    site.erase(path);
    site.await_stored(path, |settings| {
        settings["status"]["runningConfig"].is_object()
    });
    assert!(program.terminate().success());
}

#[test]
fn what_cannot_be_used_is_refused_before_anything_is_done() {
    let site = Site::new();
    let before = site.revision();
    let variables = [
        ("ENABLED_CONTROLLERS", "policies"),
        ("COMPACTION_PERIOD", "often"),
    ];
    let (status, said) = Program::start(&site, &[], &variables).wait();
    assert_eq!(status.code(), Some(1));
    assert!(
        said.contains(r#"COMPACTION_PERIOD="often" cannot be used: must be a duration"#),
        "{said}"
    );
    assert!(
        said.contains("there is no controller policies; there are workloadendpoint"),
        "{said}"
    );
    assert_eq!(site.revision(), before);
}

fn ask(port: u16, path: &str) -> String {
    let mut answer = String::new();
    if let Ok(mut stream) = TcpStream::connect((Ipv4Addr::LOCALHOST, port)) {
        let request =
            format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
        let asked = stream.write_all(request.as_bytes());
        // An answer that is cut off is none that is waited for.
        let _ = asked.and_then(|()| stream.read_to_string(&mut answer).map(drop));
    }
    answer
}

fn free_port() -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    listener.local_addr().unwrap().port()
}
