//! Uploaded files: bodies of any type and bounded size, which may take longer than a request.

use crate::{
    disk::{Spool, no_spool},
    http::{
        call::{Body, Call, is_encoded},
        patience::Patience,
        problem::Problem,
    },
};
use bytes::{Bytes, BytesMut};
use futures_util::StreamExt;
use rental_core::error::Error;
use std::{
    io::Write,
    time::{Duration, Instant},
};

/// Bytes that are written at once.
const WRITTEN_AT_ONCE: usize = 256 << 10;

/// A file that is being received.
pub(crate) struct Upload<'u, 'r> {
    call: &'u Call,
    body: &'u mut Body<'r>,
    /// Bytes that may still come.
    left: u64,
    limit: u64,
    patience: Patience,
}

impl<'u, 'r> Upload<'u, 'r> {
    /// The file of this body, of at most `limit` bytes. The client may send nothing for `stall`, and must keep the least rate of
    /// [`Patience`].
    pub(crate) fn of(call: &'u Call, body: &'u mut Body<'r>, limit: u64, stall: Duration) -> Result<Self, Problem> {
        if is_encoded(call) {
            return Err(Problem::UnsupportedMediaType("Compressed files are not taken. Send the file as it is."));
        }
        Ok(Self { call, body, left: limit, limit, patience: Patience::with_sender(stall) })
    }

    /// The next part of the file.
    async fn next(&mut self) -> Result<Option<Bytes>, Problem> {
        let since = Instant::now();
        let part = tokio::time::timeout(self.patience.left(), self.body.next()).await;
        let Some(part) = part.map_err(|_| Problem::BodyTimeout)?.transpose()? else {
            self.call.body_was_read();
            return Ok(None);
        };
        self.patience.moved(part.len(), since.elapsed());
        let left = self.left.checked_sub(part.len() as u64);
        self.left =
            left.ok_or_else(|| Problem::TooLarge { limit: usize::try_from(self.limit).unwrap_or(usize::MAX) })?;
        Ok(Some(part))
    }

    /// Receives a small file into memory.
    pub(crate) async fn into_memory(mut self) -> Result<Vec<u8>, Problem> {
        let mut file = Vec::new();
        while let Some(part) = self.next().await? {
            file.extend_from_slice(&part);
        }
        Ok(file)
    }

    /// Receives the file into a spool, on threads that may wait for the disk.
    pub(crate) async fn into_spool(mut self, mut spool: Spool) -> Result<Spool, Problem> {
        let mut waiting = BytesMut::new();
        while let Some(part) = self.next().await? {
            waiting.extend_from_slice(&part);
            if waiting.len() >= WRITTEN_AT_ONCE {
                spool = write(spool, waiting.split().freeze()).await?;
            }
        }
        write(spool, waiting.freeze()).await
    }
}

async fn write(mut spool: Spool, bytes: Bytes) -> Result<Spool, Problem> {
    let written = tokio::task::spawn_blocking(move || spool.write_all(&bytes).map(|()| spool)).await;
    let written = written.map_err(|error| Error::Internal(format!("a thread of an upload ended: {error}")))?;
    Ok(written.map_err(|error| no_spool(&error))?)
}
