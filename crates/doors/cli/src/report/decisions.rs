//! Decisions of `auto` over the iterations of a run: a row for each choice, not for each look at
//! the costs.

use crate::decision::DecisionJson;
use crate::output::seconds;

/// The columns of a row.
pub(crate) const COLUMNS: [&str; 6] = ["from", "scheme", "codec", "bound", "interval", "extra"];

/// The columns, explained.
pub(crate) const MEANING: &str = "from: the iteration; interval: the first and the last of a row; extra: extra iterations \
                                  expected of a recovery";

/// Returns the rows, each with the time of its first decision in front.
pub(crate) fn timed_rows(timed: &[(f64, DecisionJson)]) -> Vec<Vec<String>> {
    let decisions: Vec<DecisionJson> = timed.iter().map(|(_, decision)| decision.clone()).collect();
    let mut before = 0;
    let timed_row = |same: &[DecisionJson]| {
        let at = seconds(timed[before].0);
        before += same.len();
        std::iter::once(at).chain(row(same)).collect()
    };
    stretches(&decisions).map(timed_row).collect()
}

/// Returns a row for each stretch of decisions that chose the same contents.
pub(crate) fn rows(decisions: &[DecisionJson]) -> Vec<[String; 6]> {
    stretches(decisions).map(row).collect()
}

fn stretches(decisions: &[DecisionJson]) -> impl Iterator<Item = &[DecisionJson]> {
    decisions.chunk_by(|a, b| (&a.scheme, &a.codec, &a.bound) == (&b.scheme, &b.codec, &b.bound))
}

fn row(same: &[DecisionJson]) -> [String; 6] {
    let [first, last] = [&same[0], &same[same.len() - 1]];
    let dash = || "-".to_owned();
    let [early, late] = [first, last].map(|of| of.interval_seconds.map_or_else(dash, seconds));
    let saves = first.scheme != "none";
    let of_versions = |text: &String| if saves { text.clone() } else { dash() };
    [
        first.iteration.to_string(),
        first.scheme.clone(),
        of_versions(&first.codec),
        of_versions(&first.bound),
        if early == late { early } else { format!("{early} to {late}") },
        last.extra.extra_iterations_predicted.filter(|_| saves).map_or_else(dash, |extra| format!("{extra:.1}")),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decisions_for_the_same_contents_are_one_row_with_both_intervals() {
        let decision = |iteration, scheme: &str, codec: &str, interval| DecisionJson {
            iteration,
            scheme: scheme.to_owned(),
            codec: codec.to_owned(),
            interval_seconds: interval,
            ..DecisionJson::default()
        };
        let found = rows(&[
            decision(1, "lossy", "qb", Some(600.0)),
            decision(9, "lossy", "qb", Some(660.0)),
            decision(20, "lossy", "pco", Some(660.0)),
            decision(31, "none", "raw", None),
        ]);
        let seen: Vec<String> = found.iter().map(|row| row.join("|")).collect();
        let expected = ["1|lossy|qb||10 min 00 s to 11 min 00 s|-", "20|lossy|pco||11 min 00 s|-", "31|none|-|-|-|-"];
        assert_eq!(seen, expected);
    }
}
