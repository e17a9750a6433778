//! What can hold a vehicle for some nights.

use super::{BlockId, Id, RentalId};
use uuid::Uuid;

/// What holds a vehicle.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Holder {
    /// A rental.
    Rental(RentalId),
    /// A block.
    Block(BlockId),
}

impl Holder {
    /// The tag of blocks in keys; that of the resource.
    pub(crate) const BLOCK: u8 = 21;
    /// The tag of rentals in keys; that of the resource.
    pub(crate) const RENTAL: u8 = 3;

    /// The holder with this id of the resource with this tag; `None` for a resource that holds nothing.
    pub(crate) fn of(resource: u8, id: Uuid) -> Option<Self> {
        match resource {
            Self::RENTAL => Some(Self::Rental(Id::from_uuid(id))),
            Self::BLOCK => Some(Self::Block(Id::from_uuid(id))),
            _ => None,
        }
    }

    /// The tag of its resource.
    pub(crate) fn resource(self) -> u8 {
        match self {
            Self::Rental(_) => Self::RENTAL,
            Self::Block(_) => Self::BLOCK,
        }
    }

    /// The name of its resource: `rental` or `block`.
    #[must_use]
    pub fn object(self) -> &'static str {
        match self {
            Self::Rental(_) => "rental",
            Self::Block(_) => "block",
        }
    }

    /// Its id.
    #[must_use]
    pub fn uuid(self) -> Uuid {
        match self {
            Self::Rental(id) => id.uuid(),
            Self::Block(id) => id.uuid(),
        }
    }
}

impl std::fmt::Display for Holder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.object(), self.uuid())
    }
}
