//! One folder for each path, one file for each verb.

mod customers;
mod events;
mod invoices;
mod leads;
mod me;
mod rentals;
mod tolls;
mod vehicles;
mod violations;
