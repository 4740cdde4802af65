//! The invariants of a read-write lock after each script.

use std::collections::BTreeSet;

use edgelatch_proto::protocol::reply::{Code, Reply};

use super::super::network::arg;
use super::super::runner::{Check, Request};
use super::client::Client;
use super::{NAME, ReadWrite, WANT_KEY};
use test_support::script_model::read_write::rules;

impl ReadWrite {
    /// Checks a script's reply and the keys after it.
    pub(super) fn check_executed(&mut self, request: &Request, reply: &Reply) -> Check {
        let index = request.client;
        let field = self.clients[index].field.clone();
        match (request.script(), reply.code) {
            ("read_acquire" | "write_acquire", Code::Done) => self.check_grant(index, reply)?,
            ("read_acquire" | "write_acquire", Code::AlreadyYours)
                if self.owners.has_ended(&field) =>
            {
                return Err(format!("{field} is confirmed after its end"));
            }
            ("read_acquire", Code::AlreadyYours) | ("read_renew", Code::Done) => {
                self.check_token(&field, reply)?;
            }
            ("read_acquire" | "write_acquire", Code::No)
                if request.call.args()[arg::LAST_TRY] == "1" =>
            {
                self.owners.record_end(&field);
            }
            // A release leaves a tombstone, whatever its reply: the owner has ended.
            ("read_release" | "write_release", code) => {
                let ended_now = self.owners.record_end(&field);
                // A copy of the release changes nothing more.
                if ended_now && (request.script(), code) == ("write_release", Code::Done) {
                    self.check_write_end(index, reply)?;
                }
            }
            _ => {}
        }
        if self.owners.has_ended(&field) && self.has_timeout_key(&field) {
            return Err(format!("a timeout key of {field} is left or has come back"));
        }
        Ok(())
    }

    /// Checks the token of a grant: a write gets a new one; a read gets one that is above every
    /// write's and not below another reader's; a nested read gets the token of its write.
    fn check_grant(&mut self, index: usize, reply: &Reply) -> Check {
        let client = &self.clients[index];
        let token: u64 = reply.value.parse().unwrap();
        self.owners.record_grant(&client.field, token)?;
        let write_around =
            client.parent.filter(|_| self.env.model.field(NAME, "mode") == Some("write"));
        let (is_right, kind) = match write_around {
            // Of the reads only a nested one is granted in mode `write`, with the token of the
            // write. The write is its parent's, since otherwise the script refuses. A nested read
            // that is granted after its write has ended is a read like any other.
            Some(parent) => {
                (self.owners.token(&self.clients[parent].field) == Some(token), "nested reads")
            }
            None if client.is_writer => (token > self.last_token, "writes"),
            None => (token > self.last_write && token >= self.last_token, "reads"),
        };
        self.env.coverage.count(kind);
        self.last_token = self.last_token.max(token);
        if kind == "writes" {
            self.last_write = token;
        }
        if is_right { Ok(()) } else { Err(format!("{} gets the token {token}", client.field)) }
    }

    /// Checks the token that a repeat or renewal returns to a reader: after the end of the write
    /// around it, the reader has a newer one than the write.
    fn check_token(&self, field: &str, reply: &Reply) -> Check {
        let token: u64 = reply.value.parse().unwrap();
        match self.downgraded.get(field) {
            Some(write) if token <= *write => {
                Err(format!("{field} has the token of a write that has ended"))
            }
            _ => Ok(()),
        }
    }

    /// Records the nested reads that outlive this write, and checks that the epoch minted for them
    /// is a new token. The epoch in the reply is 0 if none was minted.
    fn check_write_end(&mut self, index: usize, reply: &Reply) -> Check {
        let epoch: u64 = reply.value.parse().unwrap();
        let write = &self.clients[index];
        // The release names at most one nested read, but each that is still stored outlives the
        // write.
        for (reader, read) in self.clients.iter().enumerate() {
            if read.parent == Some(index)
                && self.env.model.fields(NAME, self.env.now).any(|left| left == read.field)
            {
                if write.nested == Some(reader) {
                    self.env.coverage.count("named downgrades");
                }
                let token = self.owners.token(&write.field).unwrap();
                self.downgraded.insert(read.field.clone(), token);
            }
        }
        if epoch != 0 && epoch <= self.last_token {
            return Err(format!("the epoch {epoch} after {} does not rise", write.field));
        }
        self.last_token = self.last_token.max(epoch);
        Ok(())
    }

    /// Checks the invariants that hold after every event.
    pub(super) fn check_holds(&self) -> Check {
        let fields: BTreeSet<&str> = self.env.model.fields(NAME, self.env.now).collect();
        let want = self.env.model.text(WANT_KEY);
        let has_record =
            |field: &&String| fields.contains(field.as_str()) || want.as_ref() == Some(*field);
        if let Some(field) = self.owners.ended().find(has_record) {
            return Err(format!("{field} has ended but is still stored"));
        }
        // A read hold of this library exists only with its timeout key (R1), unless the scripts
        // leave that key out.
        let is_stored = |field: &String| {
            let is_timed = !self.is_our_read(field)
                || self.env.model.without == Some(rules::TIMEOUT_KEYS)
                || self.has_timeout_key(field);
            is_timed && fields.contains(field.as_str())
        };
        if let Some(field) = self.leases.valid(self.env.now).find(|field| !is_stored(field)) {
            return Err(format!("{field} relies on a hold that is not stored"));
        }
        let all = self.leases.valid(self.env.now);
        let (writers, readers): (Vec<&String>, Vec<&String>) =
            all.partition(|field| field.ends_with(":write"));
        if let [one, other, ..] = writers[..] {
            return Err(format!("{one} and {other} both write"));
        }
        let is_nested = |reader: &str, writer: &str| self.allowed_writer(reader) == writer;
        for writer in writers {
            if let Some(reader) = readers.iter().find(|reader| !is_nested(reader, writer)) {
                return Err(format!("{reader} reads while {writer} writes"));
            }
        }
        let unnested_tokens = readers.iter().filter_map(|field| {
            let client = self.clients.iter().find(|client| client.field == **field)?;
            client.token().filter(|_| client.parent.is_none())
        });
        match unnested_tokens.collect::<BTreeSet<u64>>() {
            tokens if tokens.len() > 1 => Err(format!("readers have the tokens {tokens:?}")),
            _ => Ok(()),
        }
    }

    /// Returns the field of the writer beside which this reader may read: its parent's, or a Java
    /// thread's own. Empty for a reader without a parent.
    fn allowed_writer(&self, reader: &str) -> String {
        match self.clients.iter().find(|client| client.field == reader) {
            Some(Client { parent: Some(parent), .. }) => self.clients[*parent].field.clone(),
            Some(_) => String::new(),
            None => format!("{reader}:write"),
        }
    }

    /// Whether the field is that of a reader of this library.
    fn is_our_read(&self, field: &str) -> bool {
        self.clients.iter().any(|client| client.field == field && !client.is_writer)
    }

    /// Whether the field has a timeout key, which marks a reader as alive.
    fn has_timeout_key(&self, field: &str) -> bool {
        const NO_KEY: i64 = -2;
        let key = format!("{{job}}:{field}:rwlock_timeout:1");
        self.env.model.pttl(&key, self.env.now) != NO_KEY
    }
}
