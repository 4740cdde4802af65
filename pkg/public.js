// The exports of every entry beside `connect`.
export {
  BrokenError, EdgelatchError, GatewayRefusedError, GatewayTooSlowError, GatewayUnreachableError, InvalidOptionError, LeaseLostError,
  ReentrancyError, NotExecutedError, OutcomeUnknownError, NotSetUpError, ScriptFailedError, StaleTokenError, StartError, WaitTimeoutError,
} from "./errors.js";
