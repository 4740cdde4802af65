/**
 * Sends a request to the Worker and returns its response; throws the Worker's message if it
 * refuses.
 */
export async function fetchJson(address, options) {
  const response = await fetch(address, options);
  const body = await response.json();
  if (!response.ok) throw new Error(body.error.message);
  return body;
}
