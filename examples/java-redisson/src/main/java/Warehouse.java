import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import org.redisson.Redisson;
import org.redisson.api.RFencedLock;
import org.redisson.api.RedissonClient;
import org.redisson.config.Config;

/** Counts the stock of a warehouse, while no Worker sells from it: POST /count with the number. */
public final class Warehouse {
    private static final int WAIT_SECONDS = 5;

    public static void main(String[] args) throws IOException {
        Config config = new Config();
        config.useSingleServer().setAddress(variable("REDIS_URL", "redis://127.0.0.1:6379"));
        RedissonClient redisson = Redisson.create(config);
        int port = Integer.parseInt(variable("PORT", "3000"));
        HttpServer server = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), port), 0);
        server.setExecutor(Executors.newCachedThreadPool());
        server.createContext("/count", exchange -> count(redisson.getFencedLock("stock:7"), exchange));
        server.start();
        System.out.println("listening on http://127.0.0.1:" + server.getAddress().getPort());
    }

    private static void count(RFencedLock lock, HttpExchange exchange) throws IOException {
        Long token = lock.tryLockAndGetToken(WAIT_SECONDS, TimeUnit.SECONDS);
        if (token == null) {
            respond(exchange, 503, "a Worker is selling");
            return;
        }
        String pieces;
        try {
            pieces = new String(exchange.getRequestBody().readAllBytes(), StandardCharsets.UTF_8);
        } finally {
            lock.unlock();
        }
        respond(exchange, 200, "counted " + pieces + " under token " + token);
    }

    private static void respond(HttpExchange exchange, int status, String text) throws IOException {
        byte[] body = text.getBytes(StandardCharsets.UTF_8);
        exchange.sendResponseHeaders(status, body.length);
        exchange.getResponseBody().write(body);
        exchange.close();
    }

    private static String variable(String name, String otherwise) {
        String value = System.getenv(name);
        return value == null ? otherwise : value;
    }
}
