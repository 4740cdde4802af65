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
 * <p>Without arguments it serves one {@link Session} on stdin and stdout. With {@code --listen} it prints {@code listening on
 * <port>}, a port of 127.0.0.1, and serves a session of its own to each connection. Either way the JVM ends when its input does,
 * or on SIGTERM, and leaves in Redis what is held there.
 */
public final class Peer {
    /** Connections that the system queues until they are accepted: all test processes may connect at once. */
    private static final int BACKLOG = 256;

    private Peer() {}

    public static void main(String[] args) throws IOException {
        var out = new FileOutputStream(FileDescriptor.out);
        // Only answers go to stdout.
        System.setOut(System.err);
        if (args.length == 0) {
            new Session(System.in, out).run();
        } else if (args.length == 1 && args[0].equals("--listen")) {
            listen(new PrintStream(out, true));
        } else {
            System.err.println("usage: Peer [--listen]");
            Runtime.getRuntime().halt(2);
        }
        // Daemon threads may be inside of a call that nothing can interrupt.
        Runtime.getRuntime().halt(0);
    }

    /** Serves connections until the input ends. */
    private static void listen(PrintStream out) throws IOException {
        var server = new ServerSocket(0, BACKLOG, InetAddress.getByName("127.0.0.1"));
        Service.daemon(() -> accept(server)).start();
        out.println("listening on " + server.getLocalPort());
        while (System.in.read() != -1) {
            // Input has no meaning in this mode but its end.
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
            // A test process resets its connection when it ends before it has read every answer.
        }
    }
}
