//! The disk under the store: full, damaged, lost; and backups.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

const TORTIE: &str = env!("CARGO_BIN_EXE_tortie");

/// How long anything may take.
const PATIENCE: Duration = Duration::from_secs(30);

const OPTIONS: [&str; 5] = [
    "up",
    "--listen=127.0.0.1:0",
    "--node=n1",
    "--without=agent",
    "--without=controllers",
];

/// A `tortie up` with a data folder, which is perhaps a small disk of its own.
struct Up {
    process: Child,
    data: PathBuf,
    /// What it says on stdout.
    said: PathBuf,
}

impl Up {
    /// On a disk of this size, which only that process sees; others reach it through the process.
    fn on_disk(folder: &Path, size: &str) -> Self {
        let data = folder.join("data");
        fs::create_dir(&data).unwrap();
        let script = format!(
            "mount -t tmpfs -o size={size},mode=700 tmpfs {0} && exec {TORTIE} --data-dir {0} {1}",
            data.display(),
            OPTIONS.join(" ")
        );
        let mut command = Command::new("unshare");
        command.args(["--mount", "--propagation=private", "sh", "-c", &script]);
        let process = start(&mut command, folder);
        let data = PathBuf::from(format!("/proc/{}/root{}", process.id(), data.display()));
        let said = folder.join("said");
        Self {
            process,
            data,
            said,
        }
        .ready()
    }

    fn in_folder(folder: &Path) -> Self {
        let data = folder.join("data");
        // A file that may not grow is an error of the disk, and no signal.
        let script = "trap '' XFSZ; exec \"$0\" \"$@\"";
        let mut command = Command::new("sh");
        command.args(["-c", script, TORTIE, "--data-dir"]);
        command.arg(&data).args(OPTIONS);
        let process = start(&mut command, folder);
        let said = folder.join("said");
        Self {
            process,
            data,
            said,
        }
        .ready()
    }

    fn ready(mut self) -> Self {
        until("the start", || {
            assert_eq!(self.process.try_wait().unwrap(), None);
            fs::read_to_string(&self.said).is_ok_and(|text| text.contains("Ready."))
        });
        self
    }

    fn readiness(&self) -> Output {
        let kubeconfig = self.data.join("kubeconfig");
        let mut command = Command::new("kubectl");
        command.arg("--kubeconfig").arg(kubeconfig);
        command.args(["get", "--raw", "/readyz"]).output().unwrap()
    }

    fn tortie(&self, arguments: &[&str]) -> Output {
        tortie(&self.data, arguments)
    }

    fn end(mut self) {
        let process = self.process.id().to_string();
        let killed = Command::new("kill").arg(process).status().unwrap();
        assert!(killed.success());
        self.process.wait().unwrap();
    }
}

impl Drop for Up {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn start(command: &mut Command, folder: &Path) -> Child {
    command
        .env_clear()
        .env(
            "PATH",
            "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        )
        .env("HOME", folder)
        .env("CALICO_NODENAME_FILE", folder.join("nodename"))
        .stdin(Stdio::null())
        .stdout(fs::File::create(folder.join("said")).unwrap())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

fn tortie(data: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(TORTIE);
    command.arg("--data-dir").arg(data).args(arguments);
    let home = std::env::temp_dir();
    command.env_clear().env("HOME", home).output().unwrap()
}

#[track_caller]
fn ok(output: Output) -> String {
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[track_caller]
fn refusal(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[track_caller]
fn until(what: &str, mut look: impl FnMut() -> bool) {
    let start = Instant::now();
    while !look() {
        assert!(start.elapsed() < PATIENCE, "waited in vain for {what}");
        thread::sleep(Duration::from_millis(50));
    }
}

fn policy(folder: &Path, name: &str) -> String {
    let file = folder.join(format!("{name}.yaml"));
    let text = format!(
        "apiVersion: projectcalico.org/v3\nkind: GlobalNetworkPolicy\nmetadata: {{name: {name}}}\nspec: {{selector: all()}}\n"
    );
    fs::write(&file, text).unwrap();
    file.display().to_string()
}

#[test]
fn a_full_disk_is_said_and_writes_work_again_once_there_is_room() {
    let folder = tempfile::tempdir().unwrap();
    let up = Up::on_disk(folder.path(), "64m");
    ok(up.tortie(&["apply", "-f", &policy(folder.path(), "first")]));
    let filler = up.data.join("filler");
    let mut file = fs::File::create(&filler).unwrap();
    while file.write_all(&[1; 1 << 13]).is_ok() {}
    drop(file);

    let said = refusal(&up.tortie(&["apply", "-f", &policy(folder.path(), "second")]));
    assert!(said.contains("make room on it"), "{said}");
    let readiness = up.readiness();
    assert!(!readiness.status.success(), "{readiness:?}");
    let names = ok(up.tortie(&["get", "gnp", "-o", "name"]));
    assert_eq!(names, "globalnetworkpolicy/first\n", "reads go on");

    fs::remove_file(&filler).unwrap();
    until("readiness", || up.readiness().status.success());
    ok(up.tortie(&["apply", "-f", &policy(folder.path(), "second")]));
    let names = ok(up.tortie(&["get", "gnp", "-o", "name"]));
    assert_eq!(
        names,
        "globalnetworkpolicy/first\nglobalnetworkpolicy/second\n"
    );
    let checked = ok(up.tortie(&["datastore", "check"]));
    assert!(checked.contains("is whole"), "{checked}");
}

#[test]
fn after_an_error_of_the_disk_all_that_was_answered_is_there() {
    let folder = tempfile::tempdir().unwrap();
    let up = Up::in_folder(folder.path());
    let store = up.data.join("tortie.redb");
    let limit = |size: &str| {
        let (process, size) = (up.process.id().to_string(), format!("--fsize={size}:"));
        let limited = Command::new("prlimit")
            .args(["--pid", &process, &size])
            .status();
        assert!(limited.unwrap().success());
    };
    limit(&fs::metadata(&store).unwrap().len().to_string());
    let mut stored = Vec::new();
    let said = loop {
        let name = format!("p{:03}", stored.len());
        let file = policy(folder.path(), &name);
        let text = fs::read_to_string(&file).unwrap();
        let long = format!("metadata: {{annotations: {{a: {}}}, ", "x".repeat(200_000));
        fs::write(&file, text.replace("metadata: {", &long)).unwrap();
        let output = up.tortie(&["apply", "-f", &file]);
        if !output.status.success() {
            break refusal(&output);
        }
        stored.push(format!("globalnetworkpolicy/{name}\n"));
        assert!(stored.len() < 200, "the file grew");
    };
    assert!(said.contains("cannot write"), "{said}");
    limit("unlimited");
    until("readiness", || up.readiness().status.success());
    ok(up.tortie(&["apply", "-f", &policy(folder.path(), "q")]));
    let names = ok(up.tortie(&["get", "gnp", "-o", "name"]));
    let expected = stored.concat() + "globalnetworkpolicy/q\n";
    // What was refused may be there all the same, but nothing else.
    let refused = format!("globalnetworkpolicy/p{:03}\n", stored.len());
    assert_eq!(names.replace(&refused, ""), expected);
    ok(up.tortie(&["datastore", "check"]));
}

#[test]
fn a_backup_is_made_while_it_runs_and_restored_when_it_does_not() {
    let folder = tempfile::tempdir().unwrap();
    let backup = folder.path().join("backup").display().to_string();
    let up = Up::in_folder(folder.path());
    ok(up.tortie(&["apply", "-f", &policy(folder.path(), "first")]));
    ok(up.tortie(&["datastore", "backup", &backup]));
    ok(up.tortie(&["apply", "-f", &policy(folder.path(), "second")]));
    ok(up.tortie(&["datastore", "check"]));
    let said = refusal(&up.tortie(&["datastore", "restore", &backup, "--replace"]));
    assert!(said.contains("end it first"), "{said}");
    let data = up.data.clone();
    up.end();

    let said = refusal(&tortie(&data, &["datastore", "restore", &backup]));
    assert!(said.contains("--replace"), "{said}");
    let said = ok(tortie(
        &data,
        &["datastore", "restore", &backup, "--replace"],
    ));
    assert!(said.contains("is kept as"), "{said}");
    let names = ok(tortie(&data, &["get", "gnp", "-o", "name"]));
    assert_eq!(names, "globalnetworkpolicy/first\n");
    let again = Up::in_folder(folder.path());
    let said = ok(again.tortie(&["get", "gnp", "-o", "name"]));
    assert_eq!(said, "globalnetworkpolicy/first\n");
}

/// What the numbers in front of `MiB` are.
fn sizes(said: &str) -> Vec<f64> {
    let words: Vec<&str> = said.split_whitespace().collect();
    let pairs = words.windows(2).filter(|pair| pair[1].starts_with("MiB"));
    pairs.map(|pair| pair[0].parse().unwrap()).collect()
}

#[test]
fn the_file_is_compacted_while_it_is_in_use_and_when_it_is_not() {
    let folder = tempfile::tempdir().unwrap();
    let up = Up::in_folder(folder.path());
    ok(up.tortie(&["apply", "-f", &policy(folder.path(), "first")]));
    let large = folder.path().join("large.yaml");
    let text = |number: usize| {
        format!(
            "apiVersion: projectcalico.org/v3\nkind: GlobalNetworkSet\nmetadata: {{name: s{number}, annotations: {{a: {}}}}}\n",
            "x".repeat(200_000)
        )
    };
    let all: Vec<String> = (0..40).map(text).collect();
    fs::write(&large, all.join("---\n")).unwrap();
    let large = large.display().to_string();
    for _ in 0..3 {
        ok(up.tortie(&["apply", "-f", &large]));
        ok(up.tortie(&["delete", "-f", &large]));
    }
    let grown = fs::metadata(up.data.join("tortie.redb")).unwrap().len();
    let said = ok(up.tortie(&["datastore", "compact"]));
    let [after, before] = sizes(&said)[..] else {
        panic!("{said}");
    };
    assert!(after < before, "{said}");
    let shrunk = fs::metadata(up.data.join("tortie.redb")).unwrap().len();
    assert!(shrunk < grown, "{shrunk} {grown}");
    // Readers and writers go on.
    ok(up.tortie(&["apply", "-f", &policy(folder.path(), "second")]));
    let expected = "globalnetworkpolicy/first\nglobalnetworkpolicy/second\n";
    assert_eq!(ok(up.tortie(&["get", "gnp", "-o", "name"])), expected);
    assert!(up.readiness().status.success());
    let data = up.data.clone();
    up.end();

    let said = ok(tortie(&data, &["datastore", "compact"]));
    assert!(said.contains("of the disk, and took"), "{said}");
    assert_eq!(ok(tortie(&data, &["get", "gnp", "-o", "name"])), expected);
    ok(tortie(&data, &["datastore", "check"]));
}

#[test]
fn a_store_that_was_lost_is_not_taken_for_a_new_one() {
    let folder = tempfile::tempdir().unwrap();
    let up = Up::in_folder(folder.path());
    let data = up.data.clone();
    up.end();
    let store = data.join("tortie.redb");
    let whole = fs::read(&store).unwrap();

    fs::write(&store, "").unwrap();
    for arguments in [&["get", "gnp"][..], &OPTIONS] {
        let said = refusal(&tortie(&data, arguments));
        assert!(said.contains("is empty, though `ca.key`"), "{said}");
        assert!(said.contains("datastore restore"), "{said}");
    }
    fs::remove_file(&store).unwrap();
    let said = refusal(&tortie(&data, &["get", "gnp"]));
    assert!(said.contains("is not there, though"), "{said}");
    fs::write(&store, &whole[..whole.len() / 2]).unwrap();
    let said = refusal(&tortie(&data, &["datastore", "check"]));
    assert!(
        said.contains("damaged") && said.contains("backup"),
        "{said}"
    );
}
