package edgelatch.peer;

import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import java.io.IOException;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;
import org.redisson.Redisson;
import org.redisson.api.RedissonClient;
import org.redisson.client.codec.StringCodec;
import org.redisson.config.Config;

/**
 * A Redisson client with its threads: one Java service from the point of view of the others.
 *
 * <p>Its configuration is Redisson's own YAML, a superset of JSON. Only the codec is given by name:
 * {@code "string"}.
 */
final class Service {
    private final RedissonClient redisson;
    private final Map<String, Caller> threads = new ConcurrentHashMap<>();
    private final Map<JsonObject, Target> targets = new ConcurrentHashMap<>();

    /** Connects. Only the parser of Redisson 3 declares the exception. */
    Service(JsonObject settings) throws IOException {
        JsonElement codec = settings.remove("codec");
        var config = Config.fromYAML(settings.toString());
        if (codec != null && codec.getAsString().equals("string")) {
            config.setCodec(StringCodec.INSTANCE);
        }
        redisson = Redisson.create(config);
    }

    /** Creates a daemon thread: it does not keep the JVM running. */
    static Thread daemon(Runnable work) {
        var thread = new Thread(work);
        thread.setDaemon(true);
        return thread;
    }

    RedissonClient redisson() {
        return redisson;
    }

    /** The thread of this name, created on first use. */
    Caller thread(String name) {
        return threads.computeIfAbsent(name, unused -> new Caller());
    }

    /** The object with this description, created once, like a field of a service. */
    Target target(JsonObject description, Supplier<Target> make) {
        var known = targets.get(description);
        return known != null ? known : targets.computeIfAbsent(description, unused -> make.get());
    }

    /** The holder of the calling thread in Redis. */
    String holder() {
        return redisson.getId() + ":" + Thread.currentThread().getId();
    }

    /** Disconnects first, so that threads that still wait or hold undo nothing. */
    void close() {
        redisson.shutdown(0, 1, TimeUnit.SECONDS);
        threads.values().forEach(Caller::end);
    }
}
