//! The program. Everything is in the library beside it, which is compiled while the machine code of `rental-core` is still made; a
//! program would wait for it.

use std::process::ExitCode;

fn main() -> ExitCode {
    rental_server::main()
}
