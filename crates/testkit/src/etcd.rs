//! Starts etcd, plain or with TLS and passwords, and runs `etcdctl` against it.

use std::{
    path::{Path, PathBuf},
    process::Command,
    sync::OnceLock,
};

use crate::{
    certs::{Authority, KeyPair},
    command::{command, require, run},
    error::Result,
    server::{self, Server},
};

/// The user who exists, with all rights, where a password is set.
const USERNAME: &str = "root";

/// How etcd is started. By default without TLS and without a password.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EtcdConfig {
    /// Which side shows a certificate.
    pub tls: Tls,
    /// Switches on etcd's authentication with this password of the user `root`.
    pub password: Option<String>,
}

/// Which side of a connection shows a certificate.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Tls {
    /// Neither: no TLS.
    #[default]
    Off,
    /// The server only.
    Server,
    /// Both; a client without a certificate of this server's authority is refused.
    Mutual,
}

/// A running etcd with one member and no data. It ends when it is dropped.
#[derive(Debug)]
pub struct Etcd {
    server: Server,
    endpoint: String,
    certs: Certs,
    password: Option<String>,
}

/// What a client needs for TLS.
#[derive(Debug, Default)]
struct Certs {
    ca: Option<PathBuf>,
    client: Option<KeyPair>,
}

// === impl Etcd ===

impl Etcd {
    /// Starts etcd without TLS and without a password.
    pub fn start() -> Result<Self> {
        Self::start_with(&EtcdConfig::default())
    }

    /// Starts etcd as configured.
    pub fn start_with(config: &EtcdConfig) -> Result<Self> {
        require("etcdctl")?;
        server::on_free_port(|port| Self::start_on(port, config))
    }

    /// One plain etcd for the whole process, started on first use. It ends, and its folder goes,
    /// when the process ends.
    pub fn shared() -> &'static Self {
        static SHARED: OnceLock<Result<Etcd>> = OnceLock::new();
        match SHARED.get_or_init(Self::start) {
            Ok(etcd) => etcd,
            Err(error) => panic!("no etcd for the tests: {error:?}"),
        }
    }

    /// A plain etcd that another process started.
    pub(crate) fn of_another(endpoint: String, folder: PathBuf, pid: u32) -> Self {
        Self {
            server: Server::of_another("etcd", folder, pid),
            endpoint,
            certs: Certs::default(),
            password: None,
        }
    }

    /// See [`Server::keep`].
    pub(crate) fn keep(&self, until: u32, folder: &Path) -> Result<()> {
        self.server.keep(until, folder)
    }

    /// Where clients connect to: `http://127.0.0.1:PORT`, or `https://…` with TLS.
    pub fn endpoint(&self) -> &str {
        &self.endpoint
    }

    /// The certificate of the authority that signed the server's certificate; with TLS only.
    pub fn ca(&self) -> Option<&Path> {
        self.certs.ca.as_deref()
    }

    /// A client's certificate; with [`Tls::Mutual`] only.
    pub fn cert(&self) -> Option<&Path> {
        self.certs.client.as_ref().map(|pair| pair.cert.as_path())
    }

    /// The key of [`Etcd::cert`].
    pub fn key(&self) -> Option<&Path> {
        self.certs.client.as_ref().map(|pair| pair.key.as_path())
    }

    /// The name of the user with all rights; with a password only.
    pub fn username(&self) -> Option<&str> {
        self.password.is_some().then_some(USERNAME)
    }

    /// The password it was started with.
    pub fn password(&self) -> Option<&str> {
        self.password.as_deref()
    }

    /// The server's process id.
    pub fn pid(&self) -> u32 {
        self.server.pid()
    }

    /// The temporary folder with everything the server writes.
    pub fn folder(&self) -> &Path {
        self.server.folder()
    }

    /// What the server has logged.
    pub fn log(&self) -> Result<String> {
        self.server.log()
    }

    /// Runs `etcdctl` with this server's endpoint, certificates and user, and gives its standard
    /// output.
    pub fn etcdctl(&self, args: &[&str]) -> Result<String> {
        let mut etcdctl = self.etcdctl_command()?;
        etcdctl.args(args);
        run(etcdctl, b"")?.into_stdout()
    }

    /// Forgets the history before a revision, so that a watch from there fails as compacted.
    pub fn compact(&self, revision: i64) -> Result<()> {
        self.etcdctl(&["compaction", &revision.to_string()])
            .map(drop)
    }

    /// Kills the server. Its data stay.
    pub fn kill(&self) -> Result<()> {
        self.server.kill()
    }

    /// Starts the server again after [`Etcd::kill`], on its port and with its data, and waits until it answers.
    pub fn start_again(&self) -> Result<()> {
        self.server.start_again()?;
        self.server.wait_ready(|log| self.objection(log))
    }

    fn start_on(port: u16, config: &EtcdConfig) -> Result<Self> {
        let folder = server::folder("etcd")?;
        let scheme = if config.tls == Tls::Off {
            "http"
        } else {
            "https"
        };
        let endpoint = format!("{scheme}://127.0.0.1:{port}");
        let mut etcd = command("etcd", folder.path())?;
        // A lone member never dials its peer address, so any free port will do.
        let peer = "http://127.0.0.1:0";
        etcd.arg("--data-dir").arg(folder.path().join("data"));
        etcd.arg(format!("--listen-client-urls={endpoint}"));
        etcd.arg(format!("--advertise-client-urls={endpoint}"));
        etcd.arg(format!("--listen-peer-urls={peer}"));
        etcd.arg(format!("--initial-advertise-peer-urls={peer}"));
        etcd.arg(format!("--initial-cluster=default={peer}"));
        // The cheapest: tests do not guard secrets.
        etcd.arg("--bcrypt-cost=4");
        if knows_no_fsync(folder.path())? {
            etcd.arg("--unsafe-no-fsync");
        }
        let certs = add_tls(&mut etcd, folder.path(), config.tls)?;
        let server = Server::start("etcd", folder, &etcd)?;
        let mut etcd = Self {
            server,
            endpoint,
            certs,
            password: None,
        };
        etcd.server.wait_ready(|log| etcd.objection(log))?;
        if let Some(password) = &config.password {
            etcd.etcdctl(&["user", "add", &format!("{USERNAME}:{password}")])?;
            etcd.etcdctl(&["auth", "enable"])?;
            etcd.password = Some(password.clone());
        }
        Ok(etcd)
    }

    /// Why it is not ready. The log is asked first, because another etcd may have taken the port
    /// and would answer as well.
    fn objection(&self, log: &str) -> Result<(), String> {
        if !log.contains("ready to serve client requests") {
            return Err("it does not serve yet".to_owned());
        }
        self.etcdctl(&["endpoint", "health"])
            .map(drop)
            .map_err(|error| error.to_string())
    }

    fn etcdctl_command(&self) -> Result<Command> {
        let mut etcdctl = command("etcdctl", self.folder())?;
        etcdctl
            .env("ETCDCTL_API", "3")
            .arg("--endpoints")
            .arg(&self.endpoint);
        if let Some(ca) = self.ca() {
            etcdctl.arg("--cacert").arg(ca);
        }
        if let Some(client) = &self.certs.client {
            etcdctl
                .arg("--cert")
                .arg(&client.cert)
                .arg("--key")
                .arg(&client.key);
        }
        if let Some(password) = &self.password {
            etcdctl.arg("--user").arg(format!("{USERNAME}:{password}"));
        }
        Ok(etcdctl)
    }
}

/// Makes certificates and tells etcd of them.
fn add_tls(etcd: &mut Command, folder: &Path, tls: Tls) -> Result<Certs> {
    if tls == Tls::Off {
        return Ok(Certs::default());
    }
    let authority = Authority::create(folder)?;
    let server = authority.server()?;
    etcd.arg("--cert-file")
        .arg(server.cert)
        .arg("--key-file")
        .arg(server.key);
    let client = match tls {
        Tls::Mutual => {
            // Only here: etcd 3.4 asks for certificates as soon as it has an authority.
            etcd.arg("--client-cert-auth")
                .arg("--trusted-ca-file")
                .arg(authority.cert());
            Some(authority.client()?)
        }
        Tls::Off | Tls::Server => None,
    };
    Ok(Certs {
        ca: Some(authority.cert().to_owned()),
        client,
    })
}

/// Whether this etcd can leave out waiting for the disk. 3.5 can; 3.4, which Debian 12 has, can
/// not.
fn knows_no_fsync(home: &Path) -> Result<bool> {
    let mut etcd = command("etcd", home)?;
    etcd.arg("--help");
    let help = run(etcd, b"")?;
    Ok(help.stdout.contains("--unsafe-no-fsync") || help.stderr.contains("--unsafe-no-fsync"))
}
