package fencepost;

import java.net.InetAddress;
import java.net.UnknownHostException;
import java.util.HashMap;
import java.util.Map;

/**
 * Client hosts of the trace as addresses, the only form in which Kafka takes them. A host that is not written as Kafka
 * writes an address ("/127.0.0.1") goes in under a made-up one and comes out under its own name again.
 */
final class Hosts {
    private final Map<String, InetAddress> addresses = new HashMap<>();
    private final Map<String, String> names = new HashMap<>();

    InetAddress address(String host) {
        return addresses.computeIfAbsent(host, this::resolve);
    }

    /** Whether there are addresses that were made up. */
    boolean madeUp() {
        return !names.isEmpty();
    }

    /** The trace's name for what Kafka calls the host. */
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
