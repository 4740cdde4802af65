//! The WebAssembly exports of the npm package, whose public interface is documented in
//! `pkg/index.d.ts`, and in `objects.d.ts` and `errors.d.ts` beside it. `pkg/driver.js` calls them:
//! each call is synchronous. A call that changes the engine receives the current time, and returns
//! [records](records) of the I/O to do and of the calls that ended.
//!
//! Few functions are exported, since each costs bytes on both sides. Numbers, which are defined by
//! lists in the JavaScript files, select the kind of an object, the method and the property.

mod calls;
mod drain;
mod error;
mod events;
mod numbers;
mod objects;
mod options;
mod outcomes;
mod records;

use alloc::string::String;
use alloc::vec::Vec;
use core::mem::ManuallyDrop;
use core::time::Duration;

use wasm_bindgen::prelude::*;

use crate::error::InvalidOption;
use crate::transport::{self, Response};
use crate::web::{self, whole};
use calls::{Given, Start};
use drain::{Call, Extent};
use edgelatch_proto::engine::{
    self, Context, HoldId, OpId, ScopeId, StreamId, StreamInput, TransmitId,
};
use edgelatch_proto::machine::Entropy;
use edgelatch_proto::time::{Instant, millis};
use events::Events;
use numbers::property;
pub use objects::Handle;
use objects::{Client, Object, UnusedEntries};
use options::Numbers;
use records::Records;

/// Its code is a tenth of that of the standard allocator, and it suffices for few allocations.
#[global_allocator]
static ALLOCATOR: talc::wasm::WasmDynamicTalc = talc::wasm::new_wasm_dynamic_allocator();

/// The client of all gateways of a program.
#[wasm_bindgen(skip_typescript)]
pub struct Engine {
    /// Never dropped, since JavaScript keeps it as long as the module.
    engine: ManuallyDrop<engine::Engine>,
    /// The calls of JavaScript that have not ended, sorted by their operations.
    calls: Vec<(OpId, Call)>,
    records: Records,
    unused: UnusedEntries,
}

#[wasm_bindgen]
impl Engine {
    /// Creates a client without a gateway.
    #[wasm_bindgen(constructor)]
    #[expect(clippy::new_without_default, reason = "only JavaScript calls it")]
    pub fn new() -> Self {
        Self {
            engine: ManuallyDrop::new(engine::Engine::new()),
            calls: Vec::new(),
            records: Records::default(),
            unused: UnusedEntries::default(),
        }
    }

    /// Adds the gateway that these options describe.
    ///
    /// # Errors
    /// The option that is invalid, and the accepted values.
    pub fn connect(&mut self, url: &str, token: &str, numbers: &[f64]) -> Result<Handle, JsValue> {
        let numbers = Numbers(numbers);
        let gateway = numbers.gateway(url, token).map_err(thrown)?;
        self.remove_unused();
        let id = self.engine.add_endpoint(gateway, transport::stream_limits().max);
        let redacts = numbers.flag(numbers::client::REDACT_NAMES, false);
        Ok(Handle(Object::Client(Client::new(id, redacts, &self.unused))))
    }

    /// The number of a client's gateway.
    pub fn endpoint(&self, of: &Handle) -> u32 {
        match &of.0 {
            Object::Client(client) => client.to().0,
            _ => u32::MAX,
        }
    }

    /// Creates an object from another, and from `other` if it takes two.
    ///
    /// # Errors
    /// The option that is invalid, and the accepted values.
    pub fn create(
        &mut self,
        of: &Handle,
        kind: u32,
        other: &Handle,
        name: &str,
        numbers: &[f64],
        bytes: &[u8],
    ) -> Result<Handle, JsValue> {
        let numbers = Numbers(numbers);
        let of = (&of.0, kind);
        let object = objects::create(&mut self.engine, of, &other.0, name, &numbers, bytes);
        object.map(Handle).map_err(thrown)
    }

    /// Begins the call `id` of a method, whose outcome is a record later. Calls of one `scope`
    /// share I/O; the numbers are JavaScript's own. `hold` is the hold of a
    /// lease, as the object or as an argument; NaN for none. `texts` are packed as
    /// `options::unpacked` reads them.
    #[expect(clippy::too_many_arguments, reason = "a structure would be converted field by field")]
    pub fn call(
        &mut self,
        of: &Handle,
        id: u32,
        method: u32,
        hold: f64,
        numbers: Option<Vec<f64>>,
        texts: Option<String>,
        drains: bool,
        scope: u32,
        monotonic: f64,
        wall: f64,
    ) -> Option<String> {
        let scope = ScopeId::from_number(scope);
        let numbers = numbers.unwrap_or_default();
        let texts = options::unpacked(texts.as_deref().unwrap_or_default());
        let given = Given { method, hold: hold_id(hold), numbers, texts };
        let extent = if drains { Extent::Scope(scope) } else { Extent::Later };
        self.with(extent, monotonic, wall, |module, cx| {
            let mut start = Start { engine: &mut module.engine, scope, cx };
            match start.call(&of.0, &given) {
                Ok((op, read)) => {
                    let place = module.calls.partition_point(|(other, _)| *other < op);
                    module.calls.insert(place, (op, Call { id, scope, read }));
                }
                Err(failure) => module.records.add_failure(id, failure),
            }
        })
    }

    /// Passes the response to a request: its status, its sync token and body in one, and the length
    /// of the token; or the number of its failure.
    #[expect(clippy::too_many_arguments, reason = "a structure would be converted field by field")]
    pub fn respond(
        &mut self,
        request: f64,
        status: u16,
        failure: Option<u32>,
        retry_after: f64,
        token_length: u32,
        bytes: Option<Vec<u8>>,
        scope: u32,
        monotonic: f64,
        wall: f64,
    ) -> Option<String> {
        let result = match failure {
            Some(failure) => Err(transport::failure(failure)),
            None => {
                let mut token = bytes.unwrap_or_default();
                let body = token.split_off(token.len().min(token_length as usize));
                let sync_token = String::from_utf8(token).ok().filter(|token| !token.is_empty());
                Ok(Response { status, sync_token, retry_after: seconds(retry_after), body })
            }
        };
        self.with(Extent::Scope(ScopeId::from_number(scope)), monotonic, wall, |module, cx| {
            if let Some(id) = TransmitId::from_number(whole(request)) {
                module.engine.handle_response(id, result, cx);
            }
        })
    }

    /// Passes an event of a stream: the head of its response, bytes, or its end.
    #[expect(clippy::too_many_arguments, reason = "a structure would be converted field by field")]
    pub fn stream(
        &mut self,
        subscription: f64,
        number: u32,
        status: Option<u16>,
        retry_after: f64,
        bytes: Option<Vec<u8>>,
        scope: u32,
        monotonic: f64,
        wall: f64,
    ) -> Option<String> {
        let input = match (status, &bytes) {
            (Some(status), _) => StreamInput::Head { status, retry_after: seconds(retry_after) },
            (None, Some(bytes)) => StreamInput::Bytes(bytes),
            (None, None) => StreamInput::End,
        };
        self.with(Extent::Scope(ScopeId::from_number(scope)), monotonic, wall, |module, cx| {
            if let Some(id) = StreamId::from_numbers(whole(subscription), number) {
                module.engine.handle_stream(id, input, cx);
            }
        })
    }

    /// Passes the current time for the operations of a scope, and returns the I/O of the scope. An
    /// early or repeated call changes nothing.
    pub fn timeout(&mut self, scope: u32, monotonic: f64, wall: f64) -> Option<String> {
        let scope = ScopeId::from_number(scope);
        self.with(Extent::Scope(scope), monotonic, wall, |module, cx| {
            module.engine.handle_timeout(scope, cx);
        })
    }

    /// Cancels a call: it undoes what it has begun, then ends as aborted.
    pub fn cancel(&mut self, id: u32, monotonic: f64, wall: f64) -> Option<String> {
        let call = self.calls.iter().find(|(_, call)| call.id == id).map(|(op, _)| *op);
        self.with(Extent::Events, monotonic, wall, |module, cx| {
            if let Some(op) = call {
                module.engine.cancel(op, cx);
            }
        })
    }

    /// Forgets a lease that was collected: it `leaves` its hold unless it was released.
    #[wasm_bindgen(js_name = dropLease)]
    pub fn drop_lease(
        &mut self,
        hold: f64,
        leaves: bool,
        monotonic: f64,
        wall: f64,
    ) -> Option<String> {
        self.with(Extent::Events, monotonic, wall, |module, cx| {
            let Some(hold) = hold_id(hold) else { return };
            if leaves {
                module.engine.drop_lease(hold, cx);
            }
            module.engine.drop_reference(hold, cx);
        })
    }

    /// Begins a write to a guarded key under a lease, and returns its number; `undefined` while
    /// another write of the hold to the key is under way. `name` selects one of the locks of the
    /// lease.
    ///
    /// # Errors
    /// The option that is invalid, and the accepted values.
    #[wasm_bindgen(js_name = beginWrite)]
    pub fn begin_write(
        &mut self,
        of: &Handle,
        hold: f64,
        name: Option<String>,
    ) -> Result<Option<f64>, JsValue> {
        let (Object::Guard(guard), Some(hold)) = (&of.0, hold_id(hold)) else {
            return Err(thrown(objects::stray()));
        };
        let protects = match &name {
            Some(name) => self.engine.token_of(hold, name).map(|_| name.as_str()),
            None => {
                self.engine.first_counting_part(hold).map(|(_, target, _)| target.name().as_str())
            }
        };
        let protects = protects.ok_or_else(|| {
            thrown(InvalidOption::new("name", "the name of a lock that the lease holds"))
        })?;
        guard.bind_lock(protects).map_err(thrown)?;
        Ok(self.engine.begin_write(hold, guard.calls.key()).map(number))
    }

    /// Ends a write to a guarded key.
    #[wasm_bindgen(js_name = endWrite)]
    pub fn end_write(
        &mut self,
        of: &Handle,
        hold: f64,
        monotonic: f64,
        wall: f64,
    ) -> Option<String> {
        self.with(Extent::Events, monotonic, wall, |module, _| {
            if let (Object::Guard(guard), Some(hold)) = (&of.0, hold_id(hold)) {
                module.engine.end_write(hold, guard.calls.key());
            }
        })
    }

    /// Whether the clock of a guard's Redis is known, from which a write's deadline is computed.
    #[wasm_bindgen(js_name = knowsClock)]
    pub fn knows_clock(&self, of: &Handle) -> bool {
        matches!(&of.0, Object::Guard(guard) if self.engine.clock(guard.client.to()).is_some())
    }

    /// The name of an object.
    pub fn name(&self, of: &Handle) -> Option<String> {
        let name = match &of.0 {
            Object::Lock(lock) => lock.spec.name().as_str(),
            Object::Semaphore(_, calls) => calls.name().as_str(),
            Object::Permits(_, calls, _) => calls.name().as_str(),
            Object::Latch(_, calls) => calls.name().as_str(),
            Object::Guard(guard) => guard.calls.key().as_str(),
            Object::Client(_) | Object::Several(..) | Object::Events(_) => return None,
        };
        Some(name.into())
    }

    /// A number that describes a hold; NaN if there is none.
    #[wasm_bindgen(js_name = holdNumber)]
    pub fn hold_number(
        &self,
        hold: f64,
        what: u32,
        name: Option<String>,
        monotonic: f64,
        wall: f64,
    ) -> f64 {
        let Some(hold) = hold_id(hold) else { return f64::NAN };
        let cx = Context { now: instant(monotonic, wall), entropy: &mut entropy };
        let value = match what {
            property::HOLD_COUNT => Some(self.engine.hold_count(hold).into()),
            property::REMAINING => Some(millis(self.engine.remaining(hold, &cx))),
            property::HAS_WAITED => Some(self.engine.has_waited(hold).into()),
            property::TOKEN_OF => {
                let name = name.unwrap_or_default();
                self.engine.token_of(hold, &name).map(|token| token.as_u64())
            }
            _ => self.engine.token(hold).map(|token| token.as_u64()),
        };
        value.map_or(f64::NAN, number)
    }

    /// The ids of a lease's permits, separated by commas.
    #[wasm_bindgen(js_name = permitIds)]
    pub fn permit_ids(&self, hold: f64) -> String {
        let part = hold_id(hold).and_then(|hold| self.engine.first_counting_part(hold));
        let ids = part.map(|(_, target, grant)| target.permit_ids(grant.owner));
        let ids = ids.unwrap_or_default();
        let mut texts = String::new();
        for id in ids {
            texts += if texts.is_empty() { "" } else { "," };
            texts += &id.to_text();
        }
        texts
    }

    /// Creates the events of a lease, or of a client for NaN.
    ///
    /// # Errors
    /// The option that is invalid, and the accepted values.
    pub fn events(&self, of: &Handle, hold: f64) -> Result<Handle, JsValue> {
        let events = match (&of.0, hold_id(hold)) {
            (_, Some(hold)) => Events::of_lease(hold),
            (Object::Client(client), None) => Events::of_client(client),
            _ => return Err(thrown(objects::stray())),
        };
        Ok(Handle(Object::Events(events)))
    }

    /// The next event as JSON: the text `null` after the last, `undefined` if there is none yet.
    #[wasm_bindgen(js_name = nextEvent)]
    pub fn next_event(&self, of: &Handle, monotonic: f64, wall: f64) -> Option<String> {
        let Object::Events(events) = &of.0 else { return None };
        let cx = Context { now: instant(monotonic, wall), entropy: &mut entropy };
        events.next(&self.engine, &cx)
    }
}

/// An invalid option as JavaScript catches it: two lines.
#[expect(clippy::needless_pass_by_value, reason = "it is what map_err hands over")]
fn thrown(error: InvalidOption) -> JsValue {
    [error.option(), "\n", error.accepted()].concat().into()
}

/// Draws fresh bits from the runtime.
fn entropy() -> Option<Entropy> {
    let mut bytes = [0; 32];
    web::fill(&mut bytes).then(|| Entropy::new(bytes))
}

fn instant(monotonic: f64, wall: f64) -> Instant {
    Instant::from_millis(whole(monotonic), whole(wall))
}

/// Converts a number below 2^53.
#[expect(clippy::cast_precision_loss, reason = "a token, a count or a time in milliseconds")]
const fn number(number: u64) -> f64 {
    number as f64
}

fn hold_id(number: f64) -> Option<HoldId> {
    if number.is_nan() { None } else { HoldId::from_number(whole(number)) }
}

fn seconds(number: f64) -> Option<Duration> {
    if number.is_nan() { None } else { Some(Duration::from_secs(whole(number))) }
}
