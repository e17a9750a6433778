//! API keys, and the signatures of events.

use super::super::{Clock, fleet, runtime, vehicle};
use rental_core::{
    Platform,
    error::{Error, KeyProblem},
    operations::{api_keys, edge::Edge},
    platform::Access,
    resources::{api_key::Scope, organization::Plan},
    store::memory::Memory,
};
use serde_json::json;

#[test]
fn a_signature_needs_a_secret_and_all_secrets_verify() {
    runtime().block_on(async {
        let clock = Clock::default();
        let platform = Platform::with_edge(Memory::default(), clock.clone());
        let fleet = fleet(&platform).await;
        vehicle(&fleet).await;
        let event = fleet.events().await.unwrap().objects.remove(0);
        for none in [&[][..], &[""], &["whsec_1", " "]] {
            assert!(matches!(platform.sign(&event, none), Err(Error::Invalid(_))), "{none:?}");
        }
        let (old, new) = (platform.new_webhook_secret().unwrap(), platform.new_webhook_secret().unwrap());
        let header = platform.sign(&event, &[&new, &old]).unwrap();
        let now = clock.now().seconds();
        for secret in [&old, &new] {
            assert_eq!(rental_webhook_verify::verify(secret.as_bytes(), &header, event.body(), now), Ok(()));
        }
        clock.advance_hours(1);
        let late = rental_webhook_verify::verify(new.as_bytes(), &header, event.body(), clock.now().seconds());
        assert!(late.is_err(), "a signature is of its time");
    });
}

#[test]
fn a_key_works_until_its_end_and_only_on_the_pro_plan() {
    runtime().block_on(async {
        let clock = Clock::default();
        let platform = Platform::with_edge(Memory::default(), clock.clone());
        let fleet = fleet(&platform).await;
        let end = clock.now().plus_millis(3_600_000);
        let issued = fleet.issue_key(Scope::ReadWrite, "Website", Some(end)).await.unwrap();
        assert!(!format!("{issued:?}").contains(&issued.key[8..]));
        assert_eq!(issued.record.hint.as_deref(), Some(&*format!("rk_live_…{}", &issued.key[53..])));
        let write = async |key: &str| platform.authenticate(key, Access::Write).await.map(|caller| caller.key.id);
        assert_eq!(write(&issued.key).await, Ok(issued.record.id));

        fleet.update_organization(json!({"plan": "free"})).await.unwrap();
        assert_eq!(fleet.organization().await.unwrap().plan, Plan::Free);
        assert_eq!(write(&issued.key).await, Err(Error::PlanRequired));
        fleet.update_organization(json!({"plan": "pro"})).await.unwrap();
        clock.advance_hours(1);
        assert_eq!(write(&issued.key).await, Err(Error::Unauthenticated(KeyProblem::Expired)));
        let unknown = api_keys::key_text(&[255; 32]);
        assert_eq!(write(&unknown).await, Err(Error::Unauthenticated(KeyProblem::Invalid)));
        let past = fleet.issue_key(Scope::Read, "Late", Some(end)).await;
        assert!(matches!(past, Err(Error::Invalid(_))), "{past:?}");
    });
}
