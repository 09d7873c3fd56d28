//! Users of the bytes of a buffer: copies of the device that may be under way, and the host.

use std::ops::Range;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use crate::{DeviceError, DeviceTicket, Stream};

/// Copies that may be under way before those that are done are forgotten.
const KEPT: usize = 8;
/// Copies under way before a new one waits for the oldest.
const UNDER_WAY_MAX: usize = 256;

/// The kind of a use: reading or writing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HostAccess {
    Read,
    Write,
}

/// One use of some bytes.
#[derive(Clone, Debug)]
struct Use {
    number: u64,
    range: Range<usize>,
    access: HostAccess,
    by: User,
}

#[derive(Clone, Debug)]
enum User {
    /// A thread that gives copies to a stream right now.
    Submitter,
    /// A device, until the ticket is due.
    Device(DeviceTicket),
    /// The host, until its guard is dropped.
    Host,
}

impl Use {
    fn conflicts(&self, range: &Range<usize>, access: HostAccess) -> bool {
        let overlaps = self.range.start < range.end && range.start < self.range.end;
        overlaps && (self.access == HostAccess::Write || access == HostAccess::Write)
    }

    /// Returns the ticket that ends a use by the device.
    fn ticket(&self) -> Option<&DeviceTicket> {
        match &self.by {
            User::Device(ticket) => Some(ticket),
            User::Submitter | User::Host => None,
        }
    }
}

#[derive(Debug, Default)]
struct Table {
    uses: Vec<Use>,
    next: u64,
}

/// The uses of a buffer.
#[derive(Debug, Default)]
pub(crate) struct Uses {
    table: Mutex<Table>,
    changed: Condvar,
}

/// A use that has begun; ends when dropped.
#[derive(Debug)]
pub(crate) struct HeldUse<'a> {
    uses: &'a Uses,
    number: u64,
    /// The uses of the device to wait for first.
    before: Vec<Use>,
}

impl HeldUse<'_> {
    /// Passes the use on to the device, until `ticket` is due.
    fn pass_on(mut self, ticket: DeviceTicket) {
        self.uses.change(|uses| {
            let own = uses.iter_mut().find(|of| of.number == self.number);
            own.expect("a use that has begun").by = User::Device(ticket);
        });
        drop(std::mem::take(&mut self.before));
        std::mem::forget(self);
    }
}

impl Drop for HeldUse<'_> {
    fn drop(&mut self) {
        self.uses.change(|uses| uses.retain(|of| of.number != self.number));
    }
}

impl Uses {
    fn table(&self) -> MutexGuard<'_, Table> {
        // Every change of the table is one step.
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Enters a use. Waits for threads that are giving copies of the same bytes to a stream.
    ///
    /// # Panics
    /// If the host holds a guard of the same bytes: our mistake, and the bytes would change under
    /// the guard.
    fn begin(&self, range: Range<usize>, access: HostAccess, by: User) -> HeldUse<'_> {
        let mut table = self.table();
        loop {
            let mut conflicts = table.uses.iter().filter(|of| of.conflicts(&range, access));
            if conflicts.clone().any(|of| matches!(of.by, User::Host)) {
                panic!("the host holds bytes {}..{} of a buffer that is to be used", range.start, range.end);
            }
            if !conflicts.any(|of| matches!(of.by, User::Submitter)) {
                break;
            }
            table = self.changed.wait(table).unwrap_or_else(PoisonError::into_inner);
        }
        let conflicts = table.uses.iter().filter(|of| of.conflicts(&range, access));
        let before = conflicts.filter(|of| of.ticket().is_some()).cloned().collect();
        let number = table.next;
        table.next += 1;
        table.uses.push(Use { number, range, access, by });
        HeldUse { uses: self, number, before }
    }

    /// Changes the table, and wakes those who wait for it.
    fn change(&self, change: impl FnOnce(&mut Vec<Use>)) {
        change(&mut self.table().uses);
        self.changed.notify_all();
    }

    /// Forgets copies that are done, and waits for the oldest where too many are under way.
    fn prune(&self) -> Result<(), DeviceError> {
        let under_way: Vec<DeviceTicket> = {
            let mut table = self.table();
            if table.uses.len() < KEPT {
                return Ok(());
            }
            table.uses.retain(|of| !of.ticket().is_some_and(|ticket| ticket.is_done() == Ok(true)));
            table.uses.iter().filter_map(Use::ticket).cloned().collect()
        };
        match under_way.first() {
            Some(oldest) if under_way.len() >= UNDER_WAY_MAX => oldest.wait(),
            _ => Ok(()),
        }
    }

    /// Has `submit` give copies to `stream`, after those of the same bytes that conflict. Returns
    /// the place after them.
    pub(crate) fn submit(
        &self,
        range: Range<usize>,
        access: HostAccess,
        stream: &Stream,
        submit: impl FnOnce() -> Result<(), DeviceError>,
    ) -> Result<DeviceTicket, DeviceError> {
        self.prune()?;
        let held = self.begin(range, access, User::Submitter);
        let ordered = held.before.iter().filter_map(Use::ticket).try_for_each(|ticket| stream.wait_for(ticket));
        let ticket = ordered.and_then(|()| submit()).and_then(|()| stream.ticket());
        match &ticket {
            Ok(ticket) => held.pass_on(ticket.clone()),
            // Some of the copies may have begun.
            Err(_) => drop(stream.context().settle()),
        }
        ticket
    }

    /// Enters a use of the host once the device's copies that conflict are done, and forgets these.
    pub(crate) fn hold(&self, range: Range<usize>, access: HostAccess) -> Result<HeldUse<'_>, DeviceError> {
        let mut held = self.begin(range, access, User::Host);
        held.before.iter().filter_map(Use::ticket).try_for_each(DeviceTicket::wait)?;
        let done = std::mem::take(&mut held.before);
        self.change(|uses| uses.retain(|of| done.iter().all(|done| done.number != of.number)));
        Ok(held)
    }

    /// Waits for the device's copies from and to some bytes, and forgets them.
    pub(crate) fn settle(&self, range: &Range<usize>) -> Result<(), DeviceError> {
        // A writer conflicts with every use of its bytes.
        let is_copy = |of: &&Use| of.ticket().is_some() && of.conflicts(range, HostAccess::Write);
        let done: Vec<Use> = self.table().uses.iter().filter(is_copy).cloned().collect();
        done.iter().filter_map(Use::ticket).try_for_each(DeviceTicket::wait)?;
        self.change(|uses| uses.retain(|of| done.iter().all(|done| done.number != of.number)));
        Ok(())
    }

    /// Waits for all copies under way; the first error of one.
    pub(crate) fn wait(&self) -> Result<(), DeviceError> {
        let tickets: Vec<DeviceTicket> = self.table().uses.iter().filter_map(Use::ticket).cloned().collect();
        tickets.iter().try_for_each(DeviceTicket::wait)
    }
}
