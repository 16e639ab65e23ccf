//! Two nodes, each with a folder for its BIRD.

use std::fs;
use std::net::IpAddr;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use ipnet::IpNet;
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;
use tortie_bgp::bird::answer::{Protocol, Route};
use tortie_bgp::bird::config_file::Texts;
use tortie_bgp::bird::{Routes, Socket};
use tortie_kernel::route::Socket as RouteSocket;
use tortie_testkit::machine::processes_with;
use tortie_testkit::net::{Fabric, Namespace, Node};

pub(crate) const BIRD: &str = "/usr/sbin/bird";

const MAIN_TABLE: u32 = 254;

/// The name of the configuration file.
pub(crate) const CONF: &str = "bird.conf";

/// How long to wait for what never comes.
const LIMIT: Duration = Duration::from_mins(1);

/// Between two looks.
const INTERVAL: Duration = Duration::from_millis(10);

/// Neighbours in one network.
pub(crate) struct Pair {
    pub(crate) a: Site,
    pub(crate) b: Site,
    _fabric: Fabric,
}

/// A node and its BIRD, which ends with the value.
pub(crate) struct Site {
    node: Node,
    folder: TempDir,
    number: u8,
    pub(crate) v4: IpAddr,
    pub(crate) v6: IpAddr,
}

/// Routes of a node's kernel.
pub(crate) struct Kernel(RouteSocket);

/// What differs between configurations.
#[derive(Debug, Clone)]
pub(crate) struct Conf {
    pub(crate) router_id: String,
    pub(crate) local_as: u32,
    /// How long BIRD waits for all peers after a start, in seconds.
    pub(crate) recovery: u32,
    /// Of the block that the node has.
    pub(crate) blocks: Vec<IpNet>,
    /// Added as it is.
    pub(crate) more: String,
}

impl Pair {
    /// Both with BIRD's configuration in place, and none running.
    pub(crate) fn new() -> Self {
        let mut fabric = Fabric::new(1).unwrap();
        let a = Site::new(&mut fabric, 1);
        let b = Site::new(&mut fabric, 2);
        for (site, peer) in [(&a, &b), (&b, &a)] {
            let text = site.text(peer, &site.conf());
            fs::create_dir(site.folder.path().join("conf")).unwrap();
            fs::write(site.config(), text).unwrap();
        }
        Self {
            a,
            b,
            _fabric: fabric,
        }
    }

    /// Both running, and each with the other's block.
    pub(crate) async fn connected() -> Self {
        let pair = Self::new();
        pair.a.start();
        pair.b.start();
        pair.await_sessions().await;
        await_that("routes are exchanged", async || {
            pair.a.has_route_to(pair.b.block()).await && pair.b.has_route_to(pair.a.block()).await
        })
        .await;
        pair
    }

    pub(crate) async fn await_sessions(&self) {
        for site in [&self.a, &self.b] {
            site.await_sessions().await;
        }
    }

    /// A's configuration with changes.
    pub(crate) fn texts_of_a(&self, change: impl FnOnce(&mut Conf)) -> Texts {
        let mut conf = self.a.conf();
        change(&mut conf);
        Texts::from([(CONF.to_owned(), self.a.text(&self.b, &conf))])
    }
}

impl Site {
    fn new(fabric: &mut Fabric, number: u8) -> Self {
        let mut node = Node::new().unwrap();
        let [v4, v6] = fabric.join(&mut node, 0).unwrap().map(|net| net.addr());
        Self {
            node,
            folder: TempDir::with_prefix("tortie-bird-").unwrap(),
            number,
            v4,
            v6,
        }
    }

    pub(crate) fn namespace(&self) -> &Namespace {
        self.node.namespace()
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn config(&self) -> PathBuf {
        self.folder.path().join("conf").join(CONF)
    }

    pub(crate) fn socket_path(&self) -> PathBuf {
        self.folder.path().join("bird.ctl")
    }

    pub(crate) fn socket(&self) -> Socket {
        Socket::new(self.socket_path())
    }

    /// The block of this node, IPv4.
    pub(crate) fn block(&self) -> IpNet {
        format!("10.65.{}.0/26", self.number).parse().unwrap()
    }

    pub(crate) fn conf(&self) -> Conf {
        Conf {
            router_id: self.v4.to_string(),
            local_as: 64512,
            recovery: 20,
            blocks: vec![
                self.block(),
                format!("fd65:{}::/122", self.number).parse().unwrap(),
            ],
            more: String::new(),
        }
    }

    /// The names of this node's sessions.
    pub(crate) fn sessions(peer: &Site) -> [String; 2] {
        let name = |address: IpAddr| {
            let address = address.to_string().replace(['.', ':'], "_");
            format!("Mesh_{address}")
        };
        [name(peer.v4), name(peer.v6)]
    }

    fn text(&self, peer: &Site, conf: &Conf) -> String {
        let Conf {
            router_id,
            local_as,
            recovery,
            blocks,
            more,
        } = conf;
        let mut text = vec![
            format!("log stderr all;\nrouter id {router_id};\ngraceful restart wait {recovery};"),
            "protocol device { scan time 1; }".to_owned(),
            "protocol direct { interface \"eth0\"; ipv4; ipv6; }".to_owned(),
        ];
        for (version, is_ipv4) in [("ipv4", true), ("ipv6", false)] {
            text.push(format!(
                "protocol kernel {{ learn; persist; scan time 1; graceful restart; \
                 {version} {{ import none; export where source = RTS_BGP; }}; }}"
            ));
            text.push(format!("protocol static {{ {version};"));
            let of_family = blocks
                .iter()
                .filter(|block| block.addr().is_ipv4() == is_ipv4);
            text.extend(of_family.map(|block| format!("route {block} blackhole;")));
            text.push("}".to_owned());
        }
        let ends = [(self.v4, peer.v4, "ipv4"), (self.v6, peer.v6, "ipv6")];
        for (name, (own, theirs, version)) in Self::sessions(peer).iter().zip(ends) {
            text.push(format!(
                "protocol bgp {name} {{ local {own} as {local_as}; neighbor {theirs} as 64512; direct; graceful restart; \
                 connect delay time 1; connect retry time 1; error wait time 1,2; \
                 {version} {{ import all; export where source = RTS_STATIC; }}; }}"
            ));
        }
        text.push(more.clone());
        text.join("\n")
    }

    /// Starts BIRD, with what it says in the file `log`.
    pub(crate) fn start(&self) {
        let log = fs::File::create(self.folder.path().join("log")).unwrap();
        let mut command = Command::new(BIRD);
        command.arg("-f").arg("-s").arg(self.socket_path());
        command
            .arg("-c")
            .arg(self.config())
            .stdin(Stdio::null())
            .stderr(log)
            .process_group(0);
        // It is killed at the end, and not waited for.
        self.namespace()
            .run(|| command.spawn().map(drop))
            .unwrap()
            .unwrap();
    }

    pub(crate) async fn protocols(&self) -> Vec<Protocol> {
        self.socket().protocols().await.unwrap_or_default()
    }

    pub(crate) async fn await_sessions(&self) {
        await_that(
            &format!("the sessions of {} are there", self.v4),
            async || {
                let protocols = self.protocols().await;
                let established = protocols.iter().filter(|one| one.is_established());
                established.count() == 2
            },
        )
        .await;
    }

    /// The routes that it has for a prefix.
    pub(crate) async fn routes_to(&self, prefix: IpNet) -> Vec<Route> {
        let asked = Routes {
            destination: tortie_bgp::bird::Destination::Exactly(prefix),
            all: true,
            ..Routes::default()
        };
        self.socket().routes(&asked).await.unwrap()
    }

    pub(crate) async fn has_route_to(&self, prefix: IpNet) -> bool {
        !self.routes_to(prefix).await.is_empty()
    }

    /// What asks this node's kernel about its routes.
    pub(crate) fn kernel(&self) -> Kernel {
        Kernel(self.namespace().run(RouteSocket::open).unwrap().unwrap())
    }

    /// The processes that have this node's socket.
    pub(crate) fn birds(&self) -> Vec<u32> {
        let socket = self.socket_path();
        processes_with(&["-s", socket.to_str().unwrap()])
    }
}

impl Kernel {
    pub(crate) fn has_route_to(&mut self, prefix: IpNet) -> bool {
        let routes = self.0.routes(MAIN_TABLE).unwrap();
        routes.iter().any(|route| route.destination == prefix)
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        for process in self.birds() {
            kill(process, Signal::KILL);
        }
    }
}

pub(crate) fn kill(process: u32, signal: Signal) {
    let pid = Pid::from_raw(process.try_into().unwrap()).unwrap();
    // It may have ended.
    let _ = kill_process(pid, signal);
}

/// Waits until it is so.
pub(crate) async fn await_that(what: &str, mut is_so: impl AsyncFnMut() -> bool) {
    let end = Instant::now() + LIMIT;
    while !is_so().await {
        assert!(Instant::now() < end, "not after {LIMIT:?}: {what}");
        tokio::time::sleep(INTERVAL).await;
    }
}

/// Runs a test on this thread alone: programs that it starts are in the thread's network namespace.
pub(crate) fn block_on<T>(test: impl Future<Output = T>) -> T {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    runtime.enable_all().build().unwrap().block_on(test)
}
