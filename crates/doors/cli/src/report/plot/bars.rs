//! Bars: what the overhead went to, and the bytes of versions.

use kuva::backend::svg::SvgBackend;
use kuva::plot::BarPlot;
use kuva::plot::legend::{LegendEntry, LegendShape};
use kuva::render::layout::Layout;
use kuva::render::plots::Plot;
use kuva::render::render::{Scene, render_multiple};

use super::canvas::{Canvas, Words, own_ids, scalable, standalone};
use crate::report::figures::SchemeFigures;
use crate::report::parts::OverheadParts;

pub(super) const PARTS: Words = Words {
    name: "parts",
    caption: "What the overhead went to",
    reading: "Means over the trials, in percent of the undisturbed solve's time. To the left of 0: time won, because a \
              restart took fewer iterations than it lost.",
};

pub(super) const SIZES: Words = Words {
    name: "sizes",
    caption: "Bytes of a version, in memory and as stored",
    reading: "Means over the versions of all trials.",
};

pub(super) const PHASES: Words = Words {
    name: "phases",
    caption: "Where the time went",
    reading: "Iterations lost were executed before a failure and done again after it; checkpoints count as far as the \
              solver waited for them, recoveries from the failure to the first iteration after it.",
};

/// Draws one bar of all phases of a run, in percent of its time.
pub(super) fn phases(phases: &[(&'static str, f64)], canvas: Canvas) -> Option<Scene> {
    let total: f64 = phases.iter().map(|(_, seconds)| seconds).sum();
    if total <= 0.0 {
        return None;
    }
    let stack = phases.iter().enumerate();
    let stack = stack.map(|(index, (_, seconds))| (100.0 * seconds / total, canvas.colours.series(index + 1)));
    let bar = BarPlot::new().with_width(0.7).with_stacked().with_horizontal(true);
    let plots: Vec<Plot> = vec![bar.with_group("run", stack.collect::<Vec<_>>()).into()];
    let legend = phases.iter().enumerate().map(|(index, (name, _))| LegendEntry {
        label: (*name).to_owned(),
        color: canvas.colours.series(index + 1),
        shape: LegendShape::Rect,
        dasharray: None,
    });
    let layout = canvas
        .layout(&plots, 170.0)
        .with_legend_entries(legend.collect())
        .with_x_axis_max(100.0)
        .with_x_label("% of the time");
    Some(render_multiple(plots, layout))
}

/// Draws one bar per scheme, its causes next to each other; negative ones to the left of 0.
pub(super) fn parts(schemes: &[SchemeFigures], canvas: Canvas) -> Option<Scene> {
    let known: Vec<(&SchemeFigures, OverheadParts)> = schemes.iter().filter_map(|of| Some((of, of.parts()?))).collect();
    if known.is_empty() {
        return None;
    }
    // The two signs are two plots: a stack goes one way.
    let stack = |keep: fn(f64) -> f64| {
        let empty = BarPlot::new().with_width(0.7).with_stacked().with_horizontal(true);
        known.iter().rev().fold(empty, |bars, (scheme, parts)| {
            let values = parts.values().into_iter().enumerate();
            let stack = values.map(|(index, part)| (100.0 * keep(part), canvas.colours.series(index + 1)));
            bars.with_group(scheme.scheme.as_str(), stack.collect::<Vec<_>>())
        })
    };
    let is_negative = known.iter().any(|(_, parts)| parts.values().iter().any(|part| *part < 0.0));
    let mut plots: Vec<Plot> = vec![stack(|part| part.max(0.0)).into()];
    if is_negative {
        plots.push(stack(|part| part.min(0.0)).into());
    }
    let legend = OverheadParts::NAMES.iter().enumerate().map(|(index, name)| LegendEntry {
        label: (*name).to_owned(),
        color: canvas.colours.series(index + 1),
        shape: LegendShape::Rect,
        dasharray: None,
    });
    let layout = canvas
        .layout(&plots, 120.0 + 38.0 * known.len() as f64)
        .with_legend_entries(legend.collect())
        .with_x_label("overhead, % of the undisturbed time");
    Some(render_multiple(plots, layout))
}

/// Two bars per scheme: in memory and stored.
pub(super) fn sizes(schemes: &[SchemeFigures], canvas: Canvas) -> Option<Scene> {
    let mean = |scheme: &SchemeFigures, key: &str| Some(scheme.get(key)?.mean);
    let sized = schemes.iter().filter_map(|scheme| {
        Some((&scheme.scheme, mean(scheme, "version_raw_bytes")?, mean(scheme, "version_bytes")?))
    });
    let sized: Vec<(&String, f64, f64)> = sized.collect();
    let largest = sized.iter().map(|(_, raw, _)| *raw).fold(0.0, f64::max);
    if largest <= 0.0 {
        return None;
    }
    let (unit, name) = if largest >= 1_048_576.0 { (1_048_576.0, "MiB") } else { (1024.0, "KiB") };
    let empty = BarPlot::new().with_width(0.7).with_horizontal(true).with_legend(vec!["in memory", "stored"]);
    let bars = sized.iter().rev().fold(empty, |bars, (scheme, raw, stored)| {
        let pair = vec![(raw / unit, canvas.colours.series(0)), (stored / unit, canvas.colours.series(1))];
        bars.with_group(scheme.as_str(), pair)
    });
    let plots: Vec<Plot> = vec![bars.into()];
    let layout = canvas.layout(&plots, 120.0 + 44.0 * sized.len() as f64).with_x_label(name);
    Some(render_multiple(plots, layout))
}

/// Bars side by side in groups, as a drawing of its own; every group has a bar for each word of the
/// legend.
pub(crate) fn grouped_bars(groups: &[(String, Vec<f64>)], legend: &[&'static str], y_label: &str) -> String {
    let canvas = Canvas { width: 860.0, ..Canvas::PAGE };
    let mut bars = BarPlot::new().with_width(0.7);
    for (name, values) in groups {
        let group = values.iter().enumerate().map(|(index, &value)| (value, canvas.colours.series(index)));
        bars = bars.with_group(name.as_str(), group.collect::<Vec<_>>());
    }
    let plots: Vec<Plot> = vec![bars.with_legend(legend.to_vec()).into()];
    let layout: Layout = canvas.layout(&plots, 400.0).with_y_label(y_label);
    standalone(&own_ids(&scalable(&SvgBackend::new().render_scene(&render_multiple(plots, layout))), "bars"))
}
