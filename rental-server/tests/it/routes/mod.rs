//! One folder for each path, one file for each verb.

mod customers;
mod invoices;
mod leads;
mod rentals;
mod tolls;
mod vehicles;
mod violations;
