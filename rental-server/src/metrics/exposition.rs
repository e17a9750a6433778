//! The formats of `/metrics`: OpenMetrics 1.0, and the text format 0.0.4 that Prometheus had before.

/// A format of the page.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Exposition {
    OpenMetrics,
    Text,
}

impl Exposition {
    /// The format that an `Accept` header prefers. Scrapers that know OpenMetrics name it; everyone else gets text.
    pub(crate) fn accepted(header: Option<&str>) -> Self {
        let weight = |wanted: &str| {
            let ranges = header.unwrap_or("").split(',').filter_map(|range| {
                let mut parts = range.split(';').map(str::trim);
                parts.next().filter(|name| name.eq_ignore_ascii_case(wanted))?;
                let quality = parts.find_map(|part| part.strip_prefix("q=").or_else(|| part.strip_prefix("Q=")));
                Some(quality.map_or(1.0, |quality| quality.parse().unwrap_or(0.0)))
            });
            ranges.fold(0.0_f32, f32::max)
        };
        let open = weight("application/openmetrics-text");
        if open > 0.0 && open >= weight("text/plain") { Self::OpenMetrics } else { Self::Text }
    }

    pub(crate) fn content_type(self) -> &'static str {
        match self {
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
            Self::Text => "text/plain; version=0.0.4; charset=utf-8",
        }
    }

    /// A page of OpenMetrics in this format.
    pub(super) fn of(self, page: String) -> String {
        match self {
            Self::OpenMetrics => page,
            Self::Text => as_text(&page),
        }
    }
}

/// The same samples in the text format: a family has the name of its samples, and there are neither units nor an end mark.
fn as_text(page: &str) -> String {
    let mut text = String::with_capacity(page.len());
    let mut help = "";
    for line in page.lines() {
        let kind = line.strip_prefix("# TYPE ").and_then(|rest| rest.split_once(' '));
        match (line.strip_prefix("# HELP "), kind) {
            // Written with the type, which says the name.
            (Some(rest), _) => help = rest.split_once(' ').map_or("", |(_, help)| help),
            (None, Some((family, kind))) => {
                let (ending, kind) = match kind {
                    "counter" => ("_total", "counter"),
                    "info" => ("_info", "gauge"),
                    "unknown" => ("", "untyped"),
                    other => ("", other),
                };
                text.extend(["# HELP ", family, ending, " ", help, "\n# TYPE ", family, ending, " ", kind, "\n"]);
            }
            (None, None) if line.starts_with('#') => {}
            (None, None) => text.extend([line, "\n"]),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn openmetrics_is_for_those_who_name_it_and_prefer_it() {
        let check = |header: Option<&str>, expected| assert_eq!(Exposition::accepted(header), expected, "{header:?}");
        check(None, Exposition::Text);
        check(Some("*/*"), Exposition::Text);
        check(Some(""), Exposition::Text);
        check(Some("text/plain;version=0.0.4"), Exposition::Text);
        check(Some("application/openmetrics-text"), Exposition::OpenMetrics);
        check(Some("Application/OpenMetrics-Text; version=1.0.0; charset=utf-8"), Exposition::OpenMetrics);
        check(Some("application/openmetrics-text;q=0"), Exposition::Text);
        check(Some("application/openmetrics-text;q=x, text/plain;q=0.1"), Exposition::Text);
        check(Some("text/plain;version=0.0.4;q=0.9, application/openmetrics-text;q=0.5"), Exposition::Text);
        // What Prometheus 2.42 and 3.5 send.
        let old = "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1";
        check(Some(old), Exposition::OpenMetrics);
        let new = "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.5,application/openmetrics-text;version=0.0.1;q=0.4,text/plain;version=1.0.0;escaping=allow-utf-8;q=0.3,text/plain;version=0.0.4;q=0.2,*/*;q=0.1";
        check(Some(new), Exposition::OpenMetrics);
    }

    #[test]
    fn a_counter_and_an_info_are_typed_in_both_formats() {
        let page = "# HELP a_seconds What a does.\n# TYPE a_seconds counter\n# UNIT a_seconds seconds\na_seconds_total{x=\"#\"} 1\n\
                    # HELP b B.\n# TYPE b info\nb_info{v=\"1\"} 1\n# HELP c C.\n# TYPE c histogram\nc_count 1\n# EOF\n";
        let text = "# HELP a_seconds_total What a does.\n# TYPE a_seconds_total counter\na_seconds_total{x=\"#\"} 1\n\
                    # HELP b_info B.\n# TYPE b_info gauge\nb_info{v=\"1\"} 1\n# HELP c C.\n# TYPE c histogram\nc_count 1\n";
        assert_eq!(as_text(page), text);
        assert_eq!(Exposition::OpenMetrics.of(page.into()), page);
    }
}
