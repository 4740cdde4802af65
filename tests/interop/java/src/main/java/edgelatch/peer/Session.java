package edgelatch.peer;

import com.google.gson.Gson;
import com.google.gson.GsonBuilder;
import com.google.gson.JsonArray;
import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import java.io.BufferedOutputStream;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;

/**
 * Executes the commands of one test process: reads one JSON object per line, and writes one
 * response per line as soon as it has one. Names of services are private to the session.
 *
 * <pre>
 * {"id":1,"do":"open","service":"s","config":{…}}                    a Redisson client, see {@link Service}
 * {"id":2,"do":"close","service":"s"}
 * {"id":3,"do":"call","service":"s","thread":"t","object":{…},"method":"tryLock","args":[{"ms":5},{"ms":-1}]}
 * {"id":4,"do":"holder","service":"s","thread":"t"}                  the thread's holder in Redis
 * {"id":5,"do":"waits","service":"s","thread":"t"}                   whether it is in one of Redisson's waits
 * {"id":6,"do":"interrupt","service":"s","thread":"t"}
 * {"id":7,"do":"contend","service":"s","object":{…},…}               see {@link Contention}
 * </pre>
 *
 * Responses: {@code {"id":3,"value":true,"ms":7}} or
 * {@code {"id":3,"error":"<class>","message":"…","cause":"<class>","ms":7}}; the cause is the root
 * cause, which may be the error itself.
 */
final class Session implements AutoCloseable {
    private static final Gson JSON = new GsonBuilder().serializeNulls().create();

    private final Map<String, Service> services = new ConcurrentHashMap<>();
    private final ExecutorService errands = Executors.newCachedThreadPool(Service::daemon);
    private final BufferedReader commands;
    private final PrintStream answers;
    private volatile boolean isClosed;

    Session(InputStream commands, OutputStream answers) {
        this.commands = new BufferedReader(new InputStreamReader(commands, StandardCharsets.UTF_8));
        this.answers = new PrintStream(new BufferedOutputStream(answers), false, StandardCharsets.UTF_8);
    }

    /** Starts each command as it arrives, until the input ends. */
    void run() throws IOException {
        for (String line = commands.readLine(); line != null; line = commands.readLine()) {
            begin(JsonParser.parseString(line).getAsJsonObject());
        }
    }

    /** Closes every service as if its process were killed, and ends all threads. */
    @Override
    public void close() {
        isClosed = true;
        services.keySet().forEach(this::close);
        errands.shutdownNow();
    }

    private void close(String name) {
        var service = services.remove(name);
        if (service != null) {
            service.close();
        }
    }

    private void begin(JsonObject command) {
        var what = command.get("do").getAsString();
        switch (what) {
            // Runs in the named thread, after its earlier commands.
            case "call" -> thread(command).execute(() -> answer(command, () -> call(command)));
            case "holder" -> thread(command).execute(() -> answer(command, () -> service(command).holder()));
            default -> errands.execute(() -> answer(command, () -> errand(what, command)));
        }
    }

    private Object errand(String what, JsonObject command) throws Exception {
        switch (what) {
            case "open" -> open(command);
            case "close" -> close(command.get("service").getAsString());
            case "waits" -> {
                return thread(command).waits();
            }
            case "interrupt" -> thread(command).interrupt();
            case "contend" -> {
                return Contention.of(this::service, command).run();
            }
            default -> throw new IllegalArgumentException("no such command: " + what);
        }
        return null;
    }

    private Object call(JsonObject command) throws Exception {
        JsonArray args = command.getAsJsonArray("args");
        return Kinds.of(this::service, command).call(command.get("method").getAsString(), args);
    }

    private void open(JsonObject command) throws IOException {
        var name = command.get("service").getAsString();
        services.put(name, new Service(command.getAsJsonObject("config")));
        // `close` may have missed a service that connected meanwhile.
        if (isClosed) {
            close(name);
        }
    }

    private Service service(JsonObject named) {
        var service = services.get(named.get("service").getAsString());
        if (service == null) {
            throw new IllegalArgumentException("no such service: " + named.get("service"));
        }
        return service;
    }

    private Caller thread(JsonObject command) {
        return service(command).thread(command.get("thread").getAsString());
    }

    private void answer(JsonObject command, Callable<Object> work) {
        var answer = new JsonObject();
        answer.add("id", command.get("id"));
        long start = System.nanoTime();
        try {
            answer.add("value", JSON.toJsonTree(work.call()));
        } catch (Throwable thrown) {
            var told = thrown instanceof ExecutionException ? thrown.getCause() : thrown;
            answer.addProperty("error", told.getClass().getName());
            answer.addProperty("message", String.valueOf(told.getMessage()));
            answer.addProperty("cause", root(told).getClass().getName());
        }
        answer.addProperty("ms", (System.nanoTime() - start) / 1_000_000);
        synchronized (answers) {
            answers.println(JSON.toJson(answer));
            answers.flush();
        }
    }

    private static Throwable root(Throwable thrown) {
        return thrown.getCause() == null ? thrown : root(thrown.getCause());
    }
}
