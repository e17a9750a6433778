//! The circles that are still there, and the order of rooms: data for the tests in `imports.rs`.

/// What is known of a crate.
pub(super) struct Known {
    /// Its folder.
    pub(super) name: &'static str,
    /// Its rooms, each after those that it uses: `value < store < {webhooks, imports} < platform`. Rooms in braces do not
    /// use each other. Empty while the order is not decided.
    pub(super) order: &'static str,
    /// Rooms in circles. The list may only become shorter.
    pub(super) rooms: &'static [&'static [&'static str]],
    /// Files in circles, named by their module. The list may only become shorter.
    pub(super) files: &'static [&'static [&'static str]],
}

pub(super) const CRATES: &[Known] = &[
    Known {
        name: "rental-core",
        order: "value < store < error < schema < rows < resources < {fleet, request} < operations < webhooks < tasks < check < upgrade < imports \
                < platform",
        rooms: &[],
        files: &[],
    },
    Known {
        name: "rental-server",
        order: "{config, damaged_rows, disk, edge, panics} < {engine, http, secrets, supervisor} < {access, audit, upgrade, webhooks} \
                < metrics < state < {chores, tasks, endpoint, objects} < {fleet_api, reference} < {observability, operator} \
                < {demo, endpoints}",
        rooms: &[],
        files: &[],
    },
    Known {
        name: "rental-cli",
        order: "{edge, objects, text} < failure < {config, output} < client < commands < command_tree",
        rooms: &[],
        files: &[],
    },
    Known {
        name: "rental-webhook-verify",
        order: "error < header < verifier < receiver < {body, http} < {actix, axum, tower, warp}",
        rooms: &[],
        files: &[],
    },
];
