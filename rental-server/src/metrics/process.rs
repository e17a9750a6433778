//! Metrics of the process, with the names that Prometheus clients share. Read from Linux at each scrape.

use crate::edge;
use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeMetric},
    metrics::{counter::ConstCounter, gauge::ConstGauge},
    registry::Unit,
};
use rustix::process::{Resource, getrlimit};
use std::{fmt, fs};

/// The process of this server.
#[derive(Debug)]
pub(super) struct Process {
    /// When it started, in seconds since 1970.
    started: f64,
}

/// What `/proc/self/stat` says.
struct Stat {
    cpu_seconds: f64,
    /// Seconds from the start of the machine to that of the process.
    started: f64,
    virtual_bytes: u64,
    resident_bytes: u64,
}

impl Process {
    pub(super) fn new() -> Self {
        let now = edge::now().millis() as f64 / 1000.0;
        let uptime =
            fs::read_to_string("/proc/uptime").ok().and_then(|text| text.split(' ').next()?.parse::<f64>().ok());
        let age = uptime.zip(Stat::read()).map_or(0.0, |(uptime, stat)| uptime - stat.started);
        Self { started: now - age.max(0.0) }
    }
}

impl Stat {
    fn read() -> Option<Self> {
        Self::parse(&fs::read_to_string("/proc/self/stat").ok()?)
    }

    /// The fields behind the name of the program, which can have spaces; proc_pid_stat(5) numbers them from 3 on.
    fn parse(text: &str) -> Option<Self> {
        let fields: Vec<&str> = text.rsplit_once(") ")?.1.split(' ').collect();
        let field = |number: usize| fields.get(number - 3)?.trim_end().parse::<u64>().ok();
        let seconds = |ticks: u64| ticks as f64 / rustix::param::clock_ticks_per_second() as f64;
        Some(Self {
            cpu_seconds: seconds(field(14)? + field(15)?),
            started: seconds(field(22)?),
            virtual_bytes: field(23)?,
            resident_bytes: field(24)?.saturating_mul(rustix::param::page_size() as u64),
        })
    }
}

/// How many files the process has open. Linux says it at once since version 6.2; before, the folder is counted.
fn open_files() -> Option<u64> {
    let folder = "/proc/self/fd";
    let said = fs::metadata(folder).ok()?.len();
    if said > 0 { Some(said) } else { fs::read_dir(folder).ok().map(|files| files.count() as u64) }
}

impl Collector for Process {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let mut gauge = |name: &str, unit: Option<Unit>, help: &str, value: f64| {
            let metric = ConstGauge::new(value);
            metric.encode(encoder.encode_descriptor(name, help, unit.as_ref(), metric.metric_type())?)
        };
        gauge("start_time", Some(Unit::Seconds), "Start of the process, in seconds since 1970.", self.started)?;
        if let Some(open) = open_files() {
            gauge("open_fds", None, "Open files and sockets.", open as f64)?;
        }
        if let Some(most) = getrlimit(Resource::Nofile).current {
            gauge("max_fds", None, "Most files and sockets that may be open.", most as f64)?;
        }
        let Some(stat) = Stat::read() else { return Ok(()) };
        gauge("resident_memory", Some(Unit::Bytes), "Memory in use.", stat.resident_bytes as f64)?;
        gauge("virtual_memory", Some(Unit::Bytes), "Address space in use.", stat.virtual_bytes as f64)?;
        let cpu = ConstCounter::new(stat.cpu_seconds);
        let help = "CPU time in user and kernel mode together.";
        cpu.encode(encoder.encode_descriptor("cpu", help, Some(&Unit::Seconds), cpu.metric_type())?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_whose_name_has_spaces_and_brackets_is_read() {
        let line = "7 (a ) b) S 1 7 7 0 -1 4194560 9 0 0 0 250 50 0 0 20 0 4 0 1000 8192 3 184 0\n";
        let stat = Stat::parse(line).expect("it is complete");
        let ticks = rustix::param::clock_ticks_per_second() as f64;
        assert_eq!((stat.cpu_seconds * ticks, stat.started * ticks, stat.virtual_bytes), (300.0, 1000.0, 8192));
        assert_eq!(stat.resident_bytes, 3 * rustix::param::page_size() as u64);
        assert!(Stat::parse("7 (x) S 1").is_none());
    }
}
