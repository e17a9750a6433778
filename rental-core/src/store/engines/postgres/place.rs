//! The engine in the table of engines: `postgres://...`.

use super::{
    address::Address,
    engine::{Postgres, Settings},
    views,
};
use crate::store::{
    Absent, Access, Answer, CommitObserver, Engine, Environment, Finished, Maintenance, Opening, ParsedPlace, Place,
    Restore, Restoring, Scheme, Snapshot, StoreError, Tally,
};
use crate::value::Timestamp;
use std::{path::Path, sync::Arc};

/// The engine in the table of engines.
pub const SCHEME: Scheme = Scheme { form: "postgres://USER@HOST:PORT/DATABASE", shared: true, parse };

fn parse(url: &str) -> Option<ParsedPlace> {
    url.starts_with("postgres").then(|| Address::parse(url).map(|address| Arc::new(address) as Arc<dyn Place>))
}

impl Address {
    /// This address with its password, and the trusted certificates. A password that the URL lacks comes from where libpq
    /// takes it: a variable, or a file that only its owner can read.
    fn completed(&self, environment: &dyn Environment) -> Result<(Self, Option<Vec<u8>>), StoreError> {
        let read = || -> Result<_, String> {
            let roots = self.root_certificate().map(|path| environment.file(path)).transpose()?;
            let variable = |name| environment.variable(name).filter(|_| self.lacks_password());
            let password = match (variable("PGPASSWORD"), variable("PGPASSFILE")) {
                (Some(password), _) => password.into_string().ok(),
                (None, Some(path)) => {
                    let text = environment.secret_file(Path::new(&path))?;
                    self.password_in(&String::from_utf8_lossy(&text))
                }
                (None, None) => None,
            };
            Ok((password, roots))
        };
        let (password, roots) = read().map_err(StoreError::Unavailable)?;
        let mut address = self.clone();
        password.into_iter().for_each(|password| address.set_password(&password));
        Ok((address, roots))
    }
}

fn settings(opening: &Opening<'_>) -> Settings {
    Settings { writer: opening.writer, patience: opening.patience }
}

impl Place for Address {
    fn file(&self) -> Option<&Path> {
        None
    }

    fn advice(&self) -> &'static str {
        "check the URL, PGPASSWORD or PGPASSFILE, and the database"
    }

    fn open<'a>(&'a self, access: Access, opening: &'a Opening<'a>) -> Answer<'a, Arc<dyn Engine>> {
        Box::pin(async move {
            let (address, roots) = self.completed(opening.environment)?;
            let mode = (access, opening.absent);
            let store = Postgres::open_as(&address, roots.as_deref(), settings(opening), mode).await;
            store.map(|store| Arc::new(store) as Arc<dyn Engine>)
        })
    }

    fn restore<'a>(&'a self, opening: &'a Opening<'a>, restore: Restore<'a>) -> Restoring<'a> {
        Box::pin(async move {
            let (address, roots) = self.completed(opening.environment)?;
            let store = Postgres::connect(&address, roots.as_deref(), settings(opening), Absent::Create).await?;
            let loaded = store.load(&address, restore).await;
            store.close().await;
            loaded
        })
    }

    fn maintenance(&self) -> Result<&dyn Maintenance, &'static str> {
        Err("is a database, which does this itself (data_checksums, VACUUM)")
    }
}

impl Engine for Postgres {
    fn name(&self) -> &'static str {
        "postgres"
    }

    fn is_shared(&self) -> bool {
        true
    }

    fn time(&self) -> Answer<'_, Option<Timestamp>> {
        Box::pin(async move { Self::time(self).await.map(Some) })
    }

    fn observe(&self, observer: Arc<dyn CommitObserver>) {
        Self::observe(self, observer);
    }

    fn count(&self, tally: Arc<Tally>) {
        Self::count(self, tally);
    }

    fn snapshot(&self) -> Answer<'_, Box<dyn Snapshot>> {
        Box::pin(async move { Ok(Box::new(Self::snapshot(self).await?) as Box<dyn Snapshot>) })
    }

    fn make_views<'a>(&'a self, views: &'a [(&'a str, &'a str)]) -> Finished<'a> {
        Box::pin(views::make(&self.connections.pool, self.connections.patience, views))
    }

    fn close(self: Arc<Self>) -> Answer<'static, ()> {
        Box::pin(async move {
            if let Some(store) = Arc::into_inner(self) {
                store.close().await;
            }
            Ok(())
        })
    }
}
