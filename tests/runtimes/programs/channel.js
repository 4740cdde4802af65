/**
 * Lets a page in a browser without calls to its driver report: the driver executes a script that
 * calls `nextEvents`.
 */

{
  const events = [];
  let deliver;
  const add = (name, value) => {
    events.push({ name, value });
    deliver?.();
  };
  /** Calls `resolve` with the next events as soon as there is one. */
  globalThis.nextEvents = (resolve) => {
    deliver = () => {
      deliver = undefined;
      resolve(events.splice(0));
    };
    if (events.length > 0) deliver();
  };
  globalThis.report = async (event) => add("report", event);
  globalThis.finish = async () => add("finish");
  addEventListener("error", ({ message }) => add("error", message));
  document.addEventListener("securitypolicyviolation", ({ violatedDirective, blockedURI }) => add("violation", `${violatedDirective} ${blockedURI}`));
}
