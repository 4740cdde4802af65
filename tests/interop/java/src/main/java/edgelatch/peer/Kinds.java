package edgelatch.peer;

import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Function;
import org.redisson.api.LockOptions;
import org.redisson.api.LockOptions.BackOff;
import org.redisson.api.RCountDownLatch;
import org.redisson.api.RFencedLock;
import org.redisson.api.RLock;
import org.redisson.api.RPermitExpirableSemaphore;
import org.redisson.api.RSemaphore;
import org.redisson.api.RedissonClient;

/**
 * Redisson's objects, by kind and name: {@code {"kind":"fairLock","name":"x"}}.
 *
 * <p>Spin locks may have a {@code backOff}; group locks have {@code values}; multi-locks and
 * red locks have {@code locks}; each lock may name another {@code service}.
 */
final class Kinds {
    private Kinds() {}

    /** The object of a command. */
    static Target of(Function<JsonObject, Service> services, JsonObject command) {
        var service = services.apply(command);
        var object = command.getAsJsonObject("object");
        return service.target(object, () -> make(services, service, object));
    }

    private static Target make(Function<JsonObject, Service> services, Service service, JsonObject object) {
        RedissonClient redisson = service.redisson();
        return switch (text(object, "kind")) {
            case "semaphore" -> new Target(RSemaphore.class, redisson.getSemaphore(text(object, "name")));
            case "permitExpirableSemaphore" -> new Target(
                RPermitExpirableSemaphore.class, redisson.getPermitExpirableSemaphore(text(object, "name")));
            case "countDownLatch" -> new Target(RCountDownLatch.class, redisson.getCountDownLatch(text(object, "name")));
            case "fencedLock" -> new Target(RFencedLock.class, redisson.getFencedLock(text(object, "name")));
            default -> new Target(RLock.class, lock(services, service, object));
        };
    }

    @SuppressWarnings("deprecation")
    private static RLock lock(Function<JsonObject, Service> services, Service caller, JsonObject object) {
        RedissonClient redisson = (object.has("service") ? services.apply(object) : caller).redisson();
        return switch (text(object, "kind")) {
            case "lock" -> redisson.getLock(text(object, "name"));
            case "nonReentrantLock" -> newer(redisson, "getNonReentrantLock", text(object, "name"));
            case "spinLock" -> redisson.getSpinLock(text(object, "name"), backOff(object));
            case "fairLock" -> redisson.getFairLock(text(object, "name"));
            case "nonReentrantFairLock" -> newer(redisson, "getNonReentrantFairLock", text(object, "name"));
            case "readLock" -> redisson.getReadWriteLock(text(object, "name")).readLock();
            case "writeLock" -> redisson.getReadWriteLock(text(object, "name")).writeLock();
            case "fencedLock" -> redisson.getFencedLock(text(object, "name"));
            case "groupLock" -> redisson.getMultiLock(text(object, "name"), values(object));
            case "multiLock" -> redisson.getMultiLock(members(services, caller, object));
            case "redLock" -> redisson.getRedLock(members(services, caller, object));
            default -> throw new IllegalArgumentException("no such kind: " + object);
        };
    }

    /** A lock of a kind that Redisson has since version 4. */
    private static RLock newer(RedissonClient redisson, String method, String name) {
        try {
            return (RLock) RedissonClient.class.getMethod(method, String.class).invoke(redisson, name);
        } catch (ReflectiveOperationException missing) {
            throw new IllegalArgumentException("no such kind in this version: " + method, missing);
        }
    }

    private static RLock[] members(Function<JsonObject, Service> services, Service caller, JsonObject object) {
        var members = new ArrayList<RLock>();
        for (JsonElement element : object.getAsJsonArray("locks")) {
            members.add(lock(services, caller, element.getAsJsonObject()));
        }
        return members.toArray(RLock[]::new);
    }

    private static List<Object> values(JsonObject object) {
        JsonArray values = object.getAsJsonArray("values");
        return values.asList().stream().<Object>map(JsonElement::getAsString).toList();
    }

    /**
     * {@code {"delay":64}} or {@code {"initialDelay":1,"maxDelay":128,"multiplier":2}}; Redisson's
     * default without one.
     */
    private static BackOff backOff(JsonObject object) {
        JsonObject named = object.getAsJsonObject("backOff");
        if (named == null) {
            return new LockOptions.ExponentialBackOff();
        }
        if (named.has("delay")) {
            return new LockOptions.ConstantBackOff().delay(named.get("delay").getAsLong());
        }
        return new LockOptions.ExponentialBackOff()
            .initialDelay(named.get("initialDelay").getAsLong())
            .maxDelay(named.get("maxDelay").getAsLong())
            .multiplier(named.get("multiplier").getAsInt());
    }

    private static String text(JsonObject object, String field) {
        return object.get(field).getAsString();
    }
}
