//! Reads a span of any length in pages of bounded size.

use super::{Order, Scanned, Span, Store, StoreError, key_of};

/// The pages of a span, in its order. For spans that do not follow index entries, because a page ends at the key of its last
/// row.
pub struct Pages<'s> {
    store: &'s dyn Store,
    /// The unread part of the span; `None` after the last page.
    rest: Option<Span>,
    size: usize,
}

impl<'s> Pages<'s> {
    /// Reads `span` with at most `size` rows in a page.
    #[must_use]
    pub fn of(store: &'s dyn Store, span: Span, size: usize) -> Self {
        Self { store, rest: Some(span), size }
    }

    /// The next page, which has at least one row; `None` after the last one.
    ///
    /// # Errors
    /// The store is not available, or damaged pages are all that is left of the span.
    pub async fn next(&mut self) -> Result<Option<Vec<Scanned>>, StoreError> {
        let Some(span) = &mut self.rest else { return Ok(None) };
        let page = self.store.scan(span, self.size).await?;
        let is_full = page.len() == self.size;
        move_behind(span, &page);
        if !is_full {
            self.rest = None;
        }
        Ok((!page.is_empty()).then_some(page))
    }
}

/// Moves a span behind a page that was read from its start. The span does not follow index entries.
pub(crate) fn move_behind(span: &mut Span, page: &[Scanned]) {
    match (page.last().map(key_of), span.order) {
        (Some(last), Order::Ascending) => span.from = last.next(),
        (Some(last), Order::Descending) => span.to = last.clone(),
        (None, _) => {}
    }
}
