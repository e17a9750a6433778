//! The crates of the workspace with the order of their rooms: data for the tests in `imports.rs`.

/// A crate of the workspace.
pub(super) struct Crate {
    /// Its folder.
    pub(super) name: &'static str,
    /// Its rooms, each after those that it uses: `value < store < {webhooks, imports} < platform`. Rooms in braces do not
    /// use each other.
    pub(super) order: &'static str,
}

pub(super) const CRATES: &[Crate] = &[
    Crate {
        name: "rental-core",
        order: "value < store < error < schema < rows < resources < {calendars, fleet, request} < operations < webhooks < erasing < tasks < attachments < check < upgrade < imports \
                < platform",
    },
    Crate {
        name: "rental-server",
        order: "{changed_feeds, config, congestion, damaged_rows, disk, documents, histogram, limits, open_files, outgoing, panics, service_manager, threads, trace_context} < edge < {engine, healthcheck, http, secrets, supervisor, telemetry} < {access, audit, master_key, upgrade} \
                < {backups, usage, webhooks} < metrics < state < {attachments, calendar_feeds, chores, guard, tasks, objects} < endpoint < reference < fleet_api < {observability, operator} \
                < {demo, endpoints}",
    },
    Crate {
        name: "rental-cli",
        order: "{edge, flags, text} < failure < {config, output} < client < commands < command_tree",
    },
    Crate {
        name: "rental-webhook-verify",
        order: "error < header < verifier < receiver < {body, http} < {actix, axum, tower, warp}",
    },
];
