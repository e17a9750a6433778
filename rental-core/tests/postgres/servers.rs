//! Several servers on one database: what they did could have been done by one, one batch after the other.

use super::super::{key, on_postgres, open};
use rental_core::store::{Batch, Check, Commit, Prior, Store, Write, postgres::Postgres};
use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
};
use tokio::sync::Barrier;

async fn servers(url: &str, count: usize) -> Vec<Arc<Postgres>> {
    let mut servers = Vec::new();
    for _ in 0..count {
        servers.push(Arc::new(open(url).await));
    }
    servers
}

/// Numbers without a clock or chance, different for each seed.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

#[test]
fn increments_of_three_servers_are_all_kept() {
    on_postgres(|cluster| async {
        let servers = servers(&cluster.database(), 3).await;
        let tasks: Vec<_> = (0..12)
            .map(|n| {
                let store = Arc::clone(&servers[n % 3]);
                tokio::spawn(async move {
                    let mut applied = 0;
                    while applied < 20 {
                        let seen = store.get(&[key("n")]).await.unwrap().remove(0);
                        let mut batch = Batch::default();
                        match seen {
                            Some(record) => batch.replace(key("n"), record.revision, "n".into()),
                            None => batch.insert(key("n"), "n".into()),
                        }
                        applied += u32::from(store.commit(batch).await.unwrap() == Commit::Applied);
                    }
                })
            })
            .collect();
        for task in tasks {
            task.await.unwrap();
        }
        let last = servers[0].get(&[key("n")]).await.unwrap().remove(0).unwrap();
        assert_eq!(last.revision, 12 * 20);
    });
}

/// Each looks whether the other has written and writes only if not: never both, though no key is written twice.
#[test]
fn what_was_absent_stays_absent_until_the_commit() {
    on_postgres(|cluster| async {
        let servers = servers(&cluster.database(), 2).await;
        let start = Arc::new(Barrier::new(2));
        let tasks: Vec<_> = (0..2)
            .map(|own| {
                let (store, start) = (Arc::clone(&servers[own]), Arc::clone(&start));
                tokio::spawn(async move {
                    let mut won = BTreeSet::new();
                    for round in 0..300 {
                        let name = |who: usize| key(&format!("{round:04}-{who}"));
                        let mut batch = Batch::default();
                        batch.checks.push(Check::Absent(name(1 - own)));
                        batch.writes.push(Write::Put(name(own), 1, "v".into(), Prior::Any));
                        start.wait().await;
                        if store.commit(batch).await.unwrap() == Commit::Applied {
                            won.insert(round);
                        }
                    }
                    won
                })
            })
            .collect();
        let mut won = Vec::new();
        for task in tasks {
            won.push(task.await.unwrap());
        }
        assert_eq!(won[0].intersection(&won[1]).count(), 0, "both won");
        assert_eq!(won[0].len() + won[1].len(), 300, "one wins");
        assert!(!won[0].is_empty() && !won[1].is_empty(), "they did not race");
    });
}

/// What a batch saw and wrote: versions of keys, 0 where there was none.
struct Done {
    saw: BTreeMap<u64, u64>,
    wrote: BTreeSet<u64>,
}

/// Random batches over few keys by two servers. Each writes version n + 1 of what it saw at version n and checks some more
/// keys that it does not write. Who came before whom must then be without a circle.
#[test]
fn random_batches_of_two_servers_have_an_order() {
    const KEYS: u64 = 6;
    on_postgres(|cluster| async {
        let servers = servers(&cluster.database(), 2).await;
        let tasks: Vec<_> = (0..16u64)
            .map(|task| {
                let store = Arc::clone(&servers[task as usize % 2]);
                tokio::spawn(async move {
                    let (mut numbers, mut done) = (Numbers(task), Vec::new());
                    for _ in 0..60 {
                        let some = |numbers: &mut Numbers| -> BTreeSet<u64> {
                            (0..=numbers.below(2)).map(|_| numbers.below(KEYS)).collect()
                        };
                        let (wrote, also) = (some(&mut numbers), some(&mut numbers));
                        let looked: Vec<u64> = wrote.union(&also).copied().collect();
                        let keys: Vec<_> = looked.iter().map(|n| key(&n.to_string())).collect();
                        let found = store.get(&keys).await.unwrap();
                        let (mut batch, mut saw) = (Batch::default(), BTreeMap::new());
                        for ((n, key), record) in looked.iter().zip(keys).zip(found) {
                            let version = record.map_or(0, |record| record.revision);
                            saw.insert(*n, version);
                            let check =
                                if version == 0 { Check::Absent(key.clone()) } else { Check::At(key.clone(), version) };
                            batch.checks.push(check);
                            if wrote.contains(n) {
                                batch.writes.push(Write::Put(key, version + 1, "v".into(), Prior::Any));
                            }
                        }
                        if store.commit(batch).await.unwrap() == Commit::Applied {
                            done.push(Done { saw, wrote });
                        }
                    }
                    done
                })
            })
            .collect();
        let mut done = Vec::new();
        for task in tasks {
            done.extend(task.await.unwrap());
        }
        assert!(done.len() > 100, "{} were applied", done.len());
        for n in 0..KEYS {
            let writes = done.iter().filter(|done| done.wrote.contains(&n)).count() as u64;
            let last = servers[0].get(&[key(&n.to_string())]).await.unwrap().remove(0).map_or(0, |r| r.revision);
            assert_eq!(last, writes, "key {n}: each write counts once");
        }
        assert!(has_order(&done), "no order of the batches explains what they saw");
    });
}

/// Whether the batches can be put in a line: whoever wrote a version comes before all who saw it, and they before whoever
/// wrote the next one.
fn has_order(done: &[Done]) -> bool {
    let mut writer = HashMap::new();
    for (at, batch) in done.iter().enumerate() {
        for n in &batch.wrote {
            assert_eq!(writer.insert((*n, batch.saw[n] + 1), at), None, "two wrote one version");
        }
    }
    let mut before: Vec<BTreeSet<usize>> = vec![BTreeSet::new(); done.len()];
    for (at, batch) in done.iter().enumerate() {
        for (n, version) in &batch.saw {
            before[at].extend(writer.get(&(*n, *version)));
            if let Some(next) = writer.get(&(*n, version + 1)).filter(|next| **next != at) {
                before[*next].insert(at);
            }
        }
    }
    let mut left: BTreeSet<usize> = (0..done.len()).collect();
    loop {
        let free: Vec<usize> = left.iter().copied().filter(|at| before[*at].is_disjoint(&left)).collect();
        if free.is_empty() {
            return left.is_empty();
        }
        left.retain(|at| !free.contains(at));
    }
}

#[test]
fn what_one_server_answered_the_other_reads() {
    on_postgres(|cluster| async {
        let servers = servers(&cluster.database(), 2).await;
        for n in 0..100 {
            let mut batch = Batch::default();
            batch.insert(key(&n.to_string()), "v".into());
            assert_eq!(servers[n % 2].commit(batch).await, Ok(Commit::Applied));
            let found = servers[1 - n % 2].get(&[key(&n.to_string())]).await.unwrap();
            assert!(found[0].is_some(), "{n}");
        }
    });
}
