//! CHECK, GC, STATUS and VERSION, and what else the plugins can be asked.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpListener;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tortie_kernel::route::{MAIN_TABLE, Socket};

use crate::cni::site::{Container, Site, addresses, run_in};

#[test]
fn check_finds_what_is_not_as_it_was() {
    let mut site = Site::new();
    let container = Container::new("checked");
    let result = site.calico("ADD", &container, &json!({})).unwrap();
    let changes = json!({ "prevResult": result });
    site.calico("CHECK", &container, &changes).unwrap();

    let address = addresses(&result).remove(0);
    let routes = site.node.socket().routes(MAIN_TABLE).unwrap();
    let route = routes
        .into_iter()
        .find(|route| route.destination.addr().to_string() == address);
    let route = route.unwrap();
    site.node
        .socket()
        .execute(|batch| batch.delete_route(&route))
        .unwrap();
    let check = |site: &Site, expected: &str| {
        let (code, message) = site.calico("CHECK", &container, &changes).unwrap_err();
        assert_eq!(code, 104, "{message}");
        assert!(message.contains(expected), "{message}");
    };
    check(&site, &format!("no route to {address}"));
    site.node
        .socket()
        .execute(|batch| batch.add_route(&route))
        .unwrap();
    site.calico("CHECK", &container, &changes).unwrap();

    site.plugin("calico-ipam", "DEL", &container, &json!({}))
        .unwrap();
    check(
        &site,
        &format!("{address} is not assigned to `net.checked`"),
    );
    let down = container.namespace.run(|| {
        let mut socket = Socket::open().unwrap();
        let index = socket.link("eth0").unwrap().unwrap().index;
        socket.execute(|batch| batch.delete_link(index)).unwrap();
    });
    down.unwrap();
    check(&site, "the container has no interface `eth0`");
    check(&site, "the node has no interface `calichecked`");
    site.tortie(&["delete", "workloadendpoint", "n1-cni-checked-eth0"], "");
    check(
        &site,
        "there is no WorkloadEndpoint(default/n1-cni-checked-eth0)",
    );
}

#[test]
fn gc_gives_back_what_belongs_to_containers_that_are_gone() {
    let mut site = Site::new();
    let (alive, gone) = (Container::new("alive"), Container::new("gone"));
    let foreign = Container::new("foreign");
    for container in [&alive, &gone] {
        site.calico("ADD", container, &json!({})).unwrap();
    }
    site.calico("ADD", &foreign, &json!({"name": "other"}))
        .unwrap();
    let elsewhere = Container::new("elsewhere");
    site.plugin("calico-ipam", "ADD", &elsewhere, &json!({"nodename": "n2"}))
        .unwrap();
    let changes = json!({"cniVersion": "1.1.0", "cni.dev/valid-attachments":
        [{"containerID": "alive", "ifname": "eth0"}]});
    for plugin in ["calico", "calico-ipam"] {
        site.plugin(plugin, "GC", &Container::new("none"), &changes)
            .unwrap();
        let mut handles = site.keys("/calico/ipam/v2/handle/");
        handles.sort();
        let expected = ["net.alive", "net.elsewhere", "other.foreign"];
        assert_eq!(
            handles,
            expected.map(|name| format!("/calico/ipam/v2/handle/{name}"))
        );
    }
    let endpoints = site.resources("workloadendpoint");
    let names: Vec<&Value> = endpoints
        .iter()
        .map(|e| &e["spec"]["containerID"])
        .collect();
    assert_eq!(names, ["alive", "foreign"]);
    let (code, message) = site
        .calico("GC", &gone, &json!({"cniVersion": "1.1.0"}))
        .unwrap_err();
    assert_eq!(code, 7);
    assert!(message.contains("valid-attachments"), "{message}");
    site.calico("CHECK", &alive, &json!({})).unwrap();
    assert_eq!(site.interfaces().len(), 3);
}

#[test]
fn status_tells_whether_an_add_could_be_served() {
    let site = Site::new();
    let nobody = Container::new("");
    let ask = |changes: Value| {
        let mut all = json!({"cniVersion": "1.1.0"});
        all.as_object_mut()
            .unwrap()
            .extend(changes.as_object().unwrap().clone());
        site.calico("STATUS", &nobody, &all)
    };
    ask(json!({})).unwrap();
    let (code, _) = ask(json!({"etcd_endpoints": "http://127.0.0.1:1"})).unwrap_err();
    assert_eq!(code, 50);
    let (code, message) = site.calico("STATUS", &nobody, &json!({})).unwrap_err();
    assert_eq!(code, 1);
    assert!(message.contains("1.1.0"), "{message}");
}

#[test]
fn versions_are_told_without_any_datastore() {
    let site = Site::empty();
    let nobody = Container::new("");
    for plugin in ["calico", "calico-ipam"] {
        let answer = site.plugin(plugin, "VERSION", &nobody, &json!({})).unwrap();
        assert_eq!(answer["cniVersion"], "1.0.0");
        let versions = answer["supportedVersions"].as_array().unwrap();
        assert_eq!(versions.len(), 7);
        let mut command = Command::new(site.runtime.folder().join(plugin));
        command.arg("-v").env_clear();
        let text = run_in(site.node.namespace(), command, "");
        assert_eq!(text.trim(), env!("CARGO_PKG_VERSION"));
    }
    let mut test = Command::new(site.runtime.folder().join("calico"));
    test.arg("-t").env_clear();
    site.tortie(&["apply", "-f", "-"], crate::cni::site::POOLS);
    let config = site.config(&json!({})).to_string();
    assert_eq!(run_in(site.node.namespace(), test, &config), "");
}

#[test]
fn the_container_waits_until_its_policy_is_in_force() {
    let site = Site::new();
    let folder = site.folder.path().join("status");
    std::fs::create_dir(&folder).unwrap();
    let changes = json!({"policy_setup_timeout_seconds": 200, "endpoint_status_dir": folder});
    let container = Container::of_pod("waits", "shop", "web");
    let start = Instant::now();
    thread::scope(|scope| {
        let added = scope.spawn(|| site.calico("ADD", &container, &changes));
        while site
            .keys("/calico/resources/v3/projectcalico.org/workloadendpoints/")
            .is_empty()
        {
            assert!(start.elapsed() < Duration::from_mins(1), "no endpoint");
        }
        thread::sleep(Duration::from_millis(300));
        assert!(!added.is_finished());
        std::fs::write(folder.join("k8s shop%2Fweb eth0"), "{}").unwrap();
        let answer = added.join().unwrap();
        let is_late = answer.log.contains("not in force in time");
        assert!(!is_late, "{}", answer.log);
        answer.unwrap();
    });

    let other = Container::of_pod("timeout", "shop", "other");
    let changes = json!({"policy_setup_timeout_seconds": 1, "endpoint_status_dir": folder});
    let start = Instant::now();
    let answer = site.calico("ADD", &other, &changes);
    assert!(
        answer.log.contains("not in force in time"),
        "{}",
        answer.log
    );
    answer.unwrap();
    assert!(start.elapsed() >= Duration::from_secs(1));
}

#[test]
fn the_embedded_datastore_serves_many_plugins_at_once() {
    let site = Site::empty();
    let file = site.folder.path().join("data.redb");
    let mut apply = Command::new(env!("CARGO_BIN_EXE_tortie"));
    apply
        .args(["apply", "-f", "-", "--data-file"])
        .arg(&file)
        .env_clear();
    run_in(site.node.namespace(), apply, crate::cni::site::POOLS);
    let changes =
        json!({"datastore_type": "embedded", "datastore_path": file, "etcd_endpoints": ""});
    let containers: Vec<Container> = (0..6).map(|i| Container::new(&format!("c{i}"))).collect();
    thread::scope(|scope| {
        for container in &containers {
            scope.spawn(|| {
                let result = site.calico("ADD", container, &changes).unwrap();
                site.assert_reachable(container, &addresses(&result)[0]);
            });
        }
    });
}

#[test]
fn readiness_gates_are_waited_for() {
    let site = Site::new();
    let listening = site
        .node
        .namespace()
        .run(|| TcpListener::bind("127.0.0.1:0"));
    let listener = listening.unwrap().unwrap();
    let port = listener.local_addr().unwrap().port();
    // Not ready when asked first, ready when asked again.
    let server = thread::spawn(move || {
        for status in ["503 Service Unavailable", "204 No Content"] {
            let (mut stream, _) = listener.accept().unwrap();
            let mut line = String::new();
            BufReader::new(&stream).read_line(&mut line).unwrap();
            assert!(line.starts_with("GET /readiness?x=1 "), "{line}");
            let answer =
                format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
            stream.write_all(answer.as_bytes()).unwrap();
        }
    });
    let gate = format!("http://127.0.0.1:{port}/readiness?x=1");
    let changes = json!({ "readiness_gates": [gate] });
    let answer = site.calico("ADD", &Container::new("gated"), &changes);
    assert!(answer.log.contains("503"), "{}", answer.log);
    answer.unwrap();
    server.join().unwrap();
}
