//! The first byte of a key.

/// Defines the tags once: the enum, the list of all, and the tag of a byte.
macro_rules! tags {
    ($($(#[$doc:meta])* $name:ident = $byte:literal,)+) => {
        /// The first byte of a key: the kind of the row. A byte is never reused for another kind: `b` is that of billing claims of before
        /// the first release.
        #[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
        #[repr(u8)]
        pub enum Tag {
            $($(#[$doc])* $name = $byte,)+
        }

        impl Tag {
            /// All tags, by ascending byte.
            pub const ALL: &[Self] = &[$(Self::$name,)+];

            /// The tag with this byte; `None` for a byte that is no tag.
            #[must_use]
            pub fn of(byte: u8) -> Option<Self> {
                match byte {
                    $($byte => Some(Self::$name),)+
                    _ => None,
                }
            }
        }
    };
}

tags! {
    /// See [`Row::Marker`](super::Row::Marker).
    Marker = b'!',
    /// See [`Row::Access`](super::Row::Access).
    Access = b'a',
    /// See [`Row::Calendar`](super::Row::Calendar).
    Calendar = b'c',
    /// See [`Row::Due`](super::Row::Due).
    Due = b'd',
    /// See [`Row::Erased`](super::Row::Erased).
    Erased = b'e',
    /// See [`Row::VehicleFeed`](super::Row::VehicleFeed).
    VehicleFeed = b'f',
    /// See [`Row::CalendarFeed`](super::Row::CalendarFeed).
    CalendarFeed = b'g',
    /// See [`Row::Hold`](super::Row::Hold).
    Hold = b'h',
    /// See [`Row::IndexEntry`](super::Row::IndexEntry).
    IndexEntry = b'i',
    /// See [`Row::Bell`](super::Row::Bell).
    Bell = b'j',
    /// See [`Row::Recheck`](super::Row::Recheck).
    Recheck = b'k',
    /// See [`Row::Heartbeat`](super::Row::Heartbeat).
    Heartbeat = b'l',
    /// See [`Row::IdempotencyRecord`](super::Row::IdempotencyRecord).
    IdempotencyRecord = b'm',
    /// See [`Row::Counter`](super::Row::Counter).
    Counter = b'n',
    /// See [`Row::Outbox`](super::Row::Outbox).
    Outbox = b'o',
    /// See [`Row::Logo`](super::Row::Logo).
    Logo = b'p',
    /// See [`Row::Subscribed`](super::Row::Subscribed).
    Subscribed = b'q',
    /// See [`Row::Record`](super::Row::Record).
    Record = b'r',
    /// See [`Row::Secrets`](super::Row::Secrets).
    Secrets = b's',
    /// See [`Row::Task`](super::Row::Task).
    Task = b't',
    /// See [`Row::Identity`](super::Row::Identity).
    Identity = b'u',
    /// See [`Row::Usage`](super::Row::Usage).
    Usage = b'v',
    /// See [`Row::Owner`](super::Row::Owner).
    Owner = b'w',
    /// See [`Row::IdempotencyExpiry`](super::Row::IdempotencyExpiry).
    IdempotencyExpiry = b'x',
}

impl Tag {
    /// Whether keys of this kind begin with their organization. What an organization uses is the size of these rows. A new
    /// kind does not compile before it is decided here.
    #[must_use]
    pub const fn is_owned(self) -> bool {
        match self {
            Self::Calendar
            | Self::Erased
            | Self::VehicleFeed
            | Self::CalendarFeed
            | Self::Hold
            | Self::IndexEntry
            | Self::IdempotencyRecord
            | Self::Counter
            | Self::Outbox
            | Self::Logo
            | Self::Subscribed
            | Self::Recheck
            | Self::Record
            | Self::Identity => true,
            Self::Marker
            | Self::Access
            | Self::Due
            | Self::Bell
            | Self::Heartbeat
            | Self::Secrets
            | Self::Task
            | Self::Usage
            | Self::Owner
            | Self::IdempotencyExpiry => false,
        }
    }
}
