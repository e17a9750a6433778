//! One folder for each path, one file for each verb.

mod availability;
mod blocks;
mod customers;
mod events;
mod invoices;
mod leads;
mod me;
mod rentals;
mod tolls;
mod vehicles;
mod violations;
