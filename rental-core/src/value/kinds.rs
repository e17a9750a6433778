//! What ids name: a type without values for each kind of object, and the type of its ids.
//!
//! These kinds are here and not in the files of the structs, because keys and rows have typed ids and know no object. A
//! resource whose ids no key and no row names can be the kind itself: `pub type BranchId = Id<Branch>;` in its own file.

use super::Id;

/// Declares the kinds, and the type of the ids of each.
macro_rules! kinds {
    ($($kind:ident, $id:ident: $object:literal;)+) => {
        $(
            #[doc = concat!("The kind of the id of ", $object, ".")]
            #[derive(Debug)]
            pub enum $kind {}

            #[doc = concat!("The id of ", $object, ".")]
            pub type $id = Id<$kind>;
        )+
    };
}

kinds! {
    Organization, OrganizationId: "an organization";
    Vehicle, VehicleId: "a vehicle";
    Customer, CustomerId: "a customer";
    Rental, RentalId: "a rental";
    Block, BlockId: "a block: nights on which a vehicle is not for rent";
    CalendarFeed, CalendarFeedId: "a calendar of others";
    Assignments, AssignmentsId: "the tags and plates that a vehicle has and had";
    Invoice, InvoiceId: "an invoice";
    CreditNote, CreditNoteId: "a credit note";
    Toll, TollId: "a toll";
    Violation, ViolationId: "a violation";
    Lead, LeadId: "a lead";
    ApiKey, ApiKeyId: "an API key";
    Operator, OperatorId: "a named operator";
    AuditEntry, AuditEntryId: "an entry of the audit log";
    Event, EventId: "an event";
    Endpoint, EndpointId: "a webhook endpoint";
    Delivery, DeliveryId: "a delivery: one event for one endpoint";
    Server, ServerId: "a server, one of several that share their data";
    Task, TaskId: "a long operation that continues after a restart";
}
