//! The program as users meet it: run as a process, against a scripted server.

#[cfg(test)]
mod by_agency;
mod by_field;
#[cfg(test)]
mod colours;
#[cfg(test)]
mod columns;
#[cfg(test)]
mod completions;
#[cfg(test)]
mod config;
#[cfg(test)]
mod confirming;
#[cfg(test)]
mod days;
mod details;
#[cfg(test)]
mod doctor;
mod draft_all;
#[cfg(test)]
mod errors;
#[cfg(test)]
mod fake_server;
#[cfg(test)]
mod help;
#[cfg(test)]
mod listen;
#[cfg(test)]
mod lists;
#[cfg(test)]
mod login;
#[cfg(test)]
mod narrow;
#[cfg(test)]
mod output;
#[cfg(test)]
mod raw;
#[cfg(test)]
mod requests;
#[cfg(test)]
mod retries;
#[cfg(test)]
mod secrets;
#[cfg(test)]
mod store;
#[cfg(test)]
mod store_repair;
#[cfg(test)]
mod store_upgrade;
#[cfg(test)]
mod terminal;
#[cfg(test)]
mod tips;
#[cfg(test)]
mod webhooks;
