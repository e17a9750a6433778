//! Whether a history of one object is linearizable: whether its operations could have happened one after the other, each at one
//! moment between its call and its answer (the algorithm of Wing and Gong, with the cache of Lowe).

use std::collections::HashSet;

/// An object: its revision and the value of the one member that clients change.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub(super) struct State {
    pub(super) revision: u64,
    pub(super) value: u64,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Call {
    Read,
    /// Sets the value. With `Some`, only if the object has this revision.
    Write(u64, Option<u64>),
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Answer {
    /// The object as the answer shows it.
    Object(State),
    /// The object has another revision than the caller named.
    OtherRevision,
    /// No answer, or one that does not tell whether the call had its effect.
    Unknown,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Operation {
    pub(super) call: Call,
    pub(super) answer: Answer,
    /// When the call was sent and when its answer had come, on one clock.
    pub(super) sent: u64,
    pub(super) answered: u64,
}

/// The state after a call, and its answer.
fn step(state: State, call: Call) -> (State, Answer) {
    match call {
        Call::Write(_, Some(revision)) if revision != state.revision => (state, Answer::OtherRevision),
        Call::Write(value, _) if value != state.value => {
            let next = State { revision: state.revision + 1, value };
            (next, Answer::Object(next))
        }
        Call::Read | Call::Write(..) => (state, Answer::Object(state)),
    }
}

/// Whether there is an order of the operations that explains every answer. An operation without a known answer may have
/// happened at any time after it was sent, or not at all.
pub(super) fn is_linearizable(first: State, operations: &[Operation]) -> bool {
    let mut operations = operations.to_vec();
    operations.sort_by_key(|operation| operation.sent);
    let (mut seen, mut open) = (HashSet::new(), vec![(vec![false; operations.len()], first)]);
    while let Some((done, state)) = open.pop() {
        // Operations that were sent before the first answer that is left: one of them is next.
        let (mut first_answer, mut next) = (None, Vec::new());
        for (at, operation) in operations.iter().enumerate().filter(|(at, _)| !done[*at]) {
            if first_answer.is_some_and(|answer| operation.sent > answer) {
                break;
            }
            next.push(at);
            if operation.answer != Answer::Unknown {
                first_answer = Some(first_answer.map_or(operation.answered, |answer| operation.answered.min(answer)));
            }
        }
        let Some(first_answer) = first_answer else { return true };
        for at in next.into_iter().filter(|at| operations[*at].sent <= first_answer) {
            let operation = operations[at];
            let (after, answer) = step(state, operation.call);
            if operation.answer != Answer::Unknown && operation.answer != answer {
                continue;
            }
            let mut with = done.clone();
            with[at] = true;
            if seen.insert((with.clone(), after)) {
                open.push((with, after));
            }
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: State = State { revision: 1, value: 0 };

    fn operation(call: Call, answer: Answer, sent: u64, answered: u64) -> Operation {
        Operation { call, answer, sent, answered }
    }

    fn object(revision: u64, value: u64) -> Answer {
        Answer::Object(State { revision, value })
    }

    #[test]
    fn what_could_have_happened_is_told_from_what_could_not() {
        let write = operation(Call::Write(7, None), object(2, 7), 10, 20);
        let read = |answer, sent, answered| operation(Call::Read, answer, sent, answered);
        for (others, expected) in [
            (vec![read(object(1, 0), 5, 12), read(object(2, 7), 11, 15)], true),
            // Stale: it began after the write was answered.
            (vec![read(object(1, 0), 21, 25)], false),
            // Two readers see the write in different orders, one after the other.
            (vec![read(object(2, 7), 11, 13), read(object(1, 0), 14, 16)], false),
            // A value that nobody wrote, and a revision that was never there.
            (vec![read(object(2, 8), 11, 15)], false),
            (vec![read(object(3, 7), 21, 22)], false),
            // Both won against revision 1.
            (vec![operation(Call::Write(8, Some(1)), object(2, 8), 11, 15)], false),
            (vec![operation(Call::Write(8, Some(1)), Answer::OtherRevision, 11, 15)], true),
            (vec![operation(Call::Write(8, Some(1)), Answer::OtherRevision, 5, 8)], false),
            // An effect that comes late, once, or never.
            (vec![operation(Call::Write(9, None), Answer::Unknown, 1, 2), read(object(3, 9), 30, 31)], true),
            (vec![operation(Call::Write(9, None), Answer::Unknown, 1, 2), read(object(2, 7), 30, 31)], true),
            (vec![operation(Call::Write(9, None), Answer::Unknown, 40, 41), read(object(3, 9), 30, 31)], false),
        ] {
            let history: Vec<Operation> = std::iter::once(write).chain(others).collect();
            assert_eq!(is_linearizable(FIRST, &history), expected, "{history:?}");
        }
    }
}
