//! A Slurm over hosts, and its jobs: the script of docs/slurm.md as it is printed, and programs of
//! the other doors.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use super::hosts::{Cluster, HEAD, address, wait_at_most, wait_until, write_program};
use super::versions;
use crate::{anchor, cargo, succeed};

const HOSTS: [&str; 9] = ["h1", "h2", "h3", "h4", "h5", "h6", "h7", "h8", "h9"];
/// Longest wait for a requeue, and for the end of a job.
const PATIENCE: Duration = Duration::from_secs(400);

/// A job of the page's script, with other sizes where they are given to `sbatch`.
struct ScriptJob {
    name: &'static str,
    /// Its folder.
    dir: &'static str,
    iteration: &'static str,
    submit: &'static str,
    event: JobEvent,
}

#[derive(Clone, Copy)]
enum JobEvent {
    /// The job comes near its end.
    End,
    /// `scancel --signal=USR1`.
    Signal,
    /// A rank on this host is killed.
    KilledRank(&'static str),
    /// A rank on this host is stopped, and the job has a `hang-limit`.
    StoppedRank(&'static str),
    LostHost(&'static str),
}

/// Declares jobs: the name, the folder, the time of an iteration, options of `sbatch`, the event.
macro_rules! script_jobs {
    ($($name:literal: $dir:literal, $iteration:literal, $submit:literal, $event:expr;)*) => {
        &[$(ScriptJob { name: $name, dir: $dir, iteration: $iteration, submit: $submit, event: $event },)*]
    };
}

const SCRIPT_JOBS: &[ScriptJob] = script_jobs! {
    "the script stops before the end": "end", "500ms", "--nodelist=h1,h2 --time=3 --signal=B:USR1@1", JobEvent::End;
    "the script is warned of the end": "warning", "600ms", "--nodelist=h1,h2 --time=4 --signal=B:USR1@160", JobEvent::End;
    "the script is stopped by scancel --signal": "signal", "100ms", "--nodelist=h1,h2 --time=30", JobEvent::Signal;
    "a rank is killed": "rank", "100ms", "--nodelist=h1,h2 --time=30", JobEvent::KilledRank("h2");
    "a rank hangs": "hang", "100ms", "--nodelist=h1,h2 --time=30", JobEvent::StoppedRank("h2");
    "a host is lost": "host", "100ms", "--exclude=h[1-3,7-9] --time=30", JobEvent::LostHost("h5");
    "the host of the script is lost": "first", "100ms", "--exclude=h[1-6] --time=30", JobEvent::LostHost("h7");
};

/// A program that asks whether its job ends: its command in its folder, and where it runs.
struct ProgramJob {
    name: &'static str,
    dir: &'static str,
    submit: &'static str,
    command: &'static str,
}

const PROGRAM_JOBS: [ProgramJob; 3] = [
    ProgramJob {
        name: "a C program stops before the end",
        dir: "c",
        submit: "--nodelist=h3 --ntasks=1",
        command: "./program 'dir=versions interval=20it' 160",
    },
    ProgramJob {
        name: "a PETSc program stops before the end",
        dir: "petsc",
        submit: "--nodelist=h2,h3 --ntasks-per-node=1",
        command: "./program -n 128 -random -ksp_type cg -ksp_rtol 1e-12 -recoup_stop -ckpt 'dir=versions interval=20it'",
    },
    ProgramJob {
        name: "a Python program stops before the end",
        dir: "python",
        submit: "--nodelist=h3 --ntasks=1",
        command: "./program",
    },
];

/// Runs all jobs at once, and prints a line for each.
pub(super) fn run(root: &Path, program: &Path, print: &mut dyn FnMut(&str, &str, Result<String>)) -> Result<()> {
    succeed(cargo(root).args(["build", "--locked", "--workspace", "--lib"]))?;
    let cluster = Cluster::new(HOSTS)?;
    let slurm = Slurm::start(&cluster, root, program)?;
    let slurm = &slurm;
    thread::scope(|scope| {
        let scripts = SCRIPT_JOBS.iter().map(|job| (job.name, scope.spawn(|| slurm.run_script(job))));
        let programs = PROGRAM_JOBS.iter().map(|job| (job.name, scope.spawn(|| slurm.run_program(job))));
        for (name, job) in scripts.chain(programs).collect::<Vec<_>>() {
            print(name, "srun --mpi=pmix", job.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        }
    });
    Ok(())
}

/// The daemons of Slurm on a cluster, which end with it.
struct Slurm<'a> {
    cluster: &'a Cluster,
    root: &'a Path,
    program: &'a Path,
    _daemons: Vec<Child>,
}

impl<'a> Slurm<'a> {
    fn start(cluster: &'a Cluster, root: &'a Path, program: &'a Path) -> Result<Self> {
        let place = cluster.place().join("slurm");
        for host in HOSTS.iter().chain(&["state"]) {
            fs::create_dir_all(place.join(host))?;
        }
        fs::write(place.join("slurm.conf"), configuration(&place))?;
        let mut slurm = Self { cluster, root, program, _daemons: Vec::new() };
        let place = place.display();
        slurm.on_head(&format!("mungekey --create --keyfile={place}/key"))?;
        let files = ["key-file", "socket", "pid-file", "log-file", "seed-file"];
        let files = files.map(|file| format!("--{file}={place}/{}", file.trim_end_matches("-file"))).join(" ");
        slurm.start_daemon(HEAD, &format!("munged --foreground --force {files}"))?;
        wait_until("munge", || cluster.place().join("slurm/socket").exists())?;
        slurm.start_daemon(HEAD, "slurmctld -D")?;
        for host in HOSTS {
            slurm.start_daemon(host, &format!("slurmd -D -N {host}"))?;
        }
        let n_hosts = HOSTS.len().to_string();
        wait_until("hosts of Slurm", || slurm.on_head("sinfo -h -t idle -o %D").is_ok_and(|n| n.trim() == n_hosts))?;
        Ok(slurm)
    }

    fn start_daemon(&mut self, host: &str, command: &str) -> Result<()> {
        let log = fs::File::create(self.cluster.place().join("slurm").join(format!("{host}.log")))?;
        let mut daemon = Command::new(self.cluster.agent());
        daemon.args([host, &self.configured(&format!("exec {command}"))]).stdin(Stdio::null());
        self._daemons.push(daemon.stdout(log.try_clone()?).stderr(log).spawn()?);
        Ok(())
    }

    fn configured(&self, command: &str) -> String {
        format!("export SLURM_CONF={}/slurm/slurm.conf; {command}", self.cluster.place().display())
    }

    /// Runs a command of Slurm to its good end; what it printed.
    fn on_head(&self, command: &str) -> Result<String> {
        self.cluster.succeed_on(HEAD, &self.configured(command))
    }

    /// Submits `job.sh` in a folder that has it.
    fn submit(&self, dir: &str, options: &str) -> Result<SlurmJob<'_>> {
        let inside = self.cluster.dir(dir);
        let inside = inside.display();
        let words = format!("cd {inside} && PATH={inside}/bin:$PATH sbatch --parsable --output=out {options} job.sh");
        let id = self.on_head(&words)?.trim().to_owned();
        Ok(SlurmJob { slurm: self, id, dir: self.cluster.place().join("shared").join(dir) })
    }

    fn folder(&self, name: &str) -> Result<PathBuf> {
        let folder = self.cluster.place().join("shared").join(name);
        fs::create_dir_all(folder.join("bin"))?;
        Ok(folder)
    }

    /// Returns what was found, in words.
    fn run_script(&self, case: &ScriptJob) -> Result<String> {
        let folder = self.folder(case.dir)?;
        let page = fs::read_to_string(self.root.join("docs/slurm.md"))?;
        let script = page.split("```bash\n").nth(1).and_then(|rest| rest.split("```").next());
        fs::write(folder.join("job.sh"), script.context("docs/slurm.md has no script")?)?;
        fs::write(folder.join("A.mtx"), tridiagonal(400))?;
        // Iterations take their time, and versions come often.
        let limit = if matches!(case.event, JobEvent::StoppedRank(_)) { "export RECOUP_HANG_LIMIT=6s\n" } else { "" };
        let slow = format!("{limit}exec {} \"$@\" --t-iter {}", self.program.display(), case.iteration);
        write_program(&folder.join("bin/recoup"), &format!("{slow} --threads 1 --interval 15it"))?;
        let job = self.submit(case.dir, &format!("--ntasks-per-node=2 {}", case.submit))?;
        if !matches!(case.event, JobEvent::End) {
            wait_until("a version", || versions(&folder.join("versions")) > 0)?;
        }
        match case.event {
            JobEvent::End => (),
            JobEvent::Signal => self.on_head(&format!("scancel --signal=USR1 {}", job.id)).map(|_| ())?,
            JobEvent::KilledRank(host) => {
                self.cluster.succeed_on(host, &format!("pkill -KILL -o -f {}/versions", case.dir)).map(|_| ())?;
            }
            JobEvent::StoppedRank(host) => {
                self.cluster.succeed_on(host, &format!("pkill -STOP -o -f {}/versions", case.dir)).map(|_| ())?;
            }
            JobEvent::LostHost(host) => self.cluster.lose(&[host])?,
        }
        job.wait("a requeue", |job| job.field("Restarts") != "0" || job.is_over())?;
        job.verify()?;
        job.wait("its end", SlurmJob::is_over)?;
        job.judge(case.event)
    }

    /// Returns what was found, in words.
    fn run_program(&self, case: &ProgramJob) -> Result<String> {
        let folder = self.folder(case.dir)?;
        let library = self.program.parent().context("no folder")?;
        match case.dir {
            "python" => {
                let package = self.root.join("crates/doors/python/python/recoup");
                succeed(Command::new("cp").arg("-r").arg(package).arg(&folder))?;
                symlink(library.join("librecoup_native.so"), folder.join("recoup/_native.abi3.so"))?;
                fs::write(folder.join("program.py"), include_str!("stop.py"))?;
                let python = std::env::var("RECOUP_PYTHON").unwrap_or_else(|_| "python3".to_owned());
                write_program(&folder.join("program"), &format!("exec {python} program.py"))?;
            }
            _ => {
                let source = if case.dir == "c" { "examples/embed/cg.c" } else { "examples/embed/ksp.c" };
                anchor::driver(self.root, library, source, &folder.join("program"))?;
            }
        }
        // It starts some seconds before it must stop, a minute before the end.
        let script = format!(
            "#!/bin/bash\nexport SLURM_JOB_END_TIME=$(date -d \"$(squeue -h -j $SLURM_JOB_ID -o %e)\" +%s)\n\
             sleep $((SLURM_JOB_END_TIME - $(date +%s) - 66))\nexec srun --mpi=pmix {}\n",
            case.command
        );
        fs::write(folder.join("job.sh"), script)?;
        let job = self.submit(case.dir, &format!("--time=2 {}", case.submit))?;
        job.wait("its end", SlurmJob::is_over)?;
        let code = job.field("ExitCode");
        ensure!(code == "75:0", "{} with {code}: {}", job.field("JobState"), job.output());
        Ok(format!("75; version {} is whole", job.verify()?))
    }
}

/// A job that was submitted.
struct SlurmJob<'a> {
    slurm: &'a Slurm<'a>,
    id: String,
    dir: PathBuf,
}

impl SlurmJob<'_> {
    /// Returns what Slurm says of it under this name; nothing where it does not answer.
    fn field(&self, name: &str) -> String {
        let all = self.slurm.on_head(&format!("scontrol show job -o {}", self.id)).unwrap_or_default();
        let mut values = all.split_whitespace().filter_map(|word| word.split_once('='));
        values.find(|(key, _)| *key == name).map_or_else(String::new, |(_, value)| value.to_owned())
    }

    fn is_over(&self) -> bool {
        ["COMPLETED", "FAILED", "TIMEOUT", "CANCELLED", "NODE_FAIL"].contains(&self.field("JobState").as_str())
    }

    fn wait(&self, what: &str, is_so: impl Fn(&Self) -> bool) -> Result<()> {
        wait_at_most(PATIENCE, what, || {
            thread::sleep(Duration::from_millis(500));
            is_so(self)
        })
    }

    fn output(&self) -> String {
        fs::read_to_string(self.dir.join("out")).unwrap_or_default()
    }

    /// Checks every byte of its versions; the newest.
    fn verify(&self) -> Result<String> {
        let verify = Command::new(self.slurm.program).arg("verify").arg(self.dir.join("versions")).output()?;
        let said = String::from_utf8_lossy(&verify.stdout).into_owned();
        ensure!(verify.status.success(), "{}: {said}", self.output());
        let newest = said.lines().filter_map(|line| line.split_once("  whole")?.0.rsplit('/').next()).next_back();
        newest.map(str::to_owned).with_context(|| format!("no whole version: {said}"))
    }

    /// Returns how the script came to its end, if it is that which the event should lead to.
    fn judge(&self, event: JobEvent) -> Result<String> {
        let output = self.output();
        let is_solved = self.field("JobState") == "COMPLETED" && self.dir.join("x.npy").exists();
        let resumed: Vec<&str> = output.split("resuming from version ").skip(1).collect();
        ensure!(is_solved && !resumed.is_empty(), "{}: {output}", self.field("JobState"));
        let killed = fs::read_to_string(self.dir.join("versions/killed")).unwrap_or_default();
        let stopped = output.matches("stopped; version").count();
        let is_expected = match event {
            JobEvent::End | JobEvent::Signal => stopped == resumed.len() && killed.is_empty(),
            JobEvent::KilledRank(_) => stopped == 0 && killed.lines().count() == 1,
            JobEvent::StoppedRank(_) => stopped == 0 && killed.is_empty() && output.contains("hang-limit"),
            JobEvent::LostHost(_) => stopped == 0,
        };
        ensure!(is_expected, "{stopped} stops, killed {killed:?}: {output}");
        let has_hung = matches!(event, JobEvent::StoppedRank(_));
        let code = if stopped > 0 || has_hung { "75" } else { killed.lines().next().unwrap_or("requeued by Slurm") };
        let from = resumed.iter().filter_map(|rest| rest.split_whitespace().next()).collect::<Vec<_>>().join(", ");
        Ok(format!("{code}; continues from version {from}; converged"))
    }
}

/// Returns slurm.conf: one partition has all hosts. A job that was requeued waits as long as a
/// credential is valid.
fn configuration(place: &Path) -> String {
    let nodes = HOSTS.map(|host| format!("NodeName={host} NodeAddr={} CPUs=64\n", address(host))).concat();
    let place = place.display();
    format!(
        "ClusterName=hosts\nSlurmctldHost={HEAD}({})\nSlurmUser=root\nAuthType=auth/munge\n\
         AuthInfo=socket={place}/socket,cred_expire=5\nStateSaveLocation={place}/state\nSlurmdSpoolDir={place}/%n\n\
         TmpFS={place}/%n\nSlurmctldPidFile={place}/slurmctld.pid\nSlurmdPidFile={place}/%n.pid\n\
         ProctrackType=proctrack/linuxproc\nTaskPlugin=task/none\nSelectType=select/cons_tres\n\
         SelectTypeParameters=CR_CPU\nSlurmdParameters=config_overrides\nSlurmdTimeout=6\nReturnToService=2\n{nodes}\
         PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE\n",
        address(HEAD)
    )
}

/// A matrix on which CG takes half as many iterations as it has rows.
fn tridiagonal(n: usize) -> String {
    let rows = (1..=n).map(|row| format!("{row} {row} 2.0\n"));
    let below = (1..n).map(|row| format!("{} {row} -1.0\n", row + 1));
    let entries = rows.chain(below).collect::<String>();
    format!("%%MatrixMarket matrix coordinate real symmetric\n{n} {n} {}\n{entries}", 2 * n - 1)
}
