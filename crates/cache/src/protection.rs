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

/// Returns the groups of an erasure set, of about data + parity ranks each, from as many nodes as
/// possible.
pub(crate) fn groups(data: usize, parity: usize, nodes: &[usize]) -> Result<Vec<Group>, StoreError> {
    let ranks = nodes.len();
    if ranks <= parity {
        let what = format!("erasure set {data}+{parity}: ranks");
        return Err(StoreError::Ranks { what, needed: parity + 1, found: ranks });
    }
    // By place within the node first, so that neighbours in this order are on different nodes.
    let place = |rank: usize| nodes[..rank].iter().filter(|&&node| node == nodes[rank]).count();
    let mut order: Vec<usize> = (0..ranks).collect();
    order.sort_by_key(|&rank| (place(rank), nodes[rank]));
    let n_groups = (ranks.div_ceil(data + parity)).min(ranks / (parity + 1)).max(1);
    let start = |group: usize| group * ranks / n_groups;
    let group = |g: usize| {
        let members = order[start(g)..start(g + 1)].to_vec();
        Group { layout: Layout { data: members.len() - parity, parity }, members }
    };
    Ok((0..n_groups).map(group).collect())
}

/// One group of an erasure set.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Group {
    pub(crate) layout: Layout,
    /// Ranks of the group, in the order of the layout.
    pub(crate) members: Vec<usize>,
}

#[cfg(test)]
mod tests {
    use super::*;

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
            for per_node in 1..4 {
                let nodes: Vec<usize> = (0..ranks).map(|rank| rank / per_node).collect();
                let groups = groups(4, 1, &nodes).unwrap();
                let mut all: Vec<usize> = groups.iter().flat_map(|g| g.members.clone()).collect();
                all.sort_unstable();
                assert_eq!(all, (0..ranks).collect::<Vec<_>>());
                assert!(groups.iter().all(|g| g.layout.members() == g.members.len() && g.layout.data > 0));
                assert!(groups.iter().all(|g| g.members.len() <= 6), "{groups:?}");
            }
        }
        // Five nodes of two ranks: a lost node costs each group one member.
        let nodes: Vec<usize> = (0..10).map(|rank| rank / 2).collect();
        for group in groups(4, 1, &nodes).unwrap() {
            let mut on: Vec<usize> = group.members.iter().map(|&rank| nodes[rank]).collect();
            on.sort_unstable();
            assert_eq!(on, [0, 1, 2, 3, 4]);
        }
        assert!(matches!(groups(4, 2, &[0, 1]), Err(StoreError::Ranks { needed: 3, found: 2, .. })));
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
