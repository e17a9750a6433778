//! The operations: list, get, create and update for all resources. Each write is one transaction.
//!
//! A write reads the store and prepares one [`Batch`](crate::store::Batch): the object, its index entries, its events with
//! their outbox rows, its holds and the stored response. The store commits the batch atomically. If a row that the write
//! has read changes first, the write is prepared again.

pub mod api_keys;
pub mod assignments;
mod availability;
mod bills;
mod calendar;
pub mod calendar_feed_counts;
pub mod calendar_feeds;
mod calendar_nights;
pub mod calendar_sync;
mod commit_for;
mod completion;
mod counter;
mod create;
pub mod edge;
mod edit;
pub mod effects;
pub mod erased;
mod events;
pub mod holds;
pub mod idempotency;
mod intent;
mod new_api_key;
mod newest;
mod notices;
pub(crate) mod number;
mod read;
pub(crate) mod recheck;
mod reference;
mod sent_body;
mod settle;
mod update;
mod vehicle_feed;
mod write_once;

pub use availability::available;
pub(crate) use bills::{bill_review, credited};
pub use calendar::calendar;
pub(crate) use commit_for::{commit_for, deletion_of};
pub(crate) use completion::finish;
pub(crate) use counter::next_number;
pub use create::{Create, insert};
pub use edge::Edge;
pub(crate) use edge::{created_at, id_time};
pub use edit::{edit, replace};
pub use intent::{Intent, Prepared, Preparing};
pub use new_api_key::{IssueApiKey, NewApiKey};
pub(crate) use newest::made_at;
pub use newest::{Newest, newest};
pub(crate) use notices::same_vehicles;
pub use read::{Listed, get, list, owner_of, sound_page};
pub(crate) use reference::references;
pub use sent_body::SentBody;
pub use settle::{RebillCredit, RefundCredit, Settle};
pub use update::Update;
pub use vehicle_feed::{ChangeVehicleFeed, DAYS_AHEAD, DAYS_BEFORE, feed_owner, vehicle_calendar, vehicle_feed};
pub use write_once::{Render, Written, write};
