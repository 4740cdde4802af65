-- For wrk: sends one command again and again, and prints the results as JSON. The environment has
-- the request's body in LOAD_BODY and the header of that name in LOAD_AUTHORIZATION.
wrk.method = "POST"
wrk.body = os.getenv("LOAD_BODY")
wrk.headers["Authorization"] = os.getenv("LOAD_AUTHORIZATION")

function done(summary, latency, requests)
  local errors = summary.errors
  io.write(string.format(
    '{"perSecond":%f,"p50":%f,"p99":%f,"errors":%d}\n',
    summary.requests / summary.duration * 1e6,
    latency:percentile(50) / 1000,
    latency:percentile(99) / 1000,
    errors.connect + errors.read + errors.write + errors.status + errors.timeout
  ))
end
