//! The metrics as OTLP, made of the page that a scrape gets, so that both always say the same.

use super::parts::{Source, nanos, scope, text};
use crate::edge;
use opentelemetry_proto::tonic::{
    collector::metrics::v1::ExportMetricsServiceRequest,
    common::v1::KeyValue,
    metrics::v1::{
        AggregationTemporality, Gauge, Histogram, HistogramDataPoint, Metric, NumberDataPoint, ResourceMetrics,
        ScopeMetrics, Sum, metric::Data, number_data_point::Value,
    },
};

/// The request to the collector with the metrics of a page of OpenMetrics.
pub(super) fn request(page: &str, source: &Source) -> ExportMetricsServiceRequest {
    let times = (source.started, nanos(edge::now().millis()));
    let of_scope = ScopeMetrics { scope: scope(), metrics: metrics(page, times), ..ScopeMetrics::default() };
    let resource = Some(source.resource.clone());
    ExportMetricsServiceRequest {
        resource_metrics: vec![ResourceMetrics {
            resource,
            scope_metrics: vec![of_scope],
            ..ResourceMetrics::default()
        }],
    }
}

/// The families of a page. `times` are those of the start and of the page, in nanoseconds.
fn metrics(page: &str, times: (u64, u64)) -> Vec<Metric> {
    let (mut metrics, mut help) = (Vec::<Metric>::new(), "");
    for line in page.lines() {
        if let Some(rest) = line.strip_prefix("# HELP ") {
            help = rest.split_once(' ').map_or("", |(_, help)| help);
        } else if let Some((name, kind)) = line.strip_prefix("# TYPE ").and_then(|rest| rest.split_once(' ')) {
            let data = empty(kind);
            metrics.push(Metric { name: name.into(), description: help.into(), data: Some(data), ..Metric::default() });
        } else if let Some((_, unit)) = line.strip_prefix("# UNIT ").and_then(|rest| rest.split_once(' ')) {
            let known = [("seconds", "s"), ("bytes", "By")].into_iter().find(|(name, _)| *name == unit);
            if let Some((metric, (_, unit))) = metrics.last_mut().zip(known) {
                metric.unit = unit.into();
            }
        } else if let Some((metric, sample)) = metrics.last_mut().zip(Sample::parse(line)) {
            add(metric, sample, times);
        }
    }
    metrics
}

fn empty(kind: &str) -> Data {
    let aggregation_temporality = AggregationTemporality::Cumulative.into();
    match kind {
        "counter" => Data::Sum(Sum { aggregation_temporality, is_monotonic: true, ..Sum::default() }),
        "histogram" => Data::Histogram(Histogram { aggregation_temporality, ..Histogram::default() }),
        _ => Data::Gauge(Gauge::default()),
    }
}

/// A line of the page. No label of this server has quotes or backslashes in its value.
struct Sample<'p> {
    name: &'p str,
    labels: Vec<(&'p str, &'p str)>,
    value: f64,
}

impl<'p> Sample<'p> {
    fn parse(line: &'p str) -> Option<Self> {
        let (series, value) = line.rsplit_once(' ').filter(|_| !line.starts_with('#'))?;
        let (name, labels) = series.split_once('{').unwrap_or((series, ""));
        let mut pairs = labels.trim_end_matches('}').split('"');
        let mut found = Vec::new();
        while let (Some(label), Some(value)) = (pairs.next(), pairs.next()) {
            found.push((label.trim_matches([',', '=']), value));
        }
        Some(Self { name, labels: found, value: value.parse().ok()? })
    }
}

fn add(metric: &mut Metric, sample: Sample<'_>, (start, now): (u64, u64)) {
    let bound = sample.labels.iter().find(|(label, _)| *label == "le").and_then(|(_, bound)| bound.parse::<f64>().ok());
    let labels = sample.labels.iter().filter(|(label, _)| *label != "le");
    let attributes: Vec<KeyValue> = labels.map(|(label, value)| text(label, value)).collect();
    let part = sample.name.strip_prefix(metric.name.as_str()).unwrap_or("");
    match &mut metric.data {
        Some(Data::Histogram(histogram)) => {
            // The samples of a series follow each other; `_sum` is the first.
            if part == "_sum" {
                let point = HistogramDataPoint {
                    attributes,
                    start_time_unix_nano: start,
                    time_unix_nano: now,
                    ..Default::default()
                };
                histogram.data_points.push(HistogramDataPoint { sum: Some(sample.value), ..point });
            } else if let Some(point) = histogram.data_points.last_mut() {
                bucket(point, part, bound, sample.value as u64);
            }
        }
        Some(Data::Sum(Sum { data_points, .. }) | Data::Gauge(Gauge { data_points })) => {
            data_points.push(NumberDataPoint {
                attributes,
                start_time_unix_nano: start,
                time_unix_nano: now,
                value: Some(Value::AsDouble(sample.value)),
                ..NumberDataPoint::default()
            });
        }
        _ => {}
    }
}

/// Adds the count of all, or of one bucket. The page counts what is below each bound, OTLP what is between two.
fn bucket(point: &mut HistogramDataPoint, part: &str, bound: Option<f64>, count: u64) {
    match (part, bound) {
        ("_count", _) => point.count = count,
        ("_bucket", Some(bound)) => {
            let before: u64 = point.bucket_counts.iter().sum();
            point.bucket_counts.push(count.saturating_sub(before));
            if bound.is_finite() {
                point.explicit_bounds.push(bound);
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "# HELP a_seconds A.\n# TYPE a_seconds histogram\n# UNIT a_seconds seconds\n\
        a_seconds_sum{path=\"/v1/{id}\",x=\"y\"} 7.5\na_seconds_count{path=\"/v1/{id}\",x=\"y\"} 6\n\
        a_seconds_bucket{le=\"0.5\",path=\"/v1/{id}\",x=\"y\"} 1\na_seconds_bucket{le=\"1.0\",path=\"/v1/{id}\",x=\"y\"} 4\n\
        a_seconds_bucket{le=\"+Inf\",path=\"/v1/{id}\",x=\"y\"} 6\n\
        # HELP b B.\n# TYPE b counter\nb_total 3\n# HELP c C.\n# TYPE c gauge\nc{s=\"x\"} -1\nc{s=\"y\"} 2\n# EOF\n";

    #[test]
    fn a_page_becomes_histograms_sums_and_gauges() {
        let found = metrics(PAGE, (1, 2));
        let names: Vec<_> =
            found.iter().map(|one| (one.name.as_str(), one.description.as_str(), one.unit.as_str())).collect();
        assert_eq!(names, [("a_seconds", "A.", "s"), ("b", "B.", ""), ("c", "C.", "")]);
        let Some(Data::Histogram(histogram)) = &found[0].data else { panic!("{found:?}") };
        let [point] = &histogram.data_points[..] else { panic!("{histogram:?}") };
        assert_eq!(point.attributes, [text("path", "/v1/{id}"), text("x", "y")]);
        assert_eq!(
            (point.count, point.sum, &point.bucket_counts[..], &point.explicit_bounds[..]),
            (6, Some(7.5), &[1, 3, 2][..], &[0.5, 1.0][..])
        );
        let Some(Data::Sum(sum)) = &found[1].data else { panic!("{found:?}") };
        assert!(sum.is_monotonic);
        assert_eq!(sum.data_points[0].value, Some(Value::AsDouble(3.0)));
        let Some(Data::Gauge(gauge)) = &found[2].data else { panic!("{found:?}") };
        let values: Vec<_> = gauge.data_points.iter().map(|point| (point.attributes.clone(), point.value)).collect();
        let at = |value: &str, number: f64| (vec![text("s", value)], Some(Value::AsDouble(number)));
        assert_eq!(values, [at("x", -1.0), at("y", 2.0)]);
    }
}
