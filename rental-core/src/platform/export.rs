//! All objects of an organization as lines of JSON, from one snapshot.

use super::{context::Context, engine::Kind};
use crate::{
    error::Error,
    imports::organization,
    store::{Key, Order, Record, Span, Store, StoreError, all_sound},
    value::OrganizationId,
};
use std::{fmt, io};

/// Why an export failed. The output has no last line, so an import refuses it.
#[derive(Debug)]
pub enum ExportError {
    /// The organization does not exist, or the store is not available.
    Store(Error),
    /// An I/O error of the output.
    Write(io::Error),
}

impl fmt::Display for ExportError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Store(error) => write!(f, "cannot read what to export: {error}"),
            Self::Write(error) => write!(f, "cannot write the export: {error}"),
        }
    }
}

impl std::error::Error for ExportError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Store(error) => Some(error),
            Self::Write(error) => Some(error),
        }
    }
}

impl From<Error> for ExportError {
    fn from(error: Error) -> Self {
        Self::Store(error)
    }
}

impl From<StoreError> for ExportError {
    fn from(error: StoreError) -> Self {
        Self::Store(error.into())
    }
}

impl From<io::Error> for ExportError {
    fn from(error: io::Error) -> Self {
        Self::Write(error)
    }
}

/// Lines that were written to `out`.
struct Lines<W> {
    out: W,
    count: u64,
}

impl<W: io::Write> Lines<W> {
    fn add(&mut self, record: &Record) -> io::Result<()> {
        self.count += 1;
        self.out.write_all(&organization::line(&record.value))
    }

    /// Writes the last line. The first two lines, the schema version and the organization, are no objects of its own.
    fn finish(mut self) -> io::Result<u64> {
        self.out.write_all(organization::end_line(self.count).as_bytes())?;
        self.out.flush()?;
        Ok(self.count.saturating_sub(2))
    }
}

/// Writes all objects of `organization`, and returns their number.
pub(super) async fn export<W: io::Write>(
    context: &Context,
    organization: OrganizationId,
    mut out: W,
) -> Result<u64, ExportError> {
    out.write_all(organization::first_line().as_bytes())?;
    let (spans, mut lines) = (organization::spans(organization), Lines { out, count: 1 });
    match &context.engine().0 {
        Kind::Known(store) => {
            let mut snapshot = store.snapshot().await?;
            for mut rest in spans {
                loop {
                    let rows = snapshot.next(&mut rest).await?;
                    if rows.is_empty() {
                        break;
                    }
                    rows.iter().try_for_each(|row| lines.add(row))?;
                }
            }
        }
        Kind::Other(store) => from_single_calls(store.as_ref(), &spans, &mut lines).await?,
    }
    Ok(lines.finish()?)
}

/// Exports from a store without snapshots: one call of `scan` reads all objects of the organization.
async fn from_single_calls<W: io::Write>(
    store: &dyn Store,
    spans: &[Span],
    lines: &mut Lines<W>,
) -> Result<(), ExportError> {
    let Some((own, rest)) = spans.split_first() else { return Ok(()) };
    all_sound(store.scan(own, 1).await?)?.iter().try_for_each(|row| lines.add(row))?;
    let first = rest.iter().map(|span| &span.from).min();
    let last = rest.iter().map(|span| &span.to).max();
    let (Some(from), Some(to)) = (first, last) else { return Ok(()) };
    let all = Span { from: from.clone(), to: to.clone(), order: Order::Ascending, follow: None };
    let rows = all_sound(store.scan(&all, usize::MAX).await?)?;
    let place = |key: &Key| rows.partition_point(|row| row.key < *key);
    for span in rest {
        rows[place(&span.from)..place(&span.to)].iter().try_for_each(|row| lines.add(row))?;
    }
    Ok(())
}
