//! Which datastore is meant where nobody says so.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use tempfile::TempDir;

/// A user without rights.
const NOBODY: u32 = 65534;

const POLICY: &str =
    "apiVersion: projectcalico.org/v3\nkind: GlobalNetworkPolicy\nmetadata: {name: p}\nspec: {}\n";

/// A user with a home folder and no settings.
struct User {
    home: TempDir,
}

impl User {
    fn new() -> Self {
        let home = tempfile::tempdir().unwrap();
        fs::set_permissions(home.path(), fs::Permissions::from_mode(0o777)).unwrap();
        fs::write(home.path().join("policy.yaml"), POLICY).unwrap();
        Self { home }
    }

    /// Gives the user the kubeconfig of a cluster that is not there.
    fn with_kubeconfig(self) -> Self {
        let folder = self.home.path().join(".kube");
        fs::create_dir(&folder).unwrap();
        let text = "apiVersion: v1\nkind: Config\ncurrent-context: c\n\
                    contexts: [{name: c, context: {cluster: c, user: u}}]\n\
                    clusters: [{name: c, cluster: {server: 'http://127.0.0.1:1'}}]\n\
                    users: [{name: u, user: {}}]\n";
        fs::write(folder.join("config"), text).unwrap();
        self
    }

    fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command.env_clear().env("HOME", self.home.path());
        command.current_dir(self.home.path()).uid(NOBODY);
        command
    }

    fn apply(&self, program: &Path, options: &[&str]) -> Output {
        let mut command = self.command(program);
        let words = ["apply", "-f", "policy.yaml"];
        command.args(options).args(words).output().unwrap()
    }

    fn own_store(&self) -> PathBuf {
        self.home.path().join(".local/share/tortie/tortie.redb")
    }
}

fn tortie() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_tortie"))
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn without_anything_it_is_a_file_of_the_user_and_that_is_said() {
    let user = User::new();
    let output = user.apply(tortie(), &[]);
    assert!(output.status.success(), "{}", said(&output));
    let file = user.own_store();
    let told = format!("Writing to the embedded datastore {}", file.display());
    assert!(said(&output).contains(&told), "{}", said(&output));
    assert!(file.exists());
}

#[test]
fn a_kubeconfig_in_its_usual_place_means_its_cluster() {
    let user = User::new().with_kubeconfig();
    let output = user.apply(tortie(), &[]);
    assert_eq!(output.status.code(), Some(1));
    assert!(said(&output).contains("127.0.0.1:1"), "{}", said(&output));
    assert!(!user.own_store().exists());
    for options in [&["--datastore=embedded"][..], &["--data-dir=here"]] {
        let output = user.apply(tortie(), options);
        assert!(output.status.success(), "{}", said(&output));
    }
    assert!(user.home.path().join("here/tortie.redb").exists());
}

#[test]
fn under_the_name_of_calicoctl_it_never_is_a_file() {
    let user = User::new();
    let calicoctl = user.home.path().join("calicoctl");
    symlink(tortie(), &calicoctl).unwrap();
    let output = user.apply(&calicoctl, &[]);
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    assert!(!user.own_store().exists());
}

#[test]
fn who_needs_root_says_so_before_anything_else() {
    for (arguments, code) in [
        (&["agent"][..], 1),
        (&["up", "--datastore=etcdv3"], 1),
        (&["node", "verify"], 2),
        (&["cni", "install"], 1),
    ] {
        let user = User::new();
        let output = user.command(tortie()).args(arguments).output().unwrap();
        let said = said(&output);
        let words = arguments.iter().filter(|word| !word.starts_with('-'));
        let name = words.copied().collect::<Vec<_>>().join(" ");
        assert_eq!(output.status.code(), Some(code), "{name}: {said}");
        let needed = format!("for which it needs root: use `sudo tortie {name}`\n");
        assert!(
            said.starts_with(&format!("Error: `tortie {name}` ")) && said.ends_with(&needed),
            "{said}"
        );
        assert!(!user.own_store().exists(), "{name}");
    }
}
