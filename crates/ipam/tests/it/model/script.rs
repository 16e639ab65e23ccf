//! What processes do with addresses, and what must be true whatever happens to them.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use jiff::Timestamp;
use serde_json::json;
use tortie_ipam::report::{InUse, check};
use tortie_ipam::{AssignIp, Assigned, AutoAssign, Clock, Error, Ipam, Owner, ReleaseIp};
use tortie_store::{Kind, Resource, Store};

pub(crate) const HOSTS: [&str; 3] = ["host-a", "host-b", "host-c"];

/// Numbers that only look random.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub(crate) fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 33).unwrap() % limit
    }
}

/// What the containers know: their addresses, and which requests have had no answer yet.
#[derive(Default)]
pub(crate) struct Ledger {
    pages: Mutex<Pages>,
    seconds: AtomicI64,
}

#[derive(Default)]
struct Pages {
    live: BTreeMap<IpAddr, String>,
    containers: BTreeMap<String, BTreeSet<IpAddr>>,
    /// By process.
    open: BTreeMap<usize, BTreeSet<String>>,
}

impl Ledger {
    fn pages(&self) -> MutexGuard<'_, Pages> {
        self.pages.lock().unwrap()
    }

    pub(crate) fn clock(self: &Arc<Self>) -> Clock {
        let ledger = Arc::clone(self);
        Arc::new(move || {
            let seconds = ledger.seconds.load(Ordering::Relaxed);
            Timestamp::from_second(1_800_000_000 + seconds).unwrap()
        })
    }

    pub(crate) fn advance(&self, seconds: i64) {
        self.seconds.fetch_add(seconds, Ordering::Relaxed);
    }

    fn open(&self, process: usize, handle: &str) {
        self.pages()
            .open
            .entry(process)
            .or_default()
            .insert(handle.to_owned());
    }

    fn close(&self, process: usize, handle: &str) {
        self.pages().open.entry(process).or_default().remove(handle);
    }

    /// A container has got addresses. Nobody else may have one of them.
    fn start(&self, handle: &str, addresses: impl IntoIterator<Item = IpAddr>) {
        let mut pages = self.pages();
        for address in addresses {
            let other = pages.live.insert(address, handle.to_owned());
            assert_eq!(
                other, None,
                "{address} was given to {handle} while another had it"
            );
            pages
                .containers
                .entry(handle.to_owned())
                .or_default()
                .insert(address);
        }
    }

    /// A container ends. Its addresses may go to others from now on.
    fn end(&self, handle: &str) -> BTreeSet<IpAddr> {
        let mut pages = self.pages();
        let addresses = pages.containers.remove(handle).unwrap_or_default();
        for address in &addresses {
            pages.live.remove(address);
        }
        addresses
    }

    fn any_container(&self, host: &str, random: &mut Random) -> Option<String> {
        let pages = self.pages();
        let mine: Vec<&String> = pages
            .containers
            .keys()
            .filter(|handle| handle.starts_with(host))
            .collect();
        (!mine.is_empty()).then(|| mine[random.below(mine.len())].clone())
    }
}

pub(crate) async fn set_up(store: &dyn Store, with_nodes: bool) {
    let create = async |kind: Kind, name: &str, spec: serde_json::Value| {
        let object = json!({ "metadata": { "name": name }, "spec": spec });
        store
            .create(Resource::decode_stored(kind, &object).unwrap())
            .await
            .unwrap();
    };
    if with_nodes {
        for host in HOSTS {
            create(Kind::Node, host, json!({})).await;
        }
    }
    let uses = json!(["Workload", "Tunnel"]);
    create(
        Kind::IpPool,
        "pool",
        json!({ "cidr": "10.0.0.0/28", "blockSize": 30, "allowedUses": uses }),
    )
    .await;
    create(
        Kind::IpReservation,
        "reserved",
        json!({ "reservedCIDRs": ["10.0.0.5/32"] }),
    )
    .await;
}

/// One process on a host, from its start until it has done what it wanted or is stopped.
pub(crate) async fn process(
    ipam: Ipam,
    ledger: Arc<Ledger>,
    number: usize,
    life: usize,
    steps: usize,
    mut random: Random,
) {
    let host = HOSTS[number % HOSTS.len()];
    // What its predecessor did not finish.
    let open = ledger
        .pages()
        .open
        .get(&number)
        .cloned()
        .unwrap_or_default();
    for handle in open {
        end_container(&ipam, &ledger, number, &handle).await;
    }
    for step in 0..steps {
        let handle = format!("{host}-{number}-{life}-{step}");
        match random.below(10) {
            0..=3 => add(&ipam, &ledger, number, host, &handle, 1 + random.below(3)).await,
            4 => {
                let other = format!("{handle}-b");
                let counts = (1 + random.below(2), 1 + random.below(2));
                futures::join!(
                    add(&ipam, &ledger, number, host, &handle, counts.0),
                    add(&ipam, &ledger, number, host, &other, counts.1),
                );
            }
            5 => {
                let address = format!("10.0.0.{}", random.below(16)).parse().unwrap();
                ledger.open(number, &handle);
                let request = AssignIp {
                    handle: Some(handle.clone()),
                    ..AssignIp::on(host, address)
                };
                if ipam.assign_ip(&request).await.is_ok() {
                    ledger.start(&handle, [address]);
                    ledger.close(number, &handle);
                } else {
                    end_container(&ipam, &ledger, number, &handle).await;
                }
            }
            6 | 7 => {
                if let Some(handle) = ledger.any_container(host, &mut random) {
                    end_container(&ipam, &ledger, number, &handle).await;
                }
            }
            8 => {
                if let Some(handle) = ledger.any_container(host, &mut random) {
                    ledger.open(number, &handle);
                    let requests: Vec<ReleaseIp> = ledger
                        .end(&handle)
                        .into_iter()
                        .map(|address| ReleaseIp {
                            handle: Some(handle.clone()),
                            ..address.into()
                        })
                        .collect();
                    match ipam.release(&requests).await {
                        Ok(_) => ledger.close(number, &handle),
                        Err(_) => end_container(&ipam, &ledger, number, &handle).await,
                    }
                }
            }
            _ => {
                let must_be_empty = random.below(2) == 0;
                let result = ipam
                    .release_host_affinities(&Owner::host(host), must_be_empty)
                    .await;
                let is_expected = matches!(
                    result,
                    Ok(()) | Err(Error::BlockNotEmpty(_) | Error::TooMuchContention)
                );
                assert!(is_expected, "{result:?}");
            }
        }
        ledger.advance(i64::try_from(random.below(40)).unwrap());
    }
}

async fn add(ipam: &Ipam, ledger: &Ledger, number: usize, host: &str, handle: &str, count: usize) {
    ledger.open(number, handle);
    let request = AutoAssign {
        num4: u32::try_from(count).unwrap(),
        handle: Some(handle.to_owned()),
        attributes: [("node".to_owned(), host.to_owned())].into(),
        ..AutoAssign::on(host)
    };
    match ipam.auto_assign(&request).await {
        Ok(Assigned { v4, .. }) => {
            ledger.start(handle, v4.addresses.iter().map(ipnet::IpNet::addr));
            ledger.close(number, handle);
        }
        Err(error) => {
            let is_expected = matches!(error.cause(), Error::BlockLimit | Error::TooMuchContention);
            assert!(is_expected, "{error}");
            end_container(ipam, ledger, number, handle).await;
        }
    }
}

async fn end_container(ipam: &Ipam, ledger: &Ledger, number: usize, handle: &str) {
    ledger.open(number, handle);
    ledger.end(handle);
    match ipam.release_by_handle(handle).await {
        Ok(_) | Err(Error::NoHandle(_)) => ledger.close(number, handle),
        Err(error) => assert!(matches!(error, Error::TooMuchContention), "{error}"),
    }
}

/// Nobody does anything any more. Ends what has had no answer, and looks whether all is as it must be; then ends everything.
pub(crate) async fn check_end(store: Arc<dyn Store>, ledger: &Arc<Ledger>) {
    let ipam = Ipam::with_clock(store, ledger.clock());
    let open = ledger.pages().open.clone();
    for (number, handles) in open {
        for handle in handles {
            end_container(&ipam, ledger, number, &handle).await;
        }
    }
    let loaded = ipam.load().await.unwrap();
    let report = check(&loaded, &InUse::default());
    let held: BTreeMap<IpAddr, String> = report
        .allocations
        .iter()
        .map(|held| (held.address, held.handle.clone().unwrap()))
        .collect();
    assert_eq!(
        held,
        ledger.pages().live,
        "what is held is not what containers have"
    );
    let about_handles = report
        .problems
        .iter()
        .filter(|problem| format!("{problem:?}").contains("Handle"));
    assert_eq!(about_handles.count(), 0, "{:?}", report.problems);

    let containers: Vec<String> = ledger.pages().containers.keys().cloned().collect();
    for handle in containers {
        let expected = ledger.end(&handle);
        let released: BTreeSet<IpAddr> = ipam
            .release_by_handle(&handle)
            .await
            .unwrap()
            .into_iter()
            .collect();
        assert_eq!(released, expected, "{handle}");
    }
    for host in HOSTS {
        ipam.remove_host(host).await.unwrap();
    }
    let loaded = ipam.load().await.unwrap();
    assert!(loaded.handles.is_empty(), "{:?}", loaded.handles);
    assert!(loaded.affinities.is_empty(), "{:?}", loaded.affinities);
    assert!(loaded.blocks.is_empty(), "{:?}", loaded.blocks);
}
