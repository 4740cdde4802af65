// The exports of every entry beside `connect`.
export {
  BrokenError, EdgelatchError, GatewayRefusedError, GatewayTooSlowError, GatewayUnreachableError, InvalidOptionError, LeaseLostError,
  ReentrancyError, NotExecutedError, OutcomeUnknownError, NotSetUpError, QueueFullError, ScriptFailedError, StaleTokenError, StartError,
  WaitTimeoutError,
} from "./errors.js";
