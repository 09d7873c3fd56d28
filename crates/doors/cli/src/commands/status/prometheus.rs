//! `recoup status --prometheus`: the metrics of all runs in the text exposition format, version
//! 0.0.4: <https://prometheus.io/docs/instrumenting/exposition_formats/>.

use std::fmt;

use super::standing::{RunStanding, STATES};
use crate::directory::used_bytes;
use crate::observe::history::RecordedHistory;
use crate::report::course::RunCourse;

/// A metric of all runs.
struct Metric {
    name: &'static str,
    kind: &'static str,
    help: &'static str,
    samples: Vec<MetricSample>,
}

/// A value with its labels besides the run's name.
struct MetricSample {
    run: String,
    labels: Vec<(&'static str, String)>,
    value: f64,
}

/// The metrics of a directory.
pub(super) struct Exposition(Vec<Metric>);

/// A run with what its history tells.
pub(super) struct ToldRun<'a> {
    standing: &'a RunStanding,
    course: RunCourse,
    directory_bytes: u64,
}

impl<'a> ToldRun<'a> {
    /// Reads the history of a run; one that cannot be read counts as none.
    pub(super) fn read(standing: &'a RunStanding, folder: &std::path::Path) -> Self {
        let course = RunCourse::of(&RecordedHistory::read(folder).unwrap_or_default());
        Self { standing, course, directory_bytes: used_bytes(folder) }
    }

    fn sample(&self, labels: Vec<(&'static str, String)>, value: f64) -> MetricSample {
        MetricSample { run: self.standing.name.clone(), labels, value }
    }

    /// A value of the course; none without one.
    fn told(&self, value: impl FnOnce(&RunCourse) -> f64) -> Option<f64> {
        (self.course.processes > 0).then(|| value(&self.course))
    }

    fn info(&self) -> Vec<MetricSample> {
        let labels = self.standing.reported.iter().map(|of| {
            vec![
                ("method", of.method.clone()),
                ("scheme", of.scheme.clone()),
                ("interval", of.interval.clone()),
                ("host", of.host.clone()),
                ("process", of.process.to_string()),
            ]
        });
        labels.map(|labels| self.sample(labels, 1.0)).collect()
    }

    fn states(&self) -> Vec<MetricSample> {
        let is = |state: &str| f64::from(u8::from(self.standing.state == state));
        STATES.iter().map(|state| self.sample(vec![("state", (*state).to_owned())], is(state))).collect()
    }

    fn phases(&self) -> Vec<MetricSample> {
        let phases = self.course.phases().into_iter().filter(|_| self.course.processes > 0);
        let sample = |(name, seconds): (&str, f64)| self.sample(vec![("phase", name.replace(' ', "_"))], seconds);
        phases.map(sample).collect()
    }
}

/// The metrics that have one value for each run: name, kind, help, value.
type PlainMetric = (&'static str, &'static str, &'static str, fn(&ToldRun<'_>) -> Option<f64>);

const PLAIN: [PlainMetric; 17] = [
    ("recoup_iteration", "gauge", "Index of the last iteration.", |run| {
        Some(run.standing.reported.as_ref()?.iteration as f64)
    }),
    ("recoup_relative_residual", "gauge", "||r|| / ||b|| after it.", |run| {
        run.standing.reported.as_ref()?.relative_residual
    }),
    ("recoup_tolerance", "gauge", "Relative residual at which the run ends.", |run| {
        Some(run.standing.reported.as_ref()?.rtol)
    }),
    (
        "recoup_iterations_executed_total",
        "counter",
        "Iterations executed by all processes of the run, those done again included.",
        |run| run.told(|course| course.last.executed as f64),
    ),
    ("recoup_iterations_lost_total", "counter", "Iterations lost to failures.", |run| {
        run.told(|course| course.costs.lost_iterations as f64)
    }),
    ("recoup_failures_total", "counter", "Failures, processes that ended without a word included.", |run| {
        Some(run.standing.reported.as_ref()?.failures as f64)
    }),
    ("recoup_recoveries_total", "counter", "Versions restored.", |run| run.told(|course| course.recoveries as f64)),
    ("recoup_versions_total", "counter", "Versions saved by all processes of the run.", |run| {
        run.told(|course| course.saved().versions as f64)
    }),
    ("recoup_version_raw_bytes_total", "counter", "Bytes of the values of these versions.", |run| {
        run.told(|course| course.saved().versions_raw_bytes as f64)
    }),
    ("recoup_version_stored_bytes_total", "counter", "Bytes of them as stored.", |run| {
        run.told(|course| course.saved().versions_stored_bytes as f64)
    }),
    (
        "recoup_saving_seconds_total",
        "counter",
        "Time from draft to publication of these versions, behind the solver.",
        |run| run.told(|course| course.saved().versions_seconds),
    ),
    ("recoup_seconds_total", "counter", "Time of all processes of the run.", |run| {
        run.told(|course| course.costs.total_seconds)
    }),
    ("recoup_newest_version", "gauge", "Number of the newest whole version.", |run| {
        Some(run.standing.newest_version? as f64)
    }),
    ("recoup_newest_version_age_seconds", "gauge", "Time since it was published.", |run| {
        run.standing.version_age_seconds
    }),
    ("recoup_interval_seconds", "gauge", "Time between the last two versions.", |run| {
        run.standing.reported.as_ref()?.interval_seconds
    }),
    ("recoup_status_age_seconds", "gauge", "Time since the run last wrote its status.", |run| {
        run.standing.silent_seconds
    }),
    ("recoup_directory_bytes", "gauge", "Bytes of the run in its directory.", |run| Some(run.directory_bytes as f64)),
];

impl Exposition {
    pub(super) fn of(runs: &[ToldRun<'_>]) -> Self {
        let mut metrics = vec![
            Metric {
                name: "recoup_run_info",
                kind: "gauge",
                help: "Facts of a run.",
                samples: runs.iter().flat_map(ToldRun::info).collect(),
            },
            Metric {
                name: "recoup_run_state",
                kind: "gauge",
                help: "1 for the state that a run is in.",
                samples: runs.iter().flat_map(ToldRun::states).collect(),
            },
            Metric {
                name: "recoup_phase_seconds",
                kind: "gauge",
                help: "Where the time of a run went so far; the phases sum to its time.",
                samples: runs.iter().flat_map(ToldRun::phases).collect(),
            },
        ];
        for (name, kind, help, value) in PLAIN {
            let samples = runs.iter().filter_map(|run| Some(run.sample(Vec::new(), value(run)?))).collect();
            metrics.push(Metric { name, kind, help, samples });
        }
        Self(metrics)
    }
}

impl fmt::Display for Exposition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for Metric { name, kind, help, samples } in self.0.iter().filter(|metric| !metric.samples.is_empty()) {
            writeln!(f, "# HELP {name} {help}\n# TYPE {name} {kind}")?;
            for MetricSample { run, labels, value } in samples {
                let labels = std::iter::once(("run", run)).chain(labels.iter().map(|(name, value)| (*name, value)));
                let labels: Vec<String> =
                    labels.map(|(name, value)| format!("{name}=\"{}\"", escaped(value))).collect();
                writeln!(f, "{name}{{{}}} {value}", labels.join(","))?;
            }
        }
        Ok(())
    }
}

fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}
