//! Guards of a version against lost ranks: copies on partners, and erasure sets.
//!
//! Both follow from the number of ranks and from which of them share a node, so all ranks find the
//! same without asking. The design of partner copies, split-phase and double-buffered, comes from
//! GPI-2's checkpoint extension.

use std::fmt;
use std::str::FromStr;

use recoup_core::StoreError;

use crate::layout::Layout;

/// A guard of a version against lost ranks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Protection {
    /// A copy of every rank's part is stored on another rank.
    Partner(Partners),
    /// Groups of ranks hold sums of their parts, by which any `parity` lost ranks of a group are
    /// won back.
    Erasure {
        /// Ranks whose parts are summed up.
        data: usize,
        /// Sums, and losses a group stands.
        parity: usize,
    },
}

/// The choice of the rank that keeps each rank's copy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Partners {
    /// The rank this many places further, or the next after it that is on another node.
    Ring(usize),
    /// A partner given for each rank.
    Given(Vec<usize>),
}

/// A protection, and how often it is applied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Guard {
    /// The guard.
    pub protection: Protection,
    /// The interval in versions, counted from the first; at least 1.
    pub every: u64,
}

impl fmt::Display for Protection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Partner(Partners::Ring(distance)) => write!(f, "partner:ring{distance}"),
            Self::Partner(Partners::Given(partners)) => {
                let partners: Vec<String> = partners.iter().map(ToString::to_string).collect();
                write!(f, "partner:{}", partners.join("/"))
            }
            Self::Erasure { data, parity } => write!(f, "rs:{data}+{parity}"),
        }
    }
}

impl FromStr for Protection {
    type Err = String;

    /// Reads `partner:ringD`, `partner:R/R/..` as in `partner:1/2/0`, or `rs:K+M`.
    fn from_str(text: &str) -> Result<Self, String> {
        let refuse = || format!("{text:?}: expected partner:ringD, partner:R/R/.. or rs:K+M");
        let number = |text: &str| text.parse::<usize>().ok();
        let found = match text.split_once(':').ok_or_else(refuse)? {
            ("partner", policy) => match policy.strip_prefix("ring") {
                Some(distance) => number(distance).filter(|&d| d > 0).map(Partners::Ring),
                None => policy.split('/').map(number).collect::<Option<Vec<_>>>().map(Partners::Given),
            }
            .map(Self::Partner),
            ("rs", code) => code.split_once('+').and_then(|(data, parity)| {
                let data = number(data)?;
                let parity = number(parity)?;
                (data > 0 && parity > 0 && data + parity <= 128).then_some(Self::Erasure { data, parity })
            }),
            _ => None,
        };
        found.ok_or_else(refuse)
    }
}

impl Partners {
    /// Returns the partner of every rank; `nodes` holds the node of each rank.
    pub(crate) fn resolve(&self, nodes: &[usize]) -> Result<Vec<usize>, StoreError> {
        let ranks = nodes.len();
        let partners: Vec<usize> = match self {
            Self::Given(partners) => partners.clone(),
            Self::Ring(distance) => ring(*distance, nodes)?,
        };
        let fits = |(rank, &partner): (usize, &usize)| partner < ranks && nodes[partner] != nodes[rank];
        if partners.len() == ranks && partners.iter().enumerate().all(fits) {
            return Ok(partners);
        }
        let what = "partners given: one on another node for each rank".to_owned();
        Err(StoreError::Ranks { what, needed: ranks, found: partners.len() })
    }
}

/// Returns partners at one common shift if some shift leads every rank to another node; otherwise
/// each rank takes the next shift that does.
fn ring(distance: usize, nodes: &[usize]) -> Result<Vec<usize>, StoreError> {
    let ranks = nodes.len();
    let is_other = |rank: usize, shift: usize| nodes[(rank + shift) % ranks] != nodes[rank];
    let shifts = || (0..ranks).map(|further| distance + further);
    if let Some(shift) = shifts().find(|&shift| (0..ranks).all(|rank| is_other(rank, shift))) {
        return Ok((0..ranks).map(|rank| (rank + shift) % ranks).collect());
    }
    let partner = |rank: usize| shifts().find(|&shift| is_other(rank, shift)).map(|shift| (rank + shift) % ranks);
    let found: Option<Vec<usize>> = (0..ranks).map(partner).collect();
    found.ok_or_else(|| StoreError::Ranks { what: "partner copies: nodes".to_owned(), needed: 2, found: 1 })
}

/// Returns the groups of an erasure set, of about data + parity ranks each. The ranks of a node are
/// dealt out over all groups, so no other grouping leaves fewer of them in one.
///
/// # Errors
/// [`StoreError::Ranks`] where a group would lose more than `parity` members with a node; it names
/// the erasure set of the smallest sums that stands the loss.
pub(crate) fn groups<N: Ord>(data: usize, parity: usize, nodes: &[N]) -> Result<Vec<Group>, StoreError> {
    let ranks = nodes.len();
    let refuse = |what: &str, needed, found| {
        Err(StoreError::Ranks { what: format!("erasure set {data}+{parity}: {what}"), needed, found })
    };
    if ranks <= parity {
        return refuse("ranks", parity + 1, ranks);
    }
    let mut order: Vec<usize> = (0..ranks).collect();
    order.sort_by(|&one, &other| nodes[one].cmp(&nodes[other]));
    let largest = order.chunk_by(|&one, &other| nodes[one] == nodes[other]).map(<[usize]>::len).max().unwrap_or(0);
    let n_groups = n_groups(ranks, data, parity);
    let lost = largest.div_ceil(n_groups);
    if lost > parity {
        return match smallest_for(ranks, largest, data, parity) {
            Some((k, m)) => refuse(&format!("sums for a lost node (rs:{k}+{m} stands it)"), lost, parity),
            None => refuse("nodes", 2, 1),
        };
    }
    let group = |g: usize| {
        let members: Vec<usize> = order.iter().copied().skip(g).step_by(n_groups).collect();
        Group { layout: Layout { data: members.len() - parity, parity }, members }
    };
    Ok((0..n_groups).map(group).collect())
}

fn n_groups(ranks: usize, data: usize, parity: usize) -> usize {
    ranks.div_ceil(data + parity).min(ranks / (parity + 1)).max(1)
}

/// Returns the erasure set with the smallest sums, of fewer ranks' parts or with more of them, that
/// stands the loss of a node of `largest` ranks; `None` if all ranks are on one.
fn smallest_for(ranks: usize, largest: usize, data: usize, parity: usize) -> Option<(usize, usize)> {
    let fewer = (1..data).rev().map(|data| (data, parity));
    let more = (parity + 1..ranks).map(|parity| (data, parity));
    let stands = |&(data, parity): &(usize, usize)| largest.div_ceil(n_groups(ranks, data, parity)) <= parity;
    let share =
        |&(data, parity): &(usize, usize)| parity as f64 / (ranks / n_groups(ranks, data, parity) - parity) as f64;
    fewer.chain(more).filter(stands).min_by(|one, other| share(one).total_cmp(&share(other)))
}

/// One group of an erasure set.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Group {
    pub(crate) layout: Layout,
    /// Ranks of the group, in the order of the layout.
    pub(crate) members: Vec<usize>,
}

impl Group {
    /// Returns the number of nodes, whichever they are, that may be lost at once.
    pub(crate) fn losses_stood(&self, nodes: &[usize]) -> usize {
        let mut on: Vec<usize> = self.members.iter().map(|&rank| nodes[rank]).collect();
        on.sort_unstable();
        let mut lost: Vec<usize> = on.chunk_by(|one, other| one == other).map(<[usize]>::len).collect();
        lost.sort_unstable_by(|one, other| other.cmp(one));
        let mut left = self.layout.parity;
        lost.iter().take_while(|&&members| left.checked_sub(members).map(|rest| left = rest).is_some()).count()
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::cmp::Ordering;

    use super::*;
    use crate::node::first_positions;

    #[test]
    fn partners_are_on_other_nodes_and_as_far_as_asked() {
        let alone: Vec<usize> = (0..4).collect();
        assert_eq!(Partners::Ring(1).resolve(&alone).unwrap(), [1, 2, 3, 0]);
        assert_eq!(Partners::Ring(2).resolve(&alone).unwrap(), [2, 3, 0, 1]);
        // Four times round is no partner, so it goes one further.
        assert_eq!(Partners::Ring(4).resolve(&alone).unwrap(), [1, 2, 3, 0]);
        let pairs = [0, 0, 1, 1, 2, 2];
        assert_eq!(Partners::Ring(1).resolve(&pairs).unwrap(), [2, 3, 4, 5, 0, 1]);
        // No common shift fits nodes as uneven as these.
        let uneven = [0, 0, 0, 1];
        let partners = Partners::Ring(1).resolve(&uneven).unwrap();
        assert!(partners.iter().enumerate().all(|(rank, &p)| uneven[rank] != uneven[p]), "{partners:?}");
        assert_eq!(Partners::Given(vec![2, 3, 0, 1]).resolve(&[0, 0, 1, 1]).unwrap(), [2, 3, 0, 1]);
        for (partners, nodes) in
            [(Partners::Ring(1), vec![0, 0]), (Partners::Given(vec![1, 0]), vec![0, 0]), (Partners::Ring(1), vec![0])]
        {
            assert!(matches!(partners.resolve(&nodes), Err(StoreError::Ranks { .. })));
        }
    }

    #[test]
    fn groups_hold_every_rank_once_and_spread_over_nodes() {
        for ranks in 2..30 {
            for n_nodes in 6..9 {
                let nodes: Vec<usize> = (0..ranks).map(|rank| rank % n_nodes).collect();
                let groups = groups(4, 1, &nodes).unwrap();
                let mut all: Vec<usize> = groups.iter().flat_map(|g| g.members.clone()).collect();
                all.sort_unstable();
                assert_eq!(all, (0..ranks).collect::<Vec<_>>());
                assert!(groups.iter().all(|g| g.layout.members() == g.members.len() && g.layout.data > 0));
                assert!(groups.iter().all(|g| g.members.len() <= 6), "{groups:?}");
            }
        }
        assert!(matches!(groups(4, 2, &[0, 1]), Err(StoreError::Ranks { needed: 3, found: 2, .. })));
    }

    /// Erasure sets counted ranks: with two hosts of three ranks, `rs:4+2` lost everything with one
    /// host, and said that it stood two losses.
    #[test]
    fn groups_stand_a_lost_node_or_are_refused_with_a_set_that_does() {
        let layouts = (1..6).flat_map(|n_nodes| (1..9).map(move |per_node| (n_nodes, per_node)));
        for ((n_nodes, per_node), (data, parity)) in
            layouts.flat_map(|layout| [(4, 1), (4, 2), (6, 3), (1, 1)].map(|code| (layout, code)))
        {
            // The last node has fewer ranks than the others.
            let ranks = (n_nodes * per_node - per_node / 3).max(parity + 1);
            let nodes: Vec<usize> = (0..ranks).map(|rank| rank / per_node).collect();
            let found = match groups(data, parity, &nodes) {
                Ok(found) => found,
                Err(error) => {
                    let words = error.to_string();
                    let Some((_, named)) = words.split_once("(rs:") else {
                        assert!(nodes.iter().all(|&node| node == 0), "{words}");
                        continue;
                    };
                    let (k, m) = named.split_once(" stands").unwrap().0.split_once('+').unwrap();
                    groups(k.parse().unwrap(), m.parse().unwrap(), &nodes).unwrap()
                }
            };
            for group in &found {
                let stood = group.losses_stood(&nodes);
                let survives = |lost: u32| {
                    let members = group.members.iter().filter(|&&rank| lost >> nodes[rank] & 1 == 1).count();
                    members <= group.layout.parity
                };
                let of = |n: usize| (0..1 << 6).filter(move |lost: &u32| lost.count_ones() as usize == n);
                assert!(stood > 0 && of(stood).all(survives), "{nodes:?}: {group:?}");
                assert!(stood >= n_nodes || !of(stood + 1).all(survives), "{nodes:?}: {group:?}");
            }
        }
        let pairs: Vec<usize> = (0..6).map(|rank| rank / 3).collect();
        let words = groups(4, 2, &pairs).unwrap_err().to_string();
        assert_eq!(words, "erasure set 4+2: sums for a lost node (rs:4+3 stands it): 3 needed, 2 found");
    }

    /// A number that counts how often it is compared.
    struct Counted<'a>(usize, &'a Cell<usize>);

    impl Ord for Counted<'_> {
        fn cmp(&self, other: &Self) -> Ordering {
            self.1.set(self.1.get() + 1);
            self.0.cmp(&other.0)
        }
    }

    impl PartialOrd for Counted<'_> {
        fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
            Some(self.cmp(other))
        }
    }

    impl PartialEq for Counted<'_> {
        fn eq(&self, other: &Self) -> bool {
            self.cmp(other).is_eq()
        }
    }

    impl Eq for Counted<'_> {}

    /// Each rank looked at all others: 5 s for each version of 10,000 ranks, and 7 minutes for
    /// 100,000.
    #[test]
    fn groups_and_nodes_are_found_in_p_log_p_comparisons() {
        const RANKS: usize = 1 << 12;
        let comparisons = Cell::new(0);
        let nodes: Vec<Counted> = (0..RANKS).map(|rank| Counted(rank * 7 % 509, &comparisons)).collect();
        let expected: Vec<usize> = (0..RANKS).map(|rank| rank % 509).collect();
        assert_eq!(first_positions(&nodes), expected);
        // A tree's node of up to 11 names is searched one by one; a merge sort takes P log2 P.
        assert!(comparisons.take() <= 4 * RANKS * RANKS.ilog2() as usize);
        groups(4, 2, &nodes).unwrap();
        assert!(comparisons.take() <= 4 * RANKS * RANKS.ilog2() as usize);
    }

    #[test]
    fn protections_are_read_from_their_names() {
        for name in ["partner:ring2", "rs:4+1"] {
            assert_eq!(name.parse::<Protection>().unwrap().to_string(), name);
        }
        let given = Protection::Partner(Partners::Given(vec![1, 2, 0]));
        assert_eq!("partner:1/2/0".parse::<Protection>().unwrap(), given);
        for wrong in ["", "partner", "partner:ring0", "partner:x", "rs:0+1", "rs:4", "rs:200+100", "xor:2"] {
            assert!(wrong.parse::<Protection>().is_err(), "{wrong}");
        }
    }
}
