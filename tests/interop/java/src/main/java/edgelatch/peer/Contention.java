package edgelatch.peer;

import com.google.gson.Gson;
import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import com.google.gson.JsonPrimitive;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.concurrent.Executors;
import java.util.function.Function;
import org.redisson.api.RBucket;
import org.redisson.client.codec.LongCodec;

/**
 * Threads that acquire an object again and again, and count the concurrent holders in Redis.
 *
 * <pre>
 * "threads":4, "ms":10000
 * "take":{"method":"lock","args":[]}      a result of false means: not acquired, retry
 * "give":{"method":"unlock","args":[]}    "$taken" in args is the result of take
 * "gauge":"inside", "most":1              incremented while held; more than most is a violation
 * "without":["writers"]                   gauges that must be 0 while held
 * "counter":"turns"                       incremented while held by a read and a write; optional
 * </pre>
 *
 * Returns {@code {"sections":…,"violations":…,"turns":[["holder",7],…]}}: the holder of each
 * section and its counter, which give the order of grants.
 */
record Contention(Function<JsonObject, Service> services, JsonObject command) {
    /** The observations of one thread, or of all. */
    private record Seen(List<Object[]> turns, long[] counts) {
        Seen() {
            this(new ArrayList<>(), new long[2]);
        }

        Seen with(Seen other) {
            turns.addAll(other.turns);
            for (int place = 0; place < counts.length; place++) {
                counts[place] += other.counts[place];
            }
            return this;
        }
    }

    static Contention of(Function<JsonObject, Service> services, JsonObject command) {
        return new Contention(services, command);
    }

    /** Contends for the given time. */
    Object run() throws Exception {
        int threads = command.get("threads").getAsInt();
        long end = System.nanoTime() + command.get("ms").getAsLong() * 1_000_000;
        var pool = Executors.newFixedThreadPool(threads, Service::daemon);
        try {
            Callable<Seen> contender = () -> contend(end);
            var all = new Seen();
            for (var one : pool.invokeAll(Collections.nCopies(threads, contender))) {
                all.with(one.get());
            }
            return Map.of("sections", all.counts[0], "violations", all.counts[1], "turns", all.turns);
        } finally {
            pool.shutdownNow();
        }
    }

    private Seen contend(long end) throws Exception {
        var target = Kinds.of(services, command);
        JsonObject take = command.getAsJsonObject("take");
        JsonObject give = command.getAsJsonObject("give");
        var seen = new Seen();
        while (System.nanoTime() < end) {
            Object taken = target.call(take.get("method").getAsString(), take.getAsJsonArray("args"));
            if (!Boolean.FALSE.equals(taken)) {
                section(seen);
                target.call(give.get("method").getAsString(), filledIn(give.getAsJsonArray("args"), taken));
            }
        }
        return seen;
    }

    private void section(Seen seen) {
        var service = services.apply(command);
        var redisson = service.redisson();
        var gauge = redisson.getAtomicLong(command.get("gauge").getAsString());
        boolean alone = gauge.incrementAndGet() <= command.get("most").getAsLong();
        for (JsonElement other : command.getAsJsonArray("without")) {
            alone &= redisson.getAtomicLong(other.getAsString()).get() == 0;
        }
        if (command.has("counter")) {
            RBucket<Long> counter = redisson.getBucket(command.get("counter").getAsString(), LongCodec.INSTANCE);
            Long before = counter.get();
            long now = (before == null ? 0 : before) + 1;
            counter.set(now);
            seen.turns.add(new Object[] {service.holder(), now});
        }
        gauge.decrementAndGet();
        seen.counts[0] += 1;
        seen.counts[1] += alone ? 0 : 1;
    }

    private static JsonArray filledIn(JsonArray args, Object taken) {
        var filled = new JsonArray();
        for (JsonElement arg : args) {
            filled.add(arg.equals(new JsonPrimitive("$taken")) ? new Gson().toJsonTree(taken) : arg);
        }
        return filled;
    }
}
