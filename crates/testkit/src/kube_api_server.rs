//! Starts a kube-apiserver 1.20 on an etcd of its own, and runs `kubectl` against it.
//!
//! There are no controllers, no scheduler and no nodes: objects stay as they are written. RBAC is
//! on; the token is of a member of `system:masters`. The `ServiceAccount` admission plugin is off,
//! because nobody would create the accounts that pods would need.
//!
//! It knows users also by certificates of its authority, and passes requests on to servers that are registered with an
//! `APIService`, with a certificate of an authority for that alone. Such a server must be reached through a Service. One
//! on this machine can be: a Service of type `ExternalName` for `localhost`, with the server's port in the `APIService`.

use std::{
    env,
    fs::{self, File, OpenOptions},
    io::{Read as _, Write as _},
    os::unix::{fs::OpenOptionsExt as _, process::parent_id},
    path::{Path, PathBuf},
    sync::OnceLock,
};

use crate::{
    certs::{self, Authority},
    command::{Output, command, require, run},
    error::{Result, cannot},
    etcd::Etcd,
    server::{self, Server},
};

/// The name of the binary that `setup/test-deps` builds.
const BINARY: &str = "kube-apiserver-1.20.2";

/// The file with the tokens that the server knows.
const TOKENS: &str = "tokens.csv";

/// The file in its folder that clients are told of.
const KUBECONFIG: &str = "kubeconfig";

/// A running kube-apiserver with no objects but its own. It ends when it is dropped.
#[derive(Debug)]
pub struct KubeApiServer {
    // Before etcd: dropped first, so that it does not complain about a missing etcd.
    server: Server,
    etcd: Etcd,
    url: String,
    token: String,
    authority: Authority,
    kubeconfig: PathBuf,
}

/// A run of nextest, as one test program sees it.
struct Run {
    /// The process that ends with the run.
    runner: u32,
    /// What processes of this program tell each other.
    folder: PathBuf,
}

impl Run {
    fn current() -> Option<Self> {
        let run = env::var("NEXTEST_RUN_ID").ok()?;
        let program = env::var("NEXTEST_BINARY_ID").ok()?.replace([':', '/'], "-");
        Some(Self {
            runner: parent_id(),
            folder: env::temp_dir().join(format!("tortie-run-{run}-{program}")),
        })
    }
}

// === impl KubeApiServer ===

impl KubeApiServer {
    /// Starts etcd and kube-apiserver, and waits until its namespaces are there.
    pub fn start() -> Result<Self> {
        require("kubectl")?;
        require(cached_binary())?;
        // Each attempt has an empty etcd: an earlier one may have written to its own.
        server::on_free_port(|port| Self::start_on(port, Etcd::start()?))
    }

    /// One kube-apiserver for all tests of a test program, started on first use. nextest gives each test a process: the
    /// server then lives until the run ends. Otherwise it ends, and its folder goes, when the process ends.
    pub fn shared() -> &'static Self {
        static SHARED: OnceLock<Result<KubeApiServer>> = OnceLock::new();
        match SHARED
            .get_or_init(|| Run::current().map_or_else(Self::start, |run| Self::of_run(&run)))
        {
            Ok(server) => server,
            Err(error) => panic!("no kube-apiserver for the tests: {error:?}"),
        }
    }

    /// Does something once for the server, such as installing CRDs, however many processes ask for it; others wait.
    pub fn prepare(&self, what: &str, how: impl FnOnce()) -> Result<()> {
        let done = self.folder().join(format!("{what}.done"));
        let lock = File::create(self.folder().join(format!("{what}.lock")));
        let lock = lock.map_err(cannot("make a lock"))?;
        lock.lock().map_err(cannot(format!("wait for {what}")))?;
        if !done.exists() {
            how();
            write_private(&done, "")?;
        }
        Ok(())
    }

    /// Where clients connect to: `https://127.0.0.1:PORT`.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The bearer token of a user in the group `system:masters`.
    pub fn token(&self) -> &str {
        &self.token
    }

    /// The certificate of the authority that signed the server's certificate.
    pub fn ca(&self) -> &Path {
        self.authority.cert()
    }

    /// The files of a certificate and key for a user, in PEM.
    pub fn client_certificate(&self, user: &str, groups: &[&str]) -> Result<(PathBuf, PathBuf)> {
        let mut subject = format!("/CN={user}");
        for group in groups {
            subject.push_str("/O=");
            subject.push_str(group);
        }
        let pair = self
            .authority
            .client_named(&format!("user-{user}"), &subject)?;
        Ok((pair.cert, pair.key))
    }

    /// A kubeconfig with the address, the authority and the token.
    pub fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    /// The etcd that holds its objects, under `/registry`.
    pub fn etcd(&self) -> &Etcd {
        &self.etcd
    }

    /// The server's process id.
    pub fn pid(&self) -> u32 {
        self.server.pid()
    }

    /// The temporary folder with everything the server and `kubectl` write.
    pub fn folder(&self) -> &Path {
        self.server.folder()
    }

    /// What the server has logged.
    pub fn log(&self) -> Result<String> {
        self.server.log()
    }

    /// Runs `kubectl`. An error says that it did not run; whether it succeeded is in the
    /// [`Output`].
    pub fn kubectl(&self, args: &[&str]) -> Result<Output> {
        self.kubectl_stdin(args, "")
    }

    /// Runs `kubectl` with a standard input, as for `apply -f -`.
    pub fn kubectl_stdin(&self, args: &[&str], input: &str) -> Result<Output> {
        // Its HOME is the temporary folder, so its discovery cache is too.
        let mut kubectl = command("kubectl", self.folder())?;
        kubectl.arg("--kubeconfig").arg(&self.kubeconfig).args(args);
        run(kubectl, input.as_bytes())
    }

    /// Kills the server. Its objects stay, in etcd.
    pub fn kill(&self) -> Result<()> {
        self.server.kill()
    }

    /// Starts the server again after [`KubeApiServer::kill`], on its port, and waits until it answers. It reads its
    /// tokens anew.
    pub fn start_again(&self) -> Result<()> {
        self.server.start_again()?;
        self.server.wait_ready(|log| self.objection(log))
    }

    /// The file with the tokens that the server knows, as `token,user,uid,"group"` lines. It is read at each start.
    pub fn token_file(&self) -> PathBuf {
        self.folder().join(TOKENS)
    }

    /// That of a run, which the first one who asks starts.
    fn of_run(run: &Run) -> Result<Self> {
        fs::create_dir_all(&run.folder).map_err(cannot("make a folder for the run"))?;
        // Who comes second waits here until the server is ready.
        let lock = File::create(run.folder.join("lock")).map_err(cannot("make a lock"))?;
        lock.lock()
            .map_err(cannot("wait for the server of the run"))?;
        let record = run.folder.join("server");
        if let Ok(text) = fs::read_to_string(&record) {
            return Ok(Self::of_another(&text));
        }
        let server = Self::start()?;
        server.etcd.keep(run.runner, &run.folder)?;
        server.server.keep(run.runner, &run.folder)?;
        write_private(&record, &server.to_record())?;
        Ok(server)
    }

    /// A line for each thing that others need to know.
    fn to_record(&self) -> String {
        let (folder, etcd) = (self.folder().display(), &self.etcd);
        format!(
            "{}\n{}\n{folder}\n{}\n{}\n{}\n{}\n",
            self.url,
            self.token,
            self.pid(),
            etcd.endpoint(),
            etcd.folder().display(),
            etcd.pid()
        )
    }

    fn of_another(record: &str) -> Self {
        let mut lines = record.lines();
        let mut next = || {
            lines
                .next()
                .expect("a record is written as a whole")
                .to_owned()
        };
        let number = |text: String| text.parse().expect("a process id");
        let (url, token, folder) = (next(), next(), PathBuf::from(next()));
        Self {
            kubeconfig: folder.join(KUBECONFIG),
            authority: Authority::open(&folder),
            server: Server::of_another("kube-apiserver", folder, number(next())),
            etcd: Etcd::of_another(next(), next().into(), number(next())),
            url,
            token,
        }
    }

    fn start_on(port: u16, etcd: Etcd) -> Result<Self> {
        let folder = server::folder("kube-apiserver")?;
        let path = folder.path();
        let url = format!("https://127.0.0.1:{port}");
        let authority = Authority::create(path)?;
        let pair = authority.server()?;
        let proxy_folder = path.join("front-proxy");
        fs::create_dir(&proxy_folder)
            .map_err(cannot(format!("make {}", proxy_folder.display())))?;
        let proxy_authority = Authority::create(&proxy_folder)?;
        let proxy = proxy_authority.client_named("client", "/CN=front-proxy-client")?;
        let signer = certs::rsa_key(path, "service-account.key")?;
        let token = random_token()?;
        let tokens = path.join(TOKENS);
        write_private(&tokens, &format!("{token},admin,1,\"system:masters\"\n"))?;
        let kubeconfig = path.join(KUBECONFIG);
        write_private(
            &kubeconfig,
            &kubeconfig_text(&url, authority.cert(), &token),
        )?;

        let mut apiserver = command(cached_binary(), path)?;
        apiserver.arg(format!("--etcd-servers={}", etcd.endpoint()));
        apiserver
            .arg("--bind-address=127.0.0.1")
            .arg(format!("--secure-port={port}"));
        apiserver.arg("--cert-dir").arg(path);
        apiserver.arg("--tls-cert-file").arg(pair.cert);
        apiserver.arg("--tls-private-key-file").arg(pair.key);
        apiserver.arg("--token-auth-file").arg(tokens);
        apiserver.arg("--client-ca-file").arg(authority.cert());
        apiserver
            .arg("--requestheader-client-ca-file")
            .arg(proxy_authority.cert());
        apiserver
            .arg("--requestheader-allowed-names=front-proxy-client")
            .arg("--requestheader-username-headers=X-Remote-User")
            .arg("--requestheader-group-headers=X-Remote-Group")
            .arg("--requestheader-extra-headers-prefix=X-Remote-Extra-");
        apiserver.arg("--proxy-client-cert-file").arg(proxy.cert);
        apiserver.arg("--proxy-client-key-file").arg(proxy.key);
        apiserver.arg("--service-account-key-file").arg(&signer);
        apiserver
            .arg("--service-account-signing-key-file")
            .arg(signer);
        apiserver.arg("--service-account-issuer=https://kubernetes.default.svc");
        apiserver.arg("--service-cluster-ip-range=10.96.0.0/16");
        apiserver.arg("--authorization-mode=RBAC");
        apiserver.arg("--allow-privileged=true");
        apiserver.arg("--disable-admission-plugins=ServiceAccount");

        let server = Server::start("kube-apiserver", folder, &apiserver)?;
        let apiserver = Self {
            server,
            etcd,
            url,
            token,
            authority,
            kubeconfig,
        };
        apiserver
            .server
            .wait_ready(|log| apiserver.objection(log))?;
        Ok(apiserver)
    }

    /// Why it is not ready. Its certificate is signed by an authority of its own, so no other
    /// server's answer can be taken for its.
    fn objection(&self, log: &str) -> Result<(), String> {
        if !log.contains("Serving securely on") {
            return Err("it does not serve yet".to_owned());
        }
        // The namespace `default` is made a moment after the server calls itself ready.
        for question in [
            &["get", "--raw=/readyz"][..],
            &["get", "namespace", "default"],
        ] {
            let answer = self.kubectl(question).and_then(Output::into_stdout);
            answer.map_err(|error| error.to_string())?;
        }
        Ok(())
    }
}

/// Where `setup/test-deps` puts it.
fn cached_binary() -> PathBuf {
    let folder = |name| {
        env::var_os(name)
            .filter(|value| !value.is_empty())
            .map(PathBuf::from)
    };
    let cache = folder("XDG_CACHE_HOME")
        .unwrap_or_else(|| folder("HOME").unwrap_or_default().join(".cache"));
    cache.join("tortie").join(BINARY)
}

fn kubeconfig_text(url: &str, ca: &Path, token: &str) -> String {
    let ca = ca.display();
    format!(
        r#"apiVersion: v1
kind: Config
clusters:
- name: testkit
  cluster:
    server: "{url}"
    certificate-authority: "{ca}"
users:
- name: admin
  user:
    token: "{token}"
contexts:
- name: testkit
  context:
    cluster: testkit
    user: admin
current-context: testkit
"#
    )
}

/// Any process on this machine can reach the port, so the token is a secret.
fn random_token() -> Result<String> {
    let mut bytes = [0; 16];
    File::open("/dev/urandom")
        .and_then(|mut file| file.read_exact(&mut bytes))
        .map_err(cannot("read /dev/urandom"))?;
    Ok(format!("{:032x}", u128::from_ne_bytes(bytes)))
}

fn write_private(path: &Path, text: &str) -> Result<()> {
    OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)
        .and_then(|mut file| file.write_all(text.as_bytes()))
        .map_err(cannot(format!("write {}", path.display())))
}
