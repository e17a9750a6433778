//! The flags of backups.

use super::quantities::duration;
use clap::Args;
use std::{path::PathBuf, time::Duration};

/// Backups that the server makes by itself.
#[derive(Args, Debug)]
pub(crate) struct BackupFlags {
    /// Folder of the backups that the server makes by itself; without it, it makes none
    #[arg(long, env = "RENTAL_BACKUP_TO", value_name = "DIR")]
    backup_to: Option<PathBuf>,

    /// Time between two of these backups
    #[arg(long, env = "RENTAL_BACKUP_EVERY", default_value = "1h", value_name = "D", value_parser = duration)]
    backup_every: Duration,

    /// Newest backups that are kept, beside the newest of each of the last 14 days
    #[arg(long, env = "RENTAL_BACKUP_KEEP", default_value = "24", value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    backup_keep: u32,
}

/// Where backups go, how often, and how many of the newest stay.
#[derive(Clone, Debug)]
pub(crate) struct BackupPlan {
    pub(crate) folder: PathBuf,
    pub(crate) every: Duration,
    pub(crate) keep: usize,
}

impl BackupFlags {
    /// What the flags ask for; `None` without a folder.
    pub(crate) fn plan(&self) -> Option<BackupPlan> {
        let keep = usize::try_from(self.backup_keep).unwrap_or(usize::MAX);
        self.backup_to.clone().map(|folder| BackupPlan { folder, every: self.backup_every, keep })
    }
}
