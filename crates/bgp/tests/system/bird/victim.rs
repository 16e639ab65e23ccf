use std::env;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

use rustix::process::{Pid, Signal, kill_process_group};
use tortie_bgp::bird::daemon::Options;

use super::daemon::{Held, options};
use super::site::{BIRD, Pair, block_on};

/// Set in the process that is to be killed, this same test once more: the folder of its BIRD.
const VICTIM: &str = "TORTIE_BIRD_VICTIM";

const MARK: &str = "victim: ";

#[test]
fn bird_outlives_the_process_group_that_started_it() {
    if let Some(folder) = env::var_os(VICTIM) {
        be_killed(Path::new(&folder));
    }
    let pair = Pair::new();
    let mut command = Command::new(env::current_exe().unwrap());
    command
        .args([
            "--exact",
            "bird::victim::bird_outlives_the_process_group_that_started_it",
        ])
        .arg("--nocapture")
        .env(VICTIM, pair.a.folder())
        .process_group(0)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    let mut victim = pair.a.namespace().run(|| command.spawn()).unwrap().unwrap();
    let stdout = BufReader::new(victim.stdout.take().unwrap());
    let found = stdout
        .lines()
        .find_map(|line| Some(line.unwrap().split_once(MARK)?.1.to_owned()));
    let bird: u32 = found.expect("it has a BIRD").parse().unwrap();

    let group = Pid::from_raw(victim.id().try_into().unwrap()).unwrap();
    kill_process_group(group, Signal::KILL).unwrap();
    victim.wait().unwrap();
    let take_over = || {
        block_on(async {
            // It still does what it is for, without anybody to tell of it.
            pair.b.start();
            pair.await_sessions().await;
            assert_eq!(pair.a.birds(), [bird]);
            let taken = Held::run(options(&pair.a)).other_than(0).await;
            assert_eq!((taken.process, taken.was_taken_over), (bird, true));
        });
    };
    pair.a.namespace().run(take_over).unwrap();
}

fn be_killed(folder: &Path) -> ! {
    block_on(async {
        let config = folder.join("conf/bird.conf");
        let options = Options::new(BIRD.as_ref(), &config, &folder.join("bird.ctl"));
        let running = Held::run(options).other_than(0).await;
        let mut stdout = std::io::stdout();
        writeln!(stdout, "\n{MARK}{}", running.process).unwrap();
        stdout.flush().unwrap();
        std::future::pending().await
    })
}
