package edgelatch.peer;

import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;
import org.redisson.Redisson;
import org.redisson.api.RedissonClient;
import org.redisson.client.codec.StringCodec;
import org.redisson.config.Config;

/**
 * A Redisson client with its threads: what one Java service is to the others.
 *
 * <p>It is configured as by Redisson's own YAML, of which JSON is a part. Only the codec is a name here: {@code "string"}.
 */
final class Service {
    private final RedissonClient redisson;
    private final Map<String, Caller> threads = new ConcurrentHashMap<>();
    private final Map<JsonObject, Target> targets = new ConcurrentHashMap<>();

    /** Connects. */
    Service(JsonObject settings) {
        JsonElement codec = settings.remove("codec");
        var config = Config.fromYAML(settings.toString());
        if (codec != null && codec.getAsString().equals("string")) {
            config.setCodec(StringCodec.INSTANCE);
        }
        redisson = Redisson.create(config);
    }

    /** A thread that keeps no program alive. */
    static Thread daemon(Runnable work) {
        var thread = new Thread(work);
        thread.setDaemon(true);
        return thread;
    }

    RedissonClient redisson() {
        return redisson;
    }

    /** The thread of this name, made when it is first asked for. */
    Caller thread(String name) {
        return threads.computeIfAbsent(name, unused -> new Caller());
    }

    /** The object that this describes, made once, as a service has it in a field. */
    Target target(JsonObject description, Supplier<Target> make) {
        var known = targets.get(description);
        return known != null ? known : targets.computeIfAbsent(description, unused -> make.get());
    }

    /** Who the calling thread is in Redis. */
    String holder() {
        return redisson.getId() + ":" + Thread.currentThread().getId();
    }

    /** Disconnects first: nothing is undone by those who still wait or hold. */
    void close() {
        redisson.shutdown(0, 1, TimeUnit.SECONDS);
        threads.values().forEach(Caller::end);
    }
}
