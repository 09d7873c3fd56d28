//! A journal in words.

use std::collections::BTreeMap;

use crate::disk::{Happened, PromiseKind};
use crate::lived::Lived;
use crate::tree::{Change, Entry, NodeNumber, TOP, Tree};

/// Lines of a story that are told, from its end.
const LINES: usize = 60;

/// Names of files and directories as a journal goes on.
struct StoryNames {
    names: BTreeMap<NodeNumber, Entry>,
}

impl StoryNames {
    fn of(tree: &Tree) -> Self {
        let mut names = Self { names: BTreeMap::new() };
        let mut left = vec![TOP];
        while let Some(directory) = left.pop() {
            for (name, &node) in tree.names(directory).into_iter().flatten() {
                names.names.insert(node, Entry { directory, name: name.clone() });
                left.push(node);
            }
        }
        names
    }

    fn path(&self, node: NodeNumber) -> String {
        match self.names.get(&node) {
            Some(entry) => self.path_of(entry),
            None if node == TOP => String::new(),
            None => format!("a file without a name ({node})"),
        }
    }

    fn path_of(&self, entry: &Entry) -> String {
        let parent = if entry.directory == TOP { String::new() } else { self.path(entry.directory) + "/" };
        parent + &String::from_utf8_lossy(&entry.name)
    }

    /// Takes note of the names that a change makes.
    fn follow(&mut self, happened: &Happened) {
        match happened {
            Happened::Changed(Change::Make { node, entry: Some(entry), .. } | Change::Link { node, entry }) => {
                self.names.insert(*node, entry.clone());
            }
            Happened::Changed(Change::Rename { from, to, is_exchange }) => {
                let of = |place| self.names.iter().find(|(_, entry)| *entry == place).map(|(&node, _)| node);
                let moved = of(from);
                let other = of(to).filter(|_| *is_exchange);
                self.names.extend(other.map(|other| (other, from.clone())));
                self.names.extend(moved.map(|moved| (moved, to.clone())));
            }
            _ => {}
        }
    }

    /// Tells a change before it is followed.
    fn tell(&self, change: &Change) -> String {
        match change {
            Change::Make { node, is_directory, entry, .. } => {
                let kind = if *is_directory { "directory" } else { "file" };
                let path = entry.as_ref().map_or_else(|| self.path(*node), |entry| self.path_of(entry));
                format!("makes the {kind} {path}")
            }
            Change::Write { node, offset, bytes } => {
                format!("writes {} bytes at {offset} of {}", bytes.len(), self.path(*node))
            }
            Change::Resize { node, bytes } => format!("cuts {} to {bytes} bytes", self.path(*node)),
            Change::Link { entry, .. } => format!("names a file {}", self.path_of(entry)),
            Change::Remove { entry } => format!("removes {}", self.path_of(entry)),
            Change::Rename { from, to, is_exchange } => {
                let verb = if *is_exchange { "exchanges" } else { "renames" };
                format!("{verb} {} to {}", self.path_of(from), self.path_of(to))
            }
            Change::Sync { node } => format!("syncs {}", self.path(*node)),
        }
    }

    fn line(&self, happened: &Happened) -> String {
        match happened {
            Happened::Changed(change) => self.tell(change),
            Happened::Promised(promise) => match promise.kind {
                PromiseKind::Saved => format!("was told that version {} is saved", promise.version),
                PromiseKind::Durable => format!("was told that version {} is durable", promise.version),
            },
            Happened::Said(text) => format!("says {}", text.trim().replace('\n', " ")),
            Happened::Failed { call, error } => {
                format!("could not {call}: {}", std::io::Error::from_raw_os_error(*error))
            }
        }
    }
}

/// Tells the last lines of the first `lines` of a journal.
pub(crate) fn of(lived: &Lived, lines: usize) -> String {
    let mut names = StoryNames::of(&lived.before.tree);
    let told = lived.past.journal[..lines].iter().map(|line| {
        let thread = lived.past.threads.get(line.thread).map_or("", String::as_str);
        let words = format!("{:3} {thread} {}\n", line.thread, names.line(&line.happened));
        names.follow(&line.happened);
        words
    });
    let told: Vec<String> = told.collect();
    told[told.len().saturating_sub(LINES)..].concat()
}

/// Names the kind of what has just happened: the change, and the file without its numbers.
pub(crate) fn place_of(lived: &Lived, lines: usize) -> String {
    let mut names = StoryNames::of(&lived.before.tree);
    let Some((last, before)) = lived.past.journal[..lines].split_last() else { return "nothing".to_owned() };
    if matches!(last.happened, Happened::Said(_)) {
        return "says something".to_owned();
    }
    before.iter().for_each(|line| names.follow(&line.happened));
    let words = names.line(&last.happened);
    let path_begins = words.rfind(['/', ' ']).map_or(0, |at| at + 1);
    let verb = words.split(' ').next().unwrap_or_default();
    let file: String = words[path_begins..].chars().map(|c| if c.is_ascii_digit() { '#' } else { c }).collect();
    format!("{verb} {}", squeezed(&file))
}

/// Leaves one of each run of `#`.
fn squeezed(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        if c != '#' || !out.ends_with('#') {
            out.push(c);
        }
    }
    out
}
