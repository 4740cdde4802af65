// The public names, from the module that a loader has set up.
import { connect, fromEnv, Lease, Lock, Locks, Owner } from "./wasm/edgelatch.js";

connect.fromEnv = fromEnv;

// Generated classes can be freed, by hand or by `using`, which would leave the lock held: only `await using` is offered.
for (const { prototype } of [Lease, Lock, Locks, Owner]) {
  delete prototype.free;
  delete prototype[Symbol.dispose];
}

export { connect };
export {
  EdgelatchError, GatewayRefusedError, GatewayTooSlowError, GatewayUnreachableError, InvalidOptionError, LeaseLostError,
  OutcomeUnknownError, WaitOverError,
} from "./wasm/edgelatch.js";
