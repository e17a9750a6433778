//! The program, and its allocator. Everything else is in the library beside it: Cargo compiles a library while the machine code of
//! `rental-core` is still made, and lets a program wait for it.

use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    rental_server::main()
}
