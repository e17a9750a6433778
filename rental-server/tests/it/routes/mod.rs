//! One folder for each path, one file for each verb.

mod vehicles;
