package edgelatch.peer;

import com.google.gson.Gson;
import com.google.gson.GsonBuilder;
import com.google.gson.JsonArray;
import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import java.io.BufferedReader;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;

/**
 * Redisson, led by lines of JSON: one command per line comes in, one answer per line goes out, as soon as it is there.
 *
 * <pre>
 * {"id":1,"do":"open","service":"s","config":{…}}                    a Redisson client, see {@link Service}
 * {"id":2,"do":"close","service":"s"}
 * {"id":3,"do":"call","service":"s","thread":"t","object":{…},"method":"tryLock","args":[{"ms":5},{"ms":-1}]}
 * {"id":4,"do":"holder","service":"s","thread":"t"}                  who the thread is in Redis
 * {"id":5,"do":"waits","service":"s","thread":"t"}                   whether it is inside of one of Redisson's waits
 * {"id":6,"do":"interrupt","service":"s","thread":"t"}
 * {"id":7,"do":"contend","service":"s","object":{…},…}               see {@link Contention}
 * </pre>
 *
 * Answers: {@code {"id":3,"value":true,"ms":7}} or {@code {"id":3,"error":"<class>","message":"…","cause":"<class>","ms":7}};
 * the cause is that at the root, which may be the error itself.
 */
public final class Peer {
    private static final Gson JSON = new GsonBuilder().serializeNulls().create();

    private final Map<String, Service> services = new ConcurrentHashMap<>();
    private final ExecutorService errands = Executors.newCachedThreadPool(Service::daemon);
    private final PrintStream answers;

    private Peer(PrintStream answers) {
        this.answers = answers;
    }

    /** Answers what it is asked until its input ends, and ends with it, whoever still waits. */
    public static void main(String[] args) throws IOException {
        var answers = new PrintStream(new FileOutputStream(FileDescriptor.out), false, StandardCharsets.UTF_8);
        // Nobody else writes there.
        System.setOut(System.err);
        var peer = new Peer(answers);
        try (var commands = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8))) {
            for (String line = commands.readLine(); line != null; line = commands.readLine()) {
                peer.begin(JsonParser.parseString(line).getAsJsonObject());
            }
        }
        Runtime.getRuntime().halt(0);
    }

    private void begin(JsonObject command) {
        var what = command.get("do").getAsString();
        switch (what) {
            // In the thread that it names, after what that thread was told before.
            case "call" -> thread(command).execute(() -> answer(command, () -> call(command)));
            case "holder" -> thread(command).execute(() -> answer(command, () -> service(command).holder()));
            default -> errands.execute(() -> answer(command, () -> errand(what, command)));
        }
    }

    private Object errand(String what, JsonObject command) throws Exception {
        switch (what) {
            case "open" -> open(command);
            case "close" -> services.remove(command.get("service").getAsString()).close();
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

    private void open(JsonObject command) {
        services.put(command.get("service").getAsString(), new Service(command.getAsJsonObject("config")));
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
