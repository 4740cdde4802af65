package edgelatch.peer;

import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.PrintStream;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;

/**
 * Redisson for the tests of other languages.
 *
 * <p>Without arguments it serves one {@link Session} on stdin and stdout. With {@code --listen} it
 * prints {@code listening on <port>}, a port of 127.0.0.1, and serves a separate session to each
 * connection. In both modes the JVM exits when its input ends, or on SIGTERM, and leaves its holds
 * in Redis.
 */
public final class Peer {
    /**
     * Connections that the system queues until they are accepted: all test processes may connect at
     * once.
     */
    private static final int BACKLOG = 256;

    private Peer() {}

    public static void main(String[] args) throws IOException {
        var out = new FileOutputStream(FileDescriptor.out);
        // Stdout is reserved for responses.
        System.setOut(System.err);
        if (args.length == 0) {
            new Session(System.in, out).run();
        } else if (args.length == 1 && args[0].equals("--listen")) {
            listen(new PrintStream(out, true));
        } else {
            System.err.println("usage: Peer [--listen]");
            Runtime.getRuntime().halt(2);
        }
        // Daemon threads may be in a call that cannot be interrupted.
        Runtime.getRuntime().halt(0);
    }

    /** Serves connections until the input ends. */
    private static void listen(PrintStream out) throws IOException {
        var server = new ServerSocket(0, BACKLOG, InetAddress.getByName("127.0.0.1"));
        Service.daemon(() -> accept(server)).start();
        out.println("listening on " + server.getLocalPort());
        while (System.in.read() != -1) {
            // In this mode only the end of the input has a meaning.
        }
    }

    private static void accept(ServerSocket server) {
        try {
            while (true) {
                var socket = server.accept();
                Service.daemon(() -> serve(socket)).start();
            }
        } catch (IOException failed) {
            failed.printStackTrace();
            Runtime.getRuntime().halt(1);
        }
    }

    private static void serve(Socket socket) {
        try (socket) {
            socket.setTcpNoDelay(true);
            try (var session = new Session(socket.getInputStream(), socket.getOutputStream())) {
                session.run();
            }
        } catch (IOException ended) {
            // A test process that ends before it has read every response resets its connection.
        }
    }
}
