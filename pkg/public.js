// What every entry exports beside its `connect`.
export {
  BrokenError, EdgelatchError, GatewayRefusedError, GatewayTooSlowError, GatewayUnreachableError, InvalidOptionError, LeaseLostError,
  ReentrancyError, NotExecutedError, OutcomeUnknownError, NotSetUpError, ScriptFailedError, StaleTokenError, StartError, WaitTimeoutError,
} from "./errors.js";
