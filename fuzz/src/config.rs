//! The part of the server's configuration that its HTTP needs.

#[path = "../../rental-server/src/config/network.rs"]
mod network;
pub(crate) use network::Network;
