package fencepost;

import java.net.InetAddress;
import java.net.UnknownHostException;
import java.util.HashMap;
import java.util.Map;

/**
 * Client hosts of the trace as addresses, the only form that Kafka accepts. A host that is not in Kafka's form of an
 * address ("/127.0.0.1") gets an invented address, and its own name in the output.
 */
final class Hosts {
    private final Map<String, InetAddress> addresses = new HashMap<>();
    private final Map<String, String> names = new HashMap<>();

    InetAddress address(String host) {
        return addresses.computeIfAbsent(host, this::resolve);
    }

    /** Whether there are invented addresses. */
    boolean madeUp() {
        return !names.isEmpty();
    }

    /** Returns the trace's name for Kafka's name of the host. */
    String name(String kafkas) {
        return names.getOrDefault(kafkas, kafkas);
    }

    private InetAddress resolve(String host) {
        try {
            if (host.matches("/[0-9a-f.:]+")) {
                InetAddress literal = InetAddress.getByName(host.substring(1));
                if (literal.toString().equals(host)) {
                    return literal;
                }
            }
            int n = names.size() + 1;
            InetAddress made = InetAddress.getByAddress(new byte[] {0, (byte) (n >> 16), (byte) (n >> 8), (byte) n});
            names.put(made.toString(), host);
            return made;
        } catch (UnknownHostException impossible) {
            throw new IllegalStateException(impossible);
        }
    }
}
