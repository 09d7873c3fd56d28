//! The disk of a world: real files in memory under the calls, and the journal of what changed.

use std::collections::BTreeMap;
use std::ffi::CString;
use std::fmt;
use std::fs::{DirBuilder, File};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::call::{CallPlace, Met, SystemCall, TOP as TOP_PATH};
use crate::sys::kernel;
use crate::tree::{Change, Entry, NodeNumber, TOP, Tree, TreeNode};

/// A statement to the program that must hold from then on.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Promise {
    /// The kind of what is promised.
    pub(crate) kind: PromiseKind,
    /// The version it is about.
    pub(crate) version: u64,
}

/// The losses that a promise survives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum PromiseKind {
    /// The version is there after the process is killed.
    Saved,
    /// The version is there after the loss of the node and of power, too.
    Durable,
}

/// An event at one place of the journal.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Happened {
    /// The disk changed.
    Changed(Change),
    /// The program was promised something.
    Promised(Promise),
    /// The program wrote to its standard error.
    Said(String),
    /// A call failed on purpose, with this number of an error.
    Failed { call: &'static str, error: i32 },
}

/// One line of the journal.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct JournalLine {
    /// The thread, in the order in which threads began.
    pub(crate) thread: usize,
    /// The event.
    pub(crate) happened: Happened,
}

/// Returns the promises of a journal.
pub(crate) fn promises(journal: &[JournalLine]) -> impl Iterator<Item = &Promise> {
    journal.iter().filter_map(|line| match &line.happened {
        Happened::Promised(promise) => Some(promise),
        _ => None,
    })
}

/// Flags with which an open call may change the disk.
const OPEN_CHANGES: i32 = libc::O_CREAT | libc::O_TRUNC | libc::O_TMPFILE & !libc::O_DIRECTORY;

/// The files of a world.
pub(crate) struct Disk {
    /// The folder of the files, in memory.
    root: PathBuf,
    tree: Tree,
    by_inode: BTreeMap<u64, NodeNumber>,
    journal: Vec<JournalLine>,
    threads: Vec<String>,
}

impl fmt::Debug for Disk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} lines of journal", self.journal.len())
    }
}

impl Disk {
    /// Makes real files of a tree.
    pub(crate) fn new(tree: Tree) -> io::Result<Self> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let name = format!("/dev/shm/recoup-seed-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        std::fs::create_dir(&name)?;
        let root = PathBuf::from(name);
        let mut by_inode = BTreeMap::new();
        let mut disk_of = |node, inode| by_inode.insert(inode, node);
        make_files(&tree, TOP, &root, &mut disk_of)?;
        Ok(Self { root, tree, by_inode, journal: Vec::new(), threads: Vec::new() })
    }

    pub(crate) fn root(&self) -> Vec<u8> {
        self.root.as_os_str().as_encoded_bytes().to_vec()
    }

    pub(crate) fn write_down(&mut self, thread: usize, happened: Happened) {
        if let Happened::Changed(change) = &happened {
            self.tree.apply(change);
        }
        self.journal.push(JournalLine { thread, happened });
    }

    /// Takes text of a thread, which comes in pieces.
    pub(crate) fn hear(&mut self, thread: usize, text: &str) {
        match self.journal.last_mut() {
            Some(JournalLine { thread: last, happened: Happened::Said(line) }) if *last == thread => {
                line.push_str(text)
            }
            _ => self.write_down(thread, Happened::Said(text.to_owned())),
        }
    }

    pub(crate) fn name_thread(&mut self, thread: usize, name: String) {
        self.threads.resize(self.threads.len().max(thread + 1), String::new());
        self.threads[thread] = name;
    }

    pub(crate) fn take_threads(&mut self) -> Vec<String> {
        std::mem::take(&mut self.threads)
    }

    /// Removes the files. Returns the journal, and the files as values.
    pub(crate) fn take(&mut self) -> (Vec<JournalLine>, Tree) {
        // What cannot be removed is left in memory until the system starts again.
        std::fs::remove_dir_all(&self.root).ok();
        (std::mem::take(&mut self.journal), self.tree.clone())
    }

    fn node_of(&self, file: i32) -> Option<NodeNumber> {
        self.by_inode.get(&kernel::facts_of(file)?.inode).copied()
    }

    /// Finds the entry that a path names; `None` for one that is elsewhere.
    fn entry(&self, at: CallPlace<'_>) -> Option<Entry> {
        let (mut directory, rest) = match at.path.strip_prefix(TOP_PATH.as_bytes()) {
            Some(rest) => (TOP, rest),
            None if at.path.first().is_none_or(|&first| first == b'/') || at.directory < 0 => return None,
            None => (self.node_of(at.directory)?, at.path),
        };
        let mut names: Vec<&[u8]> =
            rest.split(|&byte| byte == b'/').filter(|name| !matches!(*name, b"" | b".")).collect();
        let name = names.pop()?.to_vec();
        for name in names {
            directory = self.tree.lookup(directory, name)?;
        }
        Some(Entry { directory, name })
    }

    fn at(&self, entry: &Entry) -> Option<NodeNumber> {
        self.tree.lookup(entry.directory, &entry.name)
    }

    /// Returns what a call finds; `None` where it is not about this disk.
    pub(crate) fn meet(&self, call: &SystemCall<'_>) -> Option<Met> {
        let is_taken = match call {
            // Whatever it finds, it changes nothing.
            SystemCall::Open { at, flags } if flags & OPEN_CHANGES == 0 => {
                let is_below = !at.path.starts_with(b"/") && at.directory >= 0;
                return (is_below || at.path.starts_with(TOP_PATH.as_bytes()))
                    .then_some(Met { is_taken: true, node: None });
            }
            SystemCall::Open { at, .. } | SystemCall::MakeDirectory { at } | SystemCall::Remove { at } => {
                let is_top = at.path == TOP_PATH.as_bytes();
                is_top || self.at(&self.entry(*at)?).is_some()
            }
            SystemCall::Rename { to, .. } | SystemCall::Link { to, .. } => self.at(&self.entry(*to)?).is_some(),
            SystemCall::Write { file, .. }
            | SystemCall::Resize { file, .. }
            | SystemCall::Allocate { file, .. }
            | SystemCall::Sync { file } => return Some(Met { is_taken: true, node: Some(self.node_of(*file)?) }),
            _ => false,
        };
        Some(Met { is_taken, node: None })
    }

    /// Writes down what a call did that has succeeded.
    pub(crate) fn record(&mut self, thread: usize, call: &SystemCall<'_>, met: Met, result: isize) {
        for change in self.changes(call, met, result).into_iter().flatten() {
            self.write_down(thread, Happened::Changed(change));
        }
    }

    fn changes(&mut self, call: &SystemCall<'_>, met: Met, result: isize) -> Option<Vec<Change>> {
        Some(match call {
            SystemCall::Open { at, flags } => vec![self.opened(*at, *flags, met, result as i32)?],
            SystemCall::MakeDirectory { at } => {
                let entry = self.entry(*at)?;
                let facts = kernel::facts_at(&self.real_path(&entry)?)?;
                vec![self.made(
                    facts.inode,
                    Change::Make { node: self.tree.next(), is_directory: true, mode: facts.mode, entry: Some(entry) },
                )]
            }
            SystemCall::Write { file, parts, offset } => {
                let mut bytes = parts.concat();
                bytes.truncate(result as usize);
                let offset = offset.unwrap_or_else(|| kernel::position_of(*file) - bytes.len() as u64);
                vec![Change::Write { node: met.node?, offset, bytes: bytes.into() }]
            }
            SystemCall::Resize { bytes, .. } => vec![Change::Resize { node: met.node?, bytes: *bytes }],
            SystemCall::Allocate { file, bytes } => {
                let bytes = kernel::facts_of(*file)?.bytes.max(*bytes);
                vec![Change::Resize { node: met.node?, bytes }]
            }
            SystemCall::Sync { .. } => vec![Change::Sync { node: met.node? }],
            SystemCall::Remove { at } => vec![Change::Remove { entry: self.entry(*at)? }],
            SystemCall::Rename { from, to, is_exchange } => {
                vec![Change::Rename { from: self.entry(*from)?, to: self.entry(*to)?, is_exchange: *is_exchange }]
            }
            SystemCall::Link { from, to } => vec![Change::Link { node: self.linked(*from)?, entry: self.entry(*to)? }],
            _ => return None,
        })
    }

    fn opened(&mut self, at: CallPlace<'_>, flags: i32, met: Met, file: i32) -> Option<Change> {
        let is_temporary = flags & libc::O_TMPFILE == libc::O_TMPFILE;
        if met.is_taken && !is_temporary && flags & libc::O_TRUNC == 0 {
            return None;
        }
        let facts = kernel::facts_of(file)?;
        let node = self.tree.next();
        if is_temporary {
            return Some(
                self.made(facts.inode, Change::Make { node, is_directory: false, mode: facts.mode, entry: None }),
            );
        }
        let entry = self.entry(at)?;
        if !met.is_taken {
            let entry = Some(entry);
            return Some(self.made(facts.inode, Change::Make { node, is_directory: false, mode: facts.mode, entry }));
        }
        Some(Change::Resize { node: self.at(&entry)?, bytes: 0 })
    }

    /// Takes note of the system's number of a new file.
    fn made(&mut self, inode: u64, change: Change) -> Change {
        self.by_inode.insert(inode, self.tree.next());
        change
    }

    /// The file that gets another name: an open one, or one by its path.
    fn linked(&self, from: CallPlace<'_>) -> Option<NodeNumber> {
        let open = from.path.strip_prefix(b"/proc/self/fd/").and_then(|number| std::str::from_utf8(number).ok());
        match open {
            Some(number) => self.node_of(number.parse().ok()?),
            None => self.at(&self.entry(from)?),
        }
    }

    /// Path of an entry in the real folder.
    fn real_path(&self, entry: &Entry) -> Option<CString> {
        let mut names = vec![entry.name.clone()];
        let mut directory = entry.directory;
        while directory != TOP {
            let (parent, name) = self.tree.place_of(directory)?;
            names.push(name);
            directory = parent;
        }
        names.push(self.root());
        names.reverse();
        CString::new(names.join(&b'/')).ok()
    }
}

fn make_files(
    tree: &Tree,
    directory: NodeNumber,
    path: &Path,
    note: &mut impl FnMut(NodeNumber, u64) -> Option<NodeNumber>,
) -> io::Result<()> {
    note(directory, path.metadata()?.ino());
    for (name, &node) in tree.names(directory).into_iter().flatten() {
        let path = path.join(std::str::from_utf8(name).map_err(io::Error::other)?);
        match tree.node(node) {
            Some(TreeNode::Directory { mode, .. }) => {
                DirBuilder::new().mode(*mode).create(&path)?;
                make_files(tree, node, &path, note)?;
            }
            Some(TreeNode::File { mode, bytes }) => {
                let mut file = File::options().write(true).create(true).truncate(true).mode(*mode).open(&path)?;
                file.write_all(bytes)?;
                note(node, file.metadata()?.ino());
            }
            None => {}
        }
    }
    Ok(())
}
