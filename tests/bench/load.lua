-- For wrk: sends one command over and over and prints what came of it. Told by its environment:
-- LOAD_NAME who is asked, LOAD_BODY the request's body, LOAD_AUTHORIZATION the header of
-- that name.
wrk.method = "POST"
wrk.body = os.getenv("LOAD_BODY")
wrk.headers["Authorization"] = os.getenv("LOAD_AUTHORIZATION")

function done(summary, latency, requests)
  local errors = summary.errors
  io.write(string.format(
    "  %-10s %8.0f requests/s   p50 %6.2f ms   p99 %6.2f ms   %d not answered well\n",
    os.getenv("LOAD_NAME"),
    summary.requests / summary.duration * 1e6,
    latency:percentile(50) / 1000,
    latency:percentile(99) / 1000,
    errors.connect + errors.read + errors.write + errors.status + errors.timeout
  ))
end
