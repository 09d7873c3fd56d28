//! Circles of files: no two files of a crate may need each other, directly or through others.
//!
//! A file needs another one where it names an item of it by `crate::`, `super::` or `self::`. Names
//! that a module only passes on lead to the file that defines them. The root of a crate is left
//! out, as it names all modules; so no module may take through the root what another one defines.

use std::collections::{BTreeMap, BTreeSet};

use super::Source;
use super::code::{CodeToken, without_tests};

/// A path of modules, from the root of its crate.
type Path = Vec<String>;

/// The number of times that a name may be passed on.
const HOPS: usize = 8;

/// Crates whose modules still take names through the root.
const THROUGH_ROOT: [&str; 11] =
    ["compress", "core", "cuda-double", "device", "io", "model", "python", "recoup", "snapshot", "solvers", "veloc"];

/// One file of a crate.
struct CrateFile<'a> {
    source: &'a Source,
    module: Path,
    /// Paths that its code names, tests left out.
    named: Vec<Path>,
    /// Names its `use` declarations bring in, and where each comes from.
    imports: BTreeMap<String, Path>,
}

/// A complaint for each group of files that need each other, and for each name that is taken
/// through the root of its crate.
pub(super) fn complaints(sources: &[Source]) -> Vec<String> {
    let mut crates = BTreeMap::<&str, Vec<CrateFile<'_>>>::new();
    for source in sources {
        if let Some((root, below)) = source.path.split_once("/src/").filter(|_| source.is_rust()) {
            crates.entry(root).or_default().push(CrateFile::of(source, below));
        }
    }
    let is_held = |root: &str| !THROUGH_ROOT.contains(&root.rsplit('/').next().unwrap_or_default());
    let taken = crates.iter().filter(|(root, _)| is_held(root)).flat_map(|(_, files)| taken_through_root(files));
    crates.values().flat_map(|files| circles(files)).chain(taken).collect()
}

/// One complaint for each name that a file takes from the root, which has it from a module.
fn taken_through_root(files: &[CrateFile<'_>]) -> Vec<String> {
    let Some(root) = files.iter().find(|file| file.is_root()) else { return Vec::new() };
    let is_taken = |path: &&Path| path.len() == 1 && root.imports.get(&path[0]).is_some_and(|origin| origin != *path);
    let others = files.iter().filter(|file| !file.is_root());
    others
        .flat_map(|file| file.named.iter().filter(is_taken).map(move |path| (file, path)))
        .map(|(file, path)| file.source.complaint(0, format!("{} is taken through the root of its crate", path[0])))
        .collect()
}

impl<'a> CrateFile<'a> {
    fn of(source: &'a Source, below: &str) -> Self {
        let mut module: Path = below.trim_end_matches(".rs").split('/').map(str::to_owned).collect();
        if ["mod", "lib", "main"].contains(&module.last().map_or("", String::as_str)) {
            module.pop();
        }
        let tokens = without_tests(source.tokens());
        let is = |at: usize, text: &str| tokens.get(at).is_some_and(|token| token.text == text);
        let children: Vec<&str> =
            tokens.windows(2).filter(|pair| pair[0].text == "mod").map(|pair| pair[1].text.as_str()).collect();
        let mut named = Vec::new();
        let mut imports = BTreeMap::new();
        let mut position = 0;
        while position < tokens.len() {
            let is_use = is(position, "use");
            let begin = position + usize::from(is_use);
            let is_child = |first: &str| is_use && children.contains(&first);
            let begins = |first: &str| ["crate", "super", "self"].contains(&first) || is_child(first);
            let is_path = tokens.get(begin).is_some_and(|token| begins(&token.text));
            if !is_path || (!is_use && !is(begin + 1, "::")) {
                position += 1;
                continue;
            }
            let mut leaves = Vec::new();
            position = tree(tokens, begin, &module, is_use, &mut leaves).max(position + 1);
            for (path, name) in leaves {
                if is_use {
                    imports.insert(name, path.clone());
                }
                named.push(path);
            }
        }
        Self { source, module, named, imports }
    }

    fn is_root(&self) -> bool {
        self.module.is_empty()
    }
}

/// Reads a path, or a tree of them where it is declared, from `position`; returns where it ends.
fn tree(tokens: &[CodeToken], position: usize, from: &Path, is_use: bool, leaves: &mut Vec<(Path, String)>) -> usize {
    let is = |at: usize, text: &str| tokens.get(at).is_some_and(|token| token.text == text);
    let mut path = from.clone();
    let mut at = position;
    while let Some(token) = tokens.get(at) {
        match token.text.as_str() {
            "crate" => path.clear(),
            "super" => drop(path.pop()),
            "self" => {}
            "{" if is_use => {
                at += 1;
                while at < token.end {
                    at = tree(tokens, at, &path, is_use, leaves);
                    at += usize::from(is(at, ","));
                }
                return at + 1;
            }
            name if token.is_word() => path.push(name.to_owned()),
            // A glob, or the generics of a type.
            _ => {
                at += 1;
                break;
            }
        }
        at += 1;
        if !is(at, "::") {
            break;
        }
        at += 1;
    }
    let renamed = is_use && is(at, "as");
    let name = if renamed { tokens.get(at + 1).map(|token| &token.text) } else { path.last() };
    leaves.push((path.clone(), name.cloned().unwrap_or_default()));
    if renamed { at + 2 } else { at }
}

/// The file that defines what a path names: the deepest module on its way, or the one that module
/// takes it from.
fn defining<'f>(files: &'f [CrateFile<'_>], path: &[String], hops: usize) -> Option<&'f CrateFile<'f>> {
    let deepest = (0..=path.len()).rev().find_map(|depth| {
        let file = files.iter().find(|file| file.module == path[..depth])?;
        Some((file, depth))
    });
    let (file, depth) = deepest?;
    let passed_on = path.get(depth).and_then(|name| file.imports.get(name)).filter(|_| hops > 0);
    match passed_on {
        Some(origin) if origin[..] != path[..] => {
            let full: Path = origin.iter().chain(&path[depth + 1..]).cloned().collect();
            defining(files, &full, hops - 1)
        }
        _ => Some(file),
    }
}

/// The files that each file needs, by their positions.
fn needs(files: &[CrateFile<'_>]) -> Vec<BTreeSet<usize>> {
    let position = |wanted: &CrateFile<'_>| files.iter().position(|file| file.source.path == wanted.source.path);
    let needed_by = |index: usize, file: &CrateFile<'_>| -> BTreeSet<usize> {
        let defining = file.named.iter().filter_map(|path| defining(files, path, HOPS));
        let others = defining.filter(|other| !other.is_root()).filter_map(position);
        others.filter(|&other| other != index).collect()
    };
    files
        .iter()
        .enumerate()
        .map(|(index, file)| if file.is_root() { BTreeSet::new() } else { needed_by(index, file) })
        .collect()
}

/// One complaint for each group of files of a crate that reach each other.
fn circles(files: &[CrateFile<'_>]) -> Vec<String> {
    let needs = needs(files);
    let reached: Vec<BTreeSet<usize>> = (0..files.len()).map(|from| reachable(&needs, from)).collect();
    let mut told = BTreeSet::<usize>::new();
    let mut complaints = Vec::new();
    for first in 0..files.len() {
        if !reached[first].contains(&first) || told.contains(&first) {
            continue;
        }
        let group: Vec<usize> =
            reached[first].iter().copied().filter(|&other| reached[other].contains(&first)).collect();
        told.extend(&group);
        let name = |index: &usize| files[*index].source.file_name();
        let arrows = group.iter().map(|from| {
            let to: Vec<&str> = needs[*from].iter().filter(|to| group.contains(to)).map(name).collect();
            format!("{} needs {}", name(from), to.join(", "))
        });
        let arrows = arrows.collect::<Vec<_>>().join("; ");
        complaints.push(files[first].source.complaint(0, format!("a circle of files: {arrows}")));
    }
    complaints
}

fn reachable(needs: &[BTreeSet<usize>], from: usize) -> BTreeSet<usize> {
    let mut found = BTreeSet::new();
    let mut pending: Vec<usize> = needs[from].iter().copied().collect();
    while let Some(next) = pending.pop() {
        if found.insert(next) {
            pending.extend(&needs[next]);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn circles_are_found_through_names_passed_on_and_through_parents() {
        let sources = [
            Source::new("a/src/lib.rs", "mod one;\nmod two;\nmod three;\npub use one::First;\n"),
            Source::new(
                "a/src/one.rs",
                "use std::fmt;\nuse crate::two::{Second, inner::{self, Deep as Other}};\npub struct First;\n",
            ),
            Source::new("a/src/two.rs", "pub mod inner;\npub struct Second;\n"),
            Source::new("a/src/two/inner.rs", "fn f() -> crate::First { crate::three::make() }\n"),
            Source::new(
                "a/src/three.rs",
                "// crate::one::First is only spoken of\nfn g() { \"crate::one\"; }\n#[cfg(test)]\nmod tests { use crate::one::First; }\n",
            ),
            Source::new("b/src/lib.rs", "mod parent;\n"),
            Source::new("b/src/parent/mod.rs", "mod child;\nuse self::child::Child;\npub struct Parent;\n"),
            Source::new("b/src/parent/child.rs", "use super::Parent;\npub struct Child;\n"),
        ];
        let complaints = complaints(&sources);
        assert_eq!(complaints.len(), 3, "{complaints:?}");
        assert!(complaints[0].contains("one.rs needs inner.rs; inner.rs needs one.rs"), "{complaints:?}");
        assert!(complaints[1].contains("mod.rs needs child.rs; child.rs needs mod.rs"), "{complaints:?}");
        assert!(complaints[2].contains("inner.rs:1: First is taken through the root"), "{complaints:?}");
    }
}
