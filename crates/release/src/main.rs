//! Makes what is published of a built program: an OCI image, a Debian package, an archive.
//!
//! ```text
//! programs, units, pages ─▶ tree: paths with contents ─▶ tar ─┬─▶ oci: layers, config, index
//!                                                             ├─▶ deb: control and data
//!                                                             └─▶ archive
//! cargo metadata ─▶ sbom: every crate that is in the program
//! ```
//!
//! # Invariants
//! - The same inputs make the same bytes: files are in order, with one time and no owner's name.

mod deb;
mod digest;
mod libraries;
mod oci;
mod sbom;
mod tree;

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, Result};
use clap::{Args, Parser, Subcommand};

use tree::Tree;

const EXAMPLES: &str = "\
Examples:
  tortie-release image --program target/dist/tortie --add bird --name tortie:0.1.0 --output tortie.oci.tar
  tortie-release deb --program target/dist/tortie --output tortie.deb
  tortie-release archive --program target/dist/tortie --output tortie.tar.gz
  tortie-release sbom --output tortie.spdx.json

setup/image and setup/release build the program first.";

/// Makes what is published.
#[derive(Debug, Parser)]
#[command(after_help = EXAMPLES, version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// An image in the layout of the Open Container Initiative, as one archive.
    Image(Image),
    /// A package for Debian and its relatives.
    Deb(Package),
    /// The program with its pages and completions.
    Archive(Package),
    /// Which crates, of which versions and licences, are in the program (SPDX).
    Sbom(Made),
}

#[derive(Debug, Args)]
struct Image {
    #[command(flatten)]
    package: Package,
    /// A program of this machine that goes in too, with the libraries that it needs: bird, or ipset, iptables-restore and
    /// ip6tables-restore for the iptables data plane.
    #[arg(long, value_name = "NAME")]
    add: Vec<String>,
    /// The name that a runtime knows it by.
    #[arg(long, value_name = "NAME")]
    name: String,
}

#[derive(Debug, Args)]
struct Package {
    /// The built program.
    #[arg(long, value_name = "FILE")]
    program: PathBuf,
    /// What the package and the archive are called by.
    #[arg(long, value_name = "VERSION", default_value = env!("CARGO_PKG_VERSION"))]
    version: String,
    /// For which machines it is built, as Go and Debian call them.
    #[arg(long, value_name = "NAME", default_value = "amd64")]
    arch: String,
    #[command(flatten)]
    made: Made,
}

#[derive(Debug, Args)]
struct Made {
    /// When it was made, in seconds since 1970.
    #[arg(
        long,
        env = "SOURCE_DATE_EPOCH",
        value_name = "SECONDS",
        default_value_t = 0
    )]
    time: u64,
    /// Where it is written.
    #[arg(long, value_name = "FILE")]
    output: PathBuf,
}

fn main() -> ExitCode {
    match run(Cli::parse().command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(io::stderr(), "Error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(command: Command) -> Result<()> {
    let (output, bytes) = match command {
        Command::Image(args) => {
            let bytes = image(&args)?;
            (args.package.made.output, bytes)
        }
        Command::Deb(args) => {
            let tree = installed(&args)?;
            let bytes = deb::package(&tree, &args.version, &args.arch, args.made.time)?;
            (args.made.output, bytes)
        }
        Command::Archive(args) => {
            let folder = format!("tortie-{}-{}", args.version, args.arch);
            let mut tree = Tree::default();
            for (path, file) in installed(&args)?.files() {
                let name = path.strip_prefix("usr/").unwrap_or(path);
                tree.put(&format!("{folder}/{name}"), file.clone());
            }
            let bytes = digest::gzip(&tree.tar(args.made.time)?)?;
            (args.made.output, bytes)
        }
        Command::Sbom(args) => (args.output, sbom::document(args.time)?.into_bytes()),
    };
    let written = fs::write(&output, &bytes);
    written.with_context(|| format!("{} cannot be written", output.display()))?;
    let (path, digest) = (output.display(), digest::sha256(&bytes));
    writeln!(io::stdout(), "{digest}  {path}")?;
    Ok(())
}

/// The program alone, with what was asked for besides.
fn image(args: &Image) -> Result<Vec<u8>> {
    let package = &args.package;
    let mut base = Tree::default();
    // Where programs look for their temporary files, and plugins for the node's folders.
    for folder in ["tmp", "var/run", "var/lib", "var/log"] {
        base.make_folder(folder);
    }
    for name in &args.add {
        libraries::add(&mut base, name)?;
    }
    libraries::add_of(&mut base, &package.program)?;
    let mut own = Tree::default();
    own.put_program("usr/bin/tortie", &package.program)?;
    own.put_text(
        "usr/share/doc/tortie/sbom.spdx.json",
        &sbom::document(package.made.time)?,
    );
    let layers = [base.tar(package.made.time)?, own.tar(package.made.time)?];
    oci::archive(
        &layers,
        args.name.as_str(),
        &package.arch,
        package.made.time,
    )
}

/// What a machine gets.
fn installed(args: &Package) -> Result<Tree> {
    let mut tree = Tree::default();
    tree.put_program("usr/bin/tortie", &args.program)?;
    for (name, text) in units(&args.program)? {
        tree.put_text(&format!("usr/lib/systemd/system/{name}"), &text);
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2);
    let licence = fs::read_to_string(root.unwrap_or(Path::new("/")).join("LICENSE"))?;
    tree.put_text("usr/share/doc/tortie/copyright", &licence);
    tree.put_text(
        "usr/share/doc/tortie/sbom.spdx.json",
        &sbom::document(args.made.time)?,
    );
    tree.put_pages(&args.program)?;
    tree.put_completions(&args.program)?;
    Ok(tree)
}

/// Services that a package brings; none is started by it.
fn units(program: &Path) -> Result<[(&'static str, String); 3]> {
    let up = tree::output(std::process::Command::new(program).args(["up", "--print-systemd"]))?;
    let built = fs::canonicalize(program)?.display().to_string();
    Ok([
        ("tortie.service", up.replace(&built, "/usr/bin/tortie")),
        (
            "tortie-agent.service",
            include_str!("../units/tortie-agent.service").to_owned(),
        ),
        (
            "tortie-bgp.service",
            include_str!("../units/tortie-bgp.service").to_owned(),
        ),
    ])
}
