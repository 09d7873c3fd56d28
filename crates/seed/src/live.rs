//! A program in a world of its own.

use std::sync::{Mutex, PoisonError};

use crate::choices::ChoiceStream;
use crate::disk::Promise;
use crate::sys;
use crate::tree::Tree;
use crate::world::{Habits, World, WorldPast};

/// Runs `body` in a world of its own that begins with the disk `tree`.
///
/// # Errors
/// When the files of the disk cannot be made.
pub(crate) fn live<T: Send + 'static>(
    tree: Tree,
    habits: Habits,
    choices: ChoiceStream,
    body: impl FnOnce() -> T + Send + 'static,
) -> std::io::Result<WorldPast<T>> {
    // Statics of the process would let worlds meet.
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let world = World::new(tree, habits, choices)?;
    let result = sys::simulate(&world, body);
    Ok(world.past(result))
}

/// Writes down a promise that the program was made.
pub(crate) fn promise(promise: Promise) {
    if let Some(task) = sys::current() {
        task.promise(promise);
    }
}
