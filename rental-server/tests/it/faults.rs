//! Bad machines: no file descriptors, clocks that jump, signals under load.

mod clocks;
mod descriptors;
mod signals;
