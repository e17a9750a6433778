//! Black-box tests: the real program, over real HTTP, on real stores. Files mirror the URL space and the promises.

mod support;

mod routes;
