//! What can go wrong: servers that are down, history that is forgotten, tokens that expire, others who write.

use std::sync::Arc;
use std::time::Duration;

use tortie_store::etcd::{EtcdConfig, EtcdStore};
use tortie_store::{Error, Key, Kind, Precondition, Resource, Store};

use crate::controllers::program::Program;
use crate::controllers::site::{Site, eventually_within};

fn copy(name: &str) -> String {
    format!("networkpolicies/shop/knp.default.{name}")
}

#[test]
fn servers_may_go_and_come_back() {
    let site = Site::new();
    site.kubectl(&["create", "namespace", "shop"]);
    let program = Program::start(&site, &[], &[]);
    site.policy("shop", "first", "client");
    site.await_stored(&copy("first"), |_| true);

    site.api.kill().unwrap();
    // What a hand deletes while the API server is gone can still be put back.
    site.erase(&copy("first"));
    site.await_stored(&copy("first"), |_| true);
    site.api.start_again().unwrap();
    site.policy("shop", "second", "client");
    site.await_stored(&copy("second"), |_| true);

    site.etcd.kill().unwrap();
    site.policy("shop", "third", "client");
    site.kubectl(&["delete", "networkpolicy", "first", "-n", "shop"]);
    site.etcd.start_again().unwrap();
    site.await_stored(&copy("third"), |_| true);
    site.await_gone(&copy("first"));

    // Both, and history is forgotten on both sides before they are back.
    site.etcd.compact(site.revision()).unwrap();
    site.api.kill().unwrap();
    site.etcd.kill().unwrap();
    site.etcd.start_again().unwrap();
    site.erase(&copy("second"));
    site.etcd.compact(site.revision()).unwrap();
    site.api.start_again().unwrap();
    site.policy("shop", "fourth", "client");
    site.await_stored(&copy("fourth"), |_| true);
    site.await_stored(&copy("second"), |_| true);
    let mut left = site.paths("networkpolicies/shop/");
    left.sort();
    assert_eq!(left, ["fourth", "second", "third"].map(copy));
    assert!(program.terminate().success());
}

#[test]
fn history_is_forgotten_by_the_controllers_themselves() {
    let site = Site::new();
    let first = site.revision();
    let program = Program::start(&site, &[], &[("COMPACTION_PERIOD", "1s")]);
    let is_forgotten = || {
        let at = format!("--rev={first}");
        let answer = site.etcd.etcdctl(&["get", "/calico/", &at]);
        answer.is_err_and(|error| error.to_string().contains("compacted"))
    };
    assert!(
        eventually_within(Duration::from_mins(1), is_forgotten),
        "{}",
        program.log()
    );
    site.kubectl(&["create", "namespace", "shop"]);
    site.await_stored("profiles/kns.shop", |_| true);
    assert!(program.terminate().success());
}

#[test]
fn a_token_may_expire_and_be_replaced() {
    let site = Site::new();
    let token_file = site.folder().join("token");
    std::fs::write(&token_file, site.api.token()).unwrap();
    let config = format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: c\ncontexts:\n- name: c\n  context: {{cluster: c, user: u}}\n\
         clusters:\n- name: c\n  cluster: {{server: '{}', certificate-authority: '{}'}}\n\
         users:\n- name: u\n  user: {{tokenFile: '{}'}}\n",
        site.api.url(),
        site.api.ca().display(),
        token_file.display()
    );
    std::fs::write(site.folder().join("kubeconfig"), config).unwrap();
    let program = Program::start(&site, &[], &[]);
    site.kubectl(&["create", "namespace", "before"]);
    site.await_stored("profiles/kns.before", |_| true);
    // From now on the token is nobody's, and a while later there is another. `kubectl` has its own.
    let known = std::fs::read_to_string(site.api.token_file()).unwrap();
    let admin = format!("{known}first-controllers,controllers,2,\"system:masters\"\n");
    std::fs::write(&token_file, "first-controllers").unwrap();
    std::fs::write(site.api.token_file(), &admin).unwrap();
    site.api.kill().unwrap();
    site.api.start_again().unwrap();
    let replaced = admin.replace("first-controllers", "second-controllers");
    site.kubectl(&["create", "namespace", "between"]);
    let in_use = || site.stored("profiles/kns.between").is_some();
    assert!(
        eventually_within(Duration::from_mins(3), in_use),
        "{}",
        program.log()
    );
    std::fs::write(site.api.token_file(), replaced).unwrap();
    site.api.kill().unwrap();
    site.api.start_again().unwrap();
    program.await_words("Unauthorized");
    std::fs::write(&token_file, "second-controllers").unwrap();
    site.kubectl(&["create", "namespace", "after"]);
    let is_back = || site.stored("profiles/kns.after").is_some();
    assert!(
        eventually_within(Duration::from_mins(3), is_back),
        "{}",
        program.log()
    );
    assert!(program.terminate().success());
}

#[test]
fn a_hundred_writers_lose_in_the_end() {
    let site = Site::new();
    site.kubectl(&["create", "namespace", "shop"]);
    let names: Vec<String> = (0..5).map(|number| format!("p{number}")).collect();
    let program = Program::start(&site, &[], &[]);
    for name in &names {
        site.policy("shop", name, "client");
        site.await_stored(&copy(name), |_| true);
    }
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let changed = runtime.block_on(async {
        let config = EtcdConfig {
            endpoints: vec![site.etcd.endpoint().to_owned()],
            ..EtcdConfig::default()
        };
        let store = Arc::new(EtcdStore::connect(&config).await.unwrap());
        let mut writers = tokio::task::JoinSet::new();
        for number in 0..100 {
            let store = Arc::clone(&store);
            let name = format!("knp.default.{}", names[number % names.len()]);
            writers.spawn(async move { spoil(&store, &name, number).await });
        }
        writers.join_all().await.into_iter().sum::<usize>()
    });
    assert!(changed > 50, "the writers changed only {changed} times");
    for name in &names {
        site.await_stored(&copy(name), |policy| {
            policy["spec"]["order"] == 1000 && policy["spec"]["ingress"].is_array()
        });
    }
    assert_eq!(site.paths("networkpolicies/shop/").len(), names.len());
    assert!(program.terminate().success());
}

/// Changes or deletes a policy again and again for a while. Tells how often that worked.
async fn spoil(store: &EtcdStore, name: &str, number: usize) -> usize {
    let key = Key::namespaced(Kind::NetworkPolicy, "shop", name);
    let end = tokio::time::Instant::now() + Duration::from_secs(5);
    let mut changed = 0;
    while tokio::time::Instant::now() < end {
        let outcome = match store.get(&key).await {
            Ok(_) if number.is_multiple_of(25) => {
                store.delete(&key, &Precondition::default()).await
            }
            Ok(Resource::NetworkPolicy(mut policy)) => {
                policy.spec.order = Some(f64::from(u32::try_from(number).unwrap()));
                policy.spec.ingress.clear();
                store.update((*policy).into()).await
            }
            other => other,
        };
        match outcome {
            Ok(_) => changed += 1,
            Err(Error::Conflict(_) | Error::NotFound(_)) => {}
            Err(error) => panic!("{error}"),
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    changed
}
