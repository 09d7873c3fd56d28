//! The report: JSON for programs, and the table of docs/figures/device.md.

use std::fmt::Write as _;

use anyhow::Result;
use recoup::device::driver_version;
use serde::Serialize;

use crate::figure::TimedFigure;
use crate::measured::MeasuredDevice;

/// All figures, and the machine they were taken on. It has no date: the same machine gives the same
/// keys.
#[derive(Debug, Serialize)]
pub(crate) struct GpuReport {
    device: String,
    capability: String,
    memory_bytes: usize,
    /// The version of CUDA that the driver serves.
    driver: String,
    /// The sizes: full, quick or smallest.
    sizes: &'static str,
    /// The reason why no figure has a value.
    not_timed: Option<&'static str>,
    figures: Vec<SectionFigure>,
}

/// A figure of a section.
#[derive(Debug, Serialize)]
struct SectionFigure {
    section: &'static str,
    #[serde(flatten)]
    figure: TimedFigure,
}

impl GpuReport {
    /// A report without figures.
    ///
    /// # Errors
    /// Those of the driver.
    pub(crate) fn new(measured: &MeasuredDevice) -> Result<Self> {
        let info = measured.device.info();
        Ok(Self {
            device: info.name.clone(),
            capability: info.capability.to_string(),
            memory_bytes: info.memory_bytes,
            driver: driver_version()?.to_string(),
            sizes: measured.sizes.name,
            not_timed: measured.untimed(),
            figures: Vec::new(),
        })
    }

    /// Adds the figures of a section; without values where time means nothing.
    pub(crate) fn add(&mut self, section: &'static str, figures: Vec<TimedFigure>) {
        let is_timed = self.not_timed.is_none();
        let shown = figures.into_iter().map(|figure| if is_timed { figure } else { figure.without_values() });
        self.figures.extend(shown.map(|figure| SectionFigure { section, figure }));
    }

    /// Returns the report as JSON.
    ///
    /// # Errors
    /// When a value has no form in JSON.
    pub(crate) fn json(&self) -> Result<String> {
        Ok(serde_json::to_string_pretty(self)? + "\n")
    }

    /// Returns the table, below a line that names the machine.
    pub(crate) fn markdown(&self) -> String {
        let Self { device, capability, driver, sizes, .. } = self;
        let mut text = format!("{device}, capability {capability}, driver of CUDA {driver}, {sizes} sizes.\n\n");
        text += "| section | figure | bytes | median | least to greatest |\n|---|---|---|---|---|\n";
        for SectionFigure { section, figure } in &self.figures {
            let value = |value: Option<f64>| value.map(|value| figure.unit.text(value));
            let median = value(figure.median).unwrap_or_else(|| self.no_value());
            let spread = value(figure.least).zip(value(figure.greatest));
            let spread = spread.map_or_else(|| "-".to_owned(), |(least, greatest)| format!("{least} to {greatest}"));
            let _ = writeln!(text, "| {section} | {} | {} | {median} | {spread} |", figure.name, figure.bytes);
        }
        text
    }

    fn no_value(&self) -> String {
        format!("not timed: {}", self.not_timed.unwrap_or("no sample"))
    }
}
