//! Hosts on this machine: namespaces with a network between them.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::thread::sleep;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use tempfile::TempDir;

use crate::succeed;

/// Has the bridge that the others are linked to; jobs are started there.
pub(super) const HEAD: &str = "h0";
/// The name of every host's link.
pub(super) const LINK: &str = "eth0";
/// Longest wait for versions, and for the end of a job.
const PATIENCE: Duration = Duration::from_secs(60);
const NAP: Duration = Duration::from_millis(20);

/// Some hosts, which end with it.
pub(super) struct Cluster {
    place: TempDir,
    hosts: Vec<NamespaceHost>,
}

struct NamespaceHost {
    name: &'static str,
    /// Its process outside; all of the host's processes end with it.
    keeper: Child,
}

impl Drop for NamespaceHost {
    fn drop(&mut self) {
        self.keeper.kill().ok();
        self.keeper.wait().ok();
    }
}

impl Cluster {
    /// Starts [`HEAD`] and these hosts.
    pub(super) fn new(hosts: impl IntoIterator<Item = &'static str>) -> Result<Self> {
        let place = tempfile::tempdir()?;
        for name in ["shared", "mount", "keepers"] {
            fs::create_dir(place.path().join(name))?;
        }
        let mut cluster = Self { place, hosts: Vec::new() };
        // What mpirun starts its daemons with on another host. Their own files are in the host's
        // memory: hosts have one /tmp, and the same process numbers.
        write_program(
            &cluster.agent(),
            "spaces=/proc/$(cat \"${0%/*}/keepers/$1\")/ns\nshift\nexport TMPDIR=/dev/shm\nexec nsenter \
             --net=$spaces/net --mount=$spaces/mnt --uts=$spaces/uts --pid=$spaces/pid_for_children sh -c \"$*\"",
        )?;
        for name in [HEAD].into_iter().chain(hosts) {
            cluster.start(name)?;
        }
        Ok(cluster)
    }

    pub(super) fn place(&self) -> &Path {
        self.place.path()
    }

    pub(super) fn agent(&self) -> PathBuf {
        self.place().join("agent")
    }

    /// The path of a file or directory below the one that hosts share, as they see it.
    pub(super) fn dir(&self, name: &str) -> PathBuf {
        self.place().join("mount").join(name)
    }

    /// The names of the hosts that live, without [`HEAD`].
    pub(super) fn names(&self) -> impl Iterator<Item = &'static str> {
        let living = self.hosts.iter().filter(|host| memory(host).exists());
        living.map(|host| host.name).filter(|&name| name != HEAD)
    }

    fn start(&mut self, name: &'static str) -> Result<()> {
        let place = self.place().display();
        let script = format!(
            "hostname {name} && mount -t proc proc /proc && mount -t tmpfs {name} /dev/shm && mount --bind \
             {place}/shared {place}/mount && touch {place}/keepers/{name}-is-up && exec sleep infinity"
        );
        // However this process ends, its hosts end with it.
        let spaces = "--pdeathsig KILL unshare --mount --uts --net --pid --fork --kill-child sh -c";
        let mut keeper = Command::new("setpriv");
        let keeper = keeper.args(spaces.split(' ')).arg(script).spawn().context("setpriv")?;
        let id = keeper.id();
        fs::write(self.place().join("keepers").join(name), id.to_string())?;
        self.hosts.push(NamespaceHost { name, keeper });
        let is_up = self.place().join("keepers").join(format!("{name}-is-up"));
        wait_until(&format!("host {name}: is this root?"), || is_up.exists())?;
        let link = match name {
            HEAD => format!("{LINK} type bridge"),
            _ => format!("{name} master {LINK} up type veth peer name {LINK} netns {id}"),
        };
        succeed(self.command(Path::new("ip"))?.args(["link", "add"]).args(link.split(' ')))?;
        let address = address(name);
        self.succeed_on(
            name,
            &format!("ip addr add {address}/24 dev {LINK} && ip link set {LINK} up && ip link set lo up"),
        )
        .map(|_| ())
    }

    fn host(&self, name: &str) -> Result<&NamespaceHost> {
        self.hosts.iter().find(|host| host.name == name).with_context(|| format!("no host {name}"))
    }

    /// A command in the network of the hosts, and in no other of their namespaces.
    pub(super) fn command(&self, program: &Path) -> Result<Command> {
        let mut command = Command::new("nsenter");
        command.arg(format!("--net=/proc/{}/ns/net", self.host(HEAD)?.keeper.id())).arg(program);
        command.current_dir(self.place());
        Ok(command)
    }

    /// Runs a command on a host to a good end; what it printed.
    pub(super) fn succeed_on(&self, host: &str, command: &str) -> Result<String> {
        let output = Command::new(self.agent()).args([host, command]).output().context("nsenter")?;
        ensure!(output.status.success(), "{host}: {command}: {}", String::from_utf8_lossy(&output.stderr));
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// A host's own `/dev/shm`, as it is seen from here.
    pub(super) fn memory(&self, host: &str) -> Result<PathBuf> {
        self.host(host).map(memory)
    }

    /// Sets the link of a host up or down.
    pub(super) fn set_link(&self, host: &str, state: &str) -> Result<()> {
        succeed(self.command(Path::new("ip"))?.args(["link", "set", host, state]))
    }

    /// Ends hosts at once, with all that runs on them and all they have in memory.
    pub(super) fn lose(&self, lost: &[&str]) -> Result<()> {
        let lost = lost.iter().map(|name| self.host(name)).collect::<Result<Vec<_>>>()?;
        let keepers = lost.iter().map(|host| host.keeper.id().to_string());
        succeed(Command::new("kill").arg("-KILL").args(keepers))?;
        wait_until("the end of a host", || !lost.iter().any(|host| memory(host).exists()))
    }
}

fn memory(host: &NamespaceHost) -> PathBuf {
    Path::new("/proc").join(host.keeper.id().to_string()).join("root/dev/shm")
}

/// The address of a host: its number after those of the network.
pub(super) fn address(host: &str) -> String {
    format!("10.77.0.1{}", host.trim_start_matches('h'))
}

/// Writes a script that can be run.
pub(super) fn write_program(path: &Path, script: &str) -> Result<()> {
    fs::write(path, format!("#!/bin/sh\n{script}\n"))?;
    Ok(fs::set_permissions(path, fs::Permissions::from_mode(0o755))?)
}

pub(super) fn wait_until(what: &str, is_so: impl FnMut() -> bool) -> Result<()> {
    wait_at_most(PATIENCE, what, is_so)
}

pub(super) fn wait_at_most(patience: Duration, what: &str, mut is_so: impl FnMut() -> bool) -> Result<()> {
    for _ in 0..patience.as_millis() / NAP.as_millis() {
        if is_so() {
            return Ok(());
        }
        sleep(NAP);
    }
    bail!("waited {} s for {what}", patience.as_secs())
}
