package edgelatch.peer;

import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.time.Duration;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.TimeUnit;

/**
 * One of Redisson's objects, and every method of its interface by name, including those of its
 * asynchronous interface.
 *
 * <p>Arguments are numbers, texts and lists of texts; a time is {@code {"ms":5}}, whether the
 * method takes a {@code long} with a unit or a {@code Duration}. This distinguishes {@code
 * tryAcquire(2)} from {@code tryAcquire({"ms":2})}.
 */
record Target(Class<?> api, Object object) {
    /** Calls the method; waits for the result of an asynchronous one. */
    Object call(String name, JsonArray args) throws Exception {
        var methods = Arrays.stream(api.getMethods()).filter(method -> method.getName().equals(name));
        // Of two overloads with the same meaning, the one that is not deprecated.
        var byAge = Comparator.comparing((Method method) -> method.isAnnotationPresent(Deprecated.class));
        for (Method method : methods.sorted(byAge).toList()) {
            Object[] values = values(method.getParameterTypes(), args);
            if (values != null) {
                return invoke(method, values);
            }
        }
        throw new IllegalArgumentException("no such method: " + api.getSimpleName() + "." + name + args);
    }

    private Object invoke(Method method, Object[] values) throws Exception {
        try {
            Object answer = method.invoke(object, values);
            return answer instanceof CompletionStage<?> stage ? stage.toCompletableFuture().get() : answer;
        } catch (InvocationTargetException wrapper) {
            throw wrapper.getCause() instanceof Exception cause ? cause : wrapper;
        }
    }

    /** The arguments converted to these parameters, or null if they fit another overload. */
    private static Object[] values(Class<?>[] parameters, JsonArray args) {
        var values = new Object[parameters.length];
        int unit = Arrays.asList(parameters).indexOf(TimeUnit.class);
        int next = 0;
        for (int place = 0; place < parameters.length; place++) {
            if (place == unit) {
                values[place] = TimeUnit.MILLISECONDS;
                continue;
            }
            if (next == args.size()) {
                return null;
            }
            values[place] = value(parameters[place], place < unit, args.get(next++));
            if (values[place] == null) {
                return null;
            }
        }
        return next == args.size() ? values : null;
    }

    private static Object value(Class<?> parameter, boolean hasUnit, JsonElement arg) {
        if (arg instanceof JsonObject time && time.has("ms")) {
            long ms = time.get("ms").getAsLong();
            return parameter == Duration.class ? (Object) Duration.ofMillis(ms) : timed(parameter, hasUnit, ms);
        }
        if (arg instanceof JsonArray texts) {
            boolean fits = parameter.isAssignableFrom(List.class);
            return fits ? texts.asList().stream().map(JsonElement::getAsString).toList() : null;
        }
        var primitive = arg.getAsJsonPrimitive();
        if (primitive.isString()) {
            return parameter == String.class ? primitive.getAsString() : null;
        }
        if (parameter == int.class) {
            return primitive.getAsInt();
        }
        return parameter == long.class && !hasUnit ? (Object) primitive.getAsLong() : null;
    }

    private static Object timed(Class<?> parameter, boolean hasUnit, long ms) {
        return parameter == long.class && hasUnit ? ms : null;
    }
}
