//! Invoices as documents that a business sends: HTML pages and PDF files.
//!
//! [`model`] decides once what a document says: words, numbers, order. [`html`] and [`pdf`] only lay it out. Absent on purpose: the
//! store, the clock, chance. The same invoice gives the same bytes.

mod formats;
pub(crate) mod html;
pub(crate) mod logo;
pub(crate) mod model;
pub(crate) mod pdf;
#[cfg(test)]
mod tests;
mod words;
