//! What ids name: a type without values for each kind of object, and the type of its ids.
//!
//! The kinds are below the resources, so that keys and rows can have typed ids without knowing a resource.

use super::Id;

/// Declares the kinds, and the type of the ids of each.
macro_rules! kinds {
    ($($(#[$doc:meta])* $kind:ident, $id:ident;)+) => {
        $(
            $(#[$doc])*
            #[derive(Debug)]
            pub enum $kind {}

            $(#[$doc])*
            ///
            /// The type of its id.
            pub type $id = Id<$kind>;
        )+
    };
}

kinds! {
    /// An organization, which owns a fleet.
    Organization, OrganizationId;
    /// A vehicle.
    Vehicle, VehicleId;
    /// A customer.
    Customer, CustomerId;
    /// A rental.
    Rental, RentalId;
    /// An invoice.
    Invoice, InvoiceId;
    /// A toll.
    Toll, TollId;
    /// A violation.
    Violation, ViolationId;
    /// A lead.
    Lead, LeadId;
    /// An API key.
    ApiKey, ApiKeyId;
    /// An entry of the log of operators' changes.
    AuditEntry, AuditEntryId;
    /// An event.
    Event, EventId;
    /// A webhook endpoint.
    Endpoint, EndpointId;
    /// A delivery: one event for one endpoint.
    Delivery, DeliveryId;
    /// A server that shares a store with others.
    Server, ServerId;
    /// A long task that continues after a restart.
    Task, TaskId;
}
