//! GET /v1/tolls

use crate::support::charges;

#[test]
fn the_list_holds_whole_tolls_as_a_get_gives_them_newest_first() {
    charges::the_list_holds_whole_objects_newest_first("tolls");
}

#[test]
fn vehicle_and_customer_select_alone_and_together() {
    charges::vehicle_and_customer_select_alone_and_together("tolls");
}

#[test]
fn what_there_is_not_has_no_tolls() {
    charges::what_there_is_not_has_none("tolls");
}
