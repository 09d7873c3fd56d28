//! Threads that share the work on a frame.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use recoup_team::Team;

/// Largest number of threads of a team: a larger number is a typing error.
const MOST_THREADS: usize = 256;

/// Teams by process and number of threads: a forked process has none of its parent's threads.
static TEAMS: Mutex<BTreeMap<(u32, usize), Arc<CodecTeam>>> = Mutex::new(BTreeMap::new());

/// Threads that work off pieces together with the caller's.
#[derive(Debug)]
pub(super) struct CodecTeam(Team);

impl CodecTeam {
    /// The team of `threads` threads, the caller's among them; `None` of one, or where the
    /// operating system grants no more.
    pub(super) fn of(threads: usize) -> Option<Arc<Self>> {
        let threads = threads.min(MOST_THREADS);
        if threads <= 1 {
            return None;
        }
        let mut teams = TEAMS.lock().ok()?;
        let own = (std::process::id(), threads);
        if let Some(team) = teams.get(&own) {
            return Some(team.clone());
        }
        let team = Arc::new(Self(Team::new(threads, "qb").ok()?));
        teams.insert(own, team.clone());
        Some(team)
    }

    /// Works off `pieces` of some `weight` each. The caller begins at the first piece at once. The
    /// others begin where its share ends, once they have woken, which takes a part of a frame's
    /// millisecond or two. Then each takes the pieces the other has left; `next` gives the others
    /// another piece as long as there is one. While another caller has the others, this one does
    /// all pieces.
    pub(super) fn share<P: Send>(
        &self,
        mut pieces: Vec<P>,
        weight: impl Fn(&P) -> usize,
        mut front: impl FnMut(P),
        back: impl Fn(&mut dyn FnMut() -> Option<P>) + Sync,
    ) {
        // A little less than its share, so that it is there to put what the others make behind its
        // own.
        let share = pieces.iter().map(&weight).sum::<usize>() * 9 / (10 * self.0.threads());
        let mut before = 0;
        let is_near = |piece: &P| {
            before += weight(piece);
            before <= share
        };
        let far = pieces.split_off(pieces.iter().map(is_near).take_while(|is_near| *is_near).count()).into_iter();
        let pieces = Mutex::new(SharedPieces { near: pieces.into_iter(), far });
        let locked = || pieces.lock().expect("no thread panics while it holds the lock");
        let next = || {
            let SharedPieces { near, far } = &mut *locked();
            near.next().or_else(|| far.next_back())
        };
        let help = |_| {
            back(&mut || {
                let SharedPieces { near, far } = &mut *locked();
                far.next().or_else(|| near.next_back())
            });
        };
        self.0.work_beside(&help, || {
            while let Some(piece) = next() {
                front(piece);
            }
        });
    }
}

/// Pieces not worked off yet.
struct SharedPieces<P> {
    /// The caller's share.
    near: std::vec::IntoIter<P>,
    /// The share of the other threads.
    far: std::vec::IntoIter<P>,
}

/// The results of `work` on each piece, in order; each thread has scratch of its own.
pub(super) fn map<P: Send, R: Send, S>(
    team: Option<&CodecTeam>,
    pieces: impl IntoIterator<Item = P>,
    weight: impl Fn(&P) -> usize,
    scratch: impl Fn() -> S + Sync,
    work: impl Fn(&mut S, P) -> R + Sync,
) -> Vec<R> {
    let pieces: Vec<(usize, P)> = pieces.into_iter().enumerate().collect();
    let mut own = None;
    let Some(team) = team.filter(|_| pieces.len() > 1) else {
        return pieces.into_iter().map(|(_, piece)| work(own.get_or_insert_with(&scratch), piece)).collect();
    };
    let done = Mutex::new(BTreeMap::new());
    let note = |at: usize, result: R| done.lock().expect("no thread panics while it holds the lock").insert(at, result);
    team.share(
        pieces,
        |(_, piece): &(usize, P)| weight(piece),
        |(at, piece)| _ = note(at, work(own.get_or_insert_with(&scratch), piece)),
        |next| {
            let mut own = None;
            while let Some((at, piece)) = next() {
                note(at, work(own.get_or_insert_with(&scratch), piece));
            }
        },
    );
    done.into_inner().expect("no thread panics while it holds the lock").into_values().collect()
}
