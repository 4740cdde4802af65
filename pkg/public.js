// What every entry exports beside its `connect`.
export {
  BrokenError, EdgelatchError, GatewayRefusedError, GatewayTooSlowError, GatewayUnreachableError, InvalidOptionError, LeaseLostError,
  NotAgainError, NotDoneError, OutcomeUnknownError, ScriptFailedError, StaleTokenError, StartError, WaitOverError,
} from "./errors.js";
