//! The rules of order that make a commit whole whenever it is cut off.

/// A rule of order. Without it a crash can cost a version: the tests that enumerate crashes leave
/// each out in turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OrderRule {
    /// Blocks, tables and the list of versions are written back.
    WriteBlocksBack,
    /// All of them are stored before the fence that makes them durable.
    StoreBeforeFence,
    /// They are durable before the root is stored.
    FenceBeforeRoot,
    /// The root is durable before the commit returns.
    FenceAfterRoot,
    /// No place of the version that is retired is used before the new root is durable.
    RetireAfterRoot,
    /// The root goes where the newest one is not.
    TurnOfRoots,
}

/// The order of the commits of a memory.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct CommitOrder {
    /// A rule that a test has left out; other builds keep them all.
    #[cfg(test)]
    pub(crate) broken: Option<OrderRule>,
}

impl CommitOrder {
    /// Returns whether the rule is kept.
    pub(crate) fn keeps(self, rule: OrderRule) -> bool {
        #[cfg(test)]
        if self.broken == Some(rule) {
            return false;
        }
        let _ = rule;
        true
    }
}
