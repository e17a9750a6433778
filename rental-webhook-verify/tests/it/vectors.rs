//! Vectors computed by other programs: Python 3.11 `hmac` and OpenSSL 3.0 `dgst -mac HMAC` agreed on each, and the
//! published ones were computed by both again.

use hmac::{Hmac, KeyInit, Mac};
use rental_webhook_verify::{VerifyError, verify};
use sha2::Sha256;

struct Vector {
    name: &'static str,
    secret_hex: &'static str,
    t: &'static str,
    body_hex: &'static str,
    v1: &'static str,
}

const VECTORS: &[Vector] = &[
    Vector {
        name: "a_typical_delivery",
        secret_hex: "77687365635f35663262386331653961376434303336",
        t: "1700000000",
        body_hex: "7b226964223a226576745f31222c2274797065223a2272656e74616c2e63726561746564222c2263726561746564223a313730303030303030302c2264617461223a7b226f626a656374223a2272656e74616c222c226964223a2272656e745f31227d7d",
        v1: "e76ba4d49f32716eb0f432f2cc4f0c5802008e2f358287c1a2d7fae77d2f707f",
    },
    Vector {
        name: "an_empty_body",
        secret_hex: "77687365635f35663262386331653961376434303336",
        t: "1700000000",
        body_hex: "",
        v1: "82ffe4283d1f97d3e71e9a6cdc7c729c127f567c2d3de7436c4652b9dda26c56",
    },
    Vector {
        name: "a_body_that_is_not_utf_8",
        secret_hex: "77687365635f35663262386331653961376434303336",
        t: "1700000000",
        body_hex: "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f202122232425262728292a2b2c2d2e2f303132333435363738393a3b3c3d3e3f404142434445464748494a4b4c4d4e4f505152535455565758595a5b5c5d5e5f606162636465666768696a6b6c6d6e6f707172737475767778797a7b7c7d7e7f808182838485868788898a8b8c8d8e8f909192939495969798999a9b9c9d9e9fa0a1a2a3a4a5a6a7a8a9aaabacadaeafb0b1b2b3b4b5b6b7b8b9babbbcbdbebfc0c1c2c3c4c5c6c7c8c9cacbcccdcecfd0d1d2d3d4d5d6d7d8d9dadbdcdddedfe0e1e2e3e4e5e6e7e8e9eaebecedeeeff0f1f2f3f4f5f6f7f8f9fafbfcfdfeff",
        v1: "6c2475fb67124ddacbfa198a79212a0b25526c15ddb07922934873a9c659e685",
    },
    Vector {
        name: "a_body_with_line_ends",
        secret_hex: "77687365635f35663262386331653961376434303336",
        t: "1700000000",
        body_hex: "7b0d0a20202261223a20310a7d0a",
        v1: "630205b9ce34ba71308927f959fb3e06b7922a1c76ea4fb6710af6fad24a5f16",
    },
    Vector {
        name: "a_body_beyond_ascii",
        secret_hex: "77687365635f35663262386331653961376434303336",
        t: "1700000000",
        body_hex: "7b226e616d65223a225a6fc3ab204dc3bc6c6c657220e58c97e4baac227d",
        v1: "f1916e1a1a233a4c7fe3b83efba5297c5d19a78bbbed0ad6ff171b09245360c7",
    },
    Vector {
        name: "a_body_that_starts_with_a_dot",
        secret_hex: "77687365635f35663262386331653961376434303336",
        t: "1700000000",
        body_hex: "2e312c76313d",
        v1: "ae7e2d31ad840bfcdd2be84ad84c97a89a670e523c8bcec61f3a8bdbebecae19",
    },
    Vector {
        name: "a_secret_of_one_byte",
        secret_hex: "78",
        t: "1700000000",
        body_hex: "7b7d",
        v1: "1040c4184b67b1a07f7b4fca16c73061fd1a7c8cfa6e703a2f398794fd21f791",
    },
    Vector {
        name: "a_secret_of_a_hash_block",
        secret_hex: "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f202122232425262728292a2b2c2d2e2f303132333435363738393a3b3c3d3e3f",
        t: "1700000000",
        body_hex: "7b7d",
        v1: "dc5abb7bf113369c692fd752cd558de5233b799d019795e41cc85969f614ca6a",
    },
    Vector {
        name: "a_secret_of_more_than_a_hash_block",
        secret_hex: "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f202122232425262728292a2b2c2d2e2f303132333435363738393a3b3c3d3e3f40",
        t: "1700000000",
        body_hex: "7b7d",
        v1: "932d2d019fd3da4c36929765516efb8658bb25657949e5d36dd622060ce80213",
    },
    Vector {
        name: "a_secret_that_is_not_utf_8",
        secret_hex: "ff00fe",
        t: "1700000000",
        body_hex: "7b7d",
        v1: "c15a32b30289c2db0960e1c4a9d57e16fb63cd8935d2b3fa8fc879c6e8c2b7ec",
    },
    Vector {
        name: "the_first_second",
        secret_hex: "77687365635f35663262386331653961376434303336",
        t: "0",
        body_hex: "7b7d",
        v1: "1fd3d5b9c706233cd9727bfddc7d3acde63cf487d144ce1bd7d7c944057cf912",
    },
    Vector {
        name: "the_last_second",
        secret_hex: "77687365635f35663262386331653961376434303336",
        t: "18446744073709551615",
        body_hex: "7b7d",
        v1: "b8faf82e395745281033616796e367f9a275af984343742fa086e66b1b5060db",
    },
    Vector {
        name: "leading_zeros_are_signed_as_written",
        secret_hex: "77687365635f35663262386331653961376434303336",
        t: "0001700000000",
        body_hex: "7b7d",
        v1: "29a94e4663dadbad213bcea2e24f8c5a960bcd68cc55647d8d557bc1a0b2b8a7",
    },
];

fn bytes(hex_text: &str) -> Vec<u8> {
    hex::decode(hex_text).expect("a vector is hex")
}

#[test]
fn vectors_of_python_and_openssl_verify() {
    for vector in VECTORS {
        let header = format!("t={},v1={}", vector.t, vector.v1);
        let now = vector.t.parse().expect("digits");
        let result = verify(&bytes(vector.secret_hex), &header, &bytes(vector.body_hex), now);
        assert_eq!(result, Ok(()), "{}", vector.name);
    }
}

#[test]
fn vectors_verify_under_no_other_body() {
    for vector in VECTORS {
        let header = format!("t={},v1={}", vector.t, vector.v1);
        let now = vector.t.parse().expect("digits");
        let mut body = bytes(vector.body_hex);
        body.push(b'\n');
        let result = verify(&bytes(vector.secret_hex), &header, &body, now);
        assert_eq!(result, Err(VerifyError::SignatureMismatch), "{}", vector.name);
    }
}

/// RFC 4231, section 4, test cases 1 to 4, 6 and 7 (5 is a truncated tag): key, data, the RFC's own tag of the data,
/// and the tag of `1700000000.<data>`.
const RFC_4231: &[(&[u8], &[u8], &str, &str)] = &[
    (
        &[0x0b; 20],
        b"Hi There",
        "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7",
        "931b0eed568d243adecea23bdfaea1fa89ca9581f28abf24320ee9d0944d98bb",
    ),
    (
        b"Jefe",
        b"what do ya want for nothing?",
        "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843",
        "1cdd0650c8be1cb0974b1788d458b1e781206cfef59b85faafc582d2e182c57e",
    ),
    (
        &[0xaa; 20],
        &[0xdd; 50],
        "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe",
        "cd9379cb5871c378631bdf62b9f72a6dff8d838c791de7fbd5253134635e5409",
    ),
    (
        b"\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c\x0d\x0e\x0f\x10\x11\x12\x13\x14\x15\x16\x17\x18\x19",
        &[0xcd; 50],
        "82558a389a443c0ea4cc819899f2083a85f0faa3e578f8077a2e3ff46729665b",
        "40866a882e6c6bf6f0ae422368fa61d1312b6b196628aa733aecbb1e3a017871",
    ),
    (
        &[0xaa; 131],
        b"Test Using Larger Than Block-Size Key - Hash Key First",
        "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54",
        "90201a1be309d12d310db48ca0ca3da2afd523c404998a699bb1f8d0bf9feee4",
    ),
    (
        &[0xaa; 131],
        b"This is a test using a larger than block-size key and a larger than block-size data. The key needs to be hashed before being used by the HMAC algorithm.",
        "9b09ffa71b942fcb27635fbcd5b0e944bfdc63644f0713938a7f51535c3a35e2",
        "7bc0256cac5c4f7111e3eb97a4341714614fa400a889cae34b8b0cbae5b74839",
    ),
];

#[test]
fn the_hmac_beneath_is_that_of_rfc_4231() {
    for (key, data, rfc_tag, _) in RFC_4231 {
        let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("HMAC takes any key");
        mac.update(data);
        assert_eq!(hex::encode(mac.finalize().into_bytes()), *rfc_tag);
    }
}

#[test]
fn keys_and_data_of_rfc_4231_verify_as_secrets_and_bodies() {
    for (key, data, _, v1) in RFC_4231 {
        assert_eq!(verify(key, &format!("t=1700000000,v1={v1}"), data, 1_700_000_000), Ok(()));
    }
}

/// Published by other implementations of the scheme: secret, t, body, signature, and the verdict at `now`.
type Published = (&'static [u8], &'static str, &'static [u8], &'static str, u64, Result<(), VerifyError>);

const HOOK0_SECRET: &[u8] = b"a-subscription-secret";
const HOOK0_BODY: &[u8] = br#"{"event":"user.created"}"#;
const HOOK0_NOW: u64 = 1_800_000_000;

const PUBLISHED: &[Published] = &[
    // hook0, clients/conformance/signature.json: its `v0` is this crate's `v1`.
    (
        HOOK0_SECRET,
        "1800000000",
        HOOK0_BODY,
        "d17d66b66fca89390c5b967c45e8928fc732db07a0aabe8167b1e98213081ffe",
        HOOK0_NOW,
        Ok(()),
    ),
    (
        HOOK0_SECRET,
        "1799999700",
        HOOK0_BODY,
        "f9689580483e051113d28de23c1658c509da2b00e7bc15a5aaa83b8bdf83ff81",
        HOOK0_NOW,
        Ok(()),
    ),
    (
        HOOK0_SECRET,
        "1799999699",
        HOOK0_BODY,
        "4168cc6c683357e103055b48584715f12e2baa4e679b8e076254247f11edf34d",
        HOOK0_NOW,
        Err(VerifyError::TimestampTooOld),
    ),
    (
        HOOK0_SECRET,
        "1800000301",
        HOOK0_BODY,
        "ba4b79e449ae52edb505b6baa07380be2baa6e0c4c6fec3b9a01c85d47a4935f",
        HOOK0_NOW,
        Err(VerifyError::TimestampTooNew),
    ),
    // hook0, the worker's own test.
    (
        b"secret",
        "1636936200",
        b"hello !",
        "1b3d69df55f1e52f05224ba94a5162abeb17ef52cd7f4948c390f810d6a87e98",
        1_636_936_200,
        Ok(()),
    ),
    // webhook-verify 0.1.0, its Stripe provider.
    (
        b"whsec_test_secret",
        "1700000000",
        br#"{"id":"evt_test_webhook","object":"event"}"#,
        "d95c6b7477fbd7e9f90b1b0ef5f9c7ac25abca5382460e0d988c2b2a5b71b990",
        1_700_000_000,
        Ok(()),
    ),
];

#[test]
fn vectors_of_other_implementations_get_the_verdict_they_publish() {
    for (secret, t, body, v1, now, expected) in PUBLISHED {
        assert_eq!(verify(secret, &format!("t={t},v1={v1}"), body, *now), *expected, "t={t}");
    }
}

#[test]
fn the_same_signatures_under_v0_are_not_accepted() {
    for (secret, t, body, v1, now, _) in PUBLISHED {
        let result = verify(secret, &format!("t={t},v0={v1}"), body, *now);
        assert_eq!(result, Err(VerifyError::MissingSignature), "t={t}");
    }
}
