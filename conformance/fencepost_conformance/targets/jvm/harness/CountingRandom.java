package fencepost;

import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.security.Provider;
import java.security.SecureRandomSpi;
import java.security.Security;

/**
 * Replaces the JVM's source of randomness, so that the n-th UUID of a trace is known in advance. Kafka's coordinator
 * draws from it only for new member ids (G-WIRE-28). Draw n is the first bytes of SHA-256 over n in decimal;
 * targets/ids.py computes the same.
 */
public final class CountingRandom extends SecureRandomSpi {
    private static final long serialVersionUID = 1L;
    private static long drawn = 0;

    /** Must run before anything in this JVM requests a UUID. */
    static void install() {
        Security.insertProviderAt(new CountingProvider(), 1);
    }

    static void reset() {
        drawn = 0;
    }

    static long drawn() {
        return drawn;
    }

    /** Sets the number of the next draw. */
    static void draw(long n) {
        drawn = n;
    }

    @Override
    protected void engineNextBytes(byte[] bytes) {
        byte[] digest = digest(Long.toString(drawn++));
        for (int i = 0; i < bytes.length; i++) {
            bytes[i] = digest[i % digest.length];
        }
    }

    @Override
    protected byte[] engineGenerateSeed(int length) {
        byte[] seed = new byte[length];
        engineNextBytes(seed);
        return seed;
    }

    @Override
    protected void engineSetSeed(byte[] seed) {
        // The stream is fixed on purpose.
    }

    private static byte[] digest(String text) {
        try {
            return MessageDigest.getInstance("SHA-256").digest(text.getBytes(StandardCharsets.US_ASCII));
        } catch (NoSuchAlgorithmException impossible) {
            throw new IllegalStateException(impossible);
        }
    }

    private static final class CountingProvider extends Provider {
        private static final long serialVersionUID = 1L;

        CountingProvider() {
            super("Fencepost", "1", "the same random numbers for every trace");
            put("SecureRandom.Counting", CountingRandom.class.getName());
        }
    }
}
