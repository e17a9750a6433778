//! Bad machines: no file descriptors, no memory, clocks that jump, signals under load.

mod clocks;
mod descriptors;
mod memory;
mod signals;
