//! Bad machines: no file descriptors, no memory, clocks that jump, signals under load.

mod clocks;
mod descriptors;
mod jumps;
mod memory;
mod signals;
