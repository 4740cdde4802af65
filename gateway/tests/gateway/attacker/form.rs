//! Parses keys by Redisson's key layout and the documented keys of edgelatch, without the product's
//! own code.

use edgelatch_proto::protocol::scope::ObjectKind;

/// The purpose of a key of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// The key with the object's name.
    Bare,
    /// The last fencing token, or the readers' token.
    Token,
    /// The list of a fair lock's waiters, and the set of their timeouts.
    Queue,
    /// The heartbeats and the places of a fair lock's waiters.
    Seats,
    Watch,
    /// The record of a waiting writer.
    Want,
    Fence,
    /// The holders of a fair read-write lock.
    FairHolders,
    /// The queue of a fair read-write lock, its writers, and the heartbeats of its waiters.
    FairQueue,
    /// The last token and ticket of a fair read-write lock.
    FairLast,
    /// The names of the fair read-write locks with one hash tag.
    Registry,
    /// The holds of a semaphore of either kind.
    Holds,
    ReadTimeout,
    /// A latch or tombstone of an owner, or the record of a request.
    Memory,
}

impl Form {
    /// Whether objects of this kind have a key with this purpose.
    pub(crate) fn is_of(self, kind: ObjectKind) -> bool {
        use ObjectKind::{Guard, Lock, Permits, Semaphore};
        match self {
            // Requests on any object have records; only a guard has none, but its requests can be
            // cancelled.
            Self::Bare | Self::Memory => true,
            Self::Token => matches!(kind, Lock | Semaphore | Permits),
            Self::Queue | Self::Seats | Self::Watch | Self::Want | Self::ReadTimeout => {
                kind == Lock
            }
            Self::FairHolders | Self::FairQueue | Self::FairLast | Self::Registry => kind == Lock,
            Self::Fence => kind == Guard,
            Self::Holds => matches!(kind, Semaphore | Permits),
        }
    }
}

/// Returns all purposes that a key may have, the most likely first, with the object names for each:
/// two if the braces may be part of the name.
pub(crate) fn forms(key: &str) -> Vec<(Form, Vec<String>)> {
    if let Some(rest) = key.strip_prefix("el:") {
        return ours(rest).into_iter().map(|(form, text)| (form, names(text))).collect();
    }
    for (prefix, form) in [
        ("redisson_lock_token:", Form::Token),
        ("redisson_lock_queue:", Form::Queue),
        ("redisson_lock_timeout:", Form::Queue),
    ] {
        if let Some(rest) = key.strip_prefix(prefix) {
            return vec![(form, names(rest))];
        }
    }
    let mut forms = Vec::new();
    // The key encloses a name without braces in braces, so a key without braces is not a timeout
    // key.
    if let Some(rest) = key.strip_suffix(":timeout").filter(|rest| rest.contains('}')) {
        forms.push((Form::Holds, names(rest)));
    }
    if let Some((rest, _)) = key.rsplit_once(":rwlock_timeout:") {
        forms.extend(without_owner(rest).map(|rest| (Form::ReadTimeout, names(rest))));
    }
    forms.push((Form::Bare, vec![key.to_owned()]));
    forms
}

fn ours(rest: &str) -> Option<(Form, &str)> {
    for (suffix, form) in [
        (":token", Form::Token),
        (":epoch", Form::Token),
        (":beat", Form::Seats),
        (":seat", Form::Seats),
        (":watch", Form::Watch),
        (":want", Form::Want),
        (":fence", Form::Fence),
        (":held", Form::Holds),
        (":frw:holders", Form::FairHolders),
        (":frw:queue", Form::FairQueue),
        (":frw:writers", Form::FairQueue),
        (":frw:beats", Form::FairQueue),
        (":frw:last", Form::FairLast),
        (":frw:names", Form::Registry),
        (":frw:ends", Form::Registry),
    ] {
        if let Some(text) = rest.strip_suffix(suffix) {
            return Some((form, text));
        }
    }
    let record = rest.rsplit_once(':').filter(|(_, id)| id.len() == 16).map(|(text, _)| text);
    without_owner(rest).or(record).map(|text| (Form::Memory, text))
}

/// Returns the text in front of `:<uuid>:<number>`, if there is such an owner.
pub(super) fn without_owner(text: &str) -> Option<&str> {
    let (rest, _) = text.rsplit_once(':')?;
    let (rest, uuid) = rest.rsplit_once(':')?;
    (uuid.len() == 36).then_some(rest)
}

pub(super) fn names(text: &str) -> Vec<String> {
    let inner = text.strip_prefix('{').and_then(|text| text.strip_suffix('}'));
    inner.into_iter().chain([text]).map(str::to_owned).collect()
}
