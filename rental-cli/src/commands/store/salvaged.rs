//! What is told of a damaged file that was replaced by one with the rows that can be read.

use crate::output::Output;
use rental_core::store::Salvaged;
use serde_json::{Value, json};

/// For a person.
pub(super) fn note(salvaged: Option<&Salvaged>, out: &Output) {
    if let Some(salvaged) = salvaged {
        out.note(&format!("pages of the file were damaged, so it was replaced: {salvaged}"));
    }
}

/// The member `salvaged` of a result; `null` when the file was not replaced.
pub(super) fn member(salvaged: Option<&Salvaged>) -> Value {
    salvaged.map_or(Value::Null, |Salvaged { rows, damaged, lost, gaps, corrected, kept }| {
        json!({"rows": rows, "damaged": damaged, "lost": lost, "gaps": gaps, "corrected": corrected, "kept": kept})
    })
}
