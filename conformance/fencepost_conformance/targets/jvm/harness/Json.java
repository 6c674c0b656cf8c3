package fencepost;

import java.io.IOException;
import java.io.OutputStream;
import java.util.Arrays;

/**
 * Writes JSON arrays in ASCII into its own buffer, since text builders would take most of a step's time. Byte strings
 * are written as text, one character (0…255) a byte.
 */
final class Json {
    private static final byte[] HEX = {'0', '1', '2', '3', '4', '5', '6', '7', '8', '9', 'a', 'b', 'c', 'd', 'e', 'f'};
    private static final byte[] NULL = {'n', 'u', 'l', 'l'};
    private static final boolean[] PLAIN = new boolean[256];

    static {
        Arrays.fill(PLAIN, ' ', 127, true);
        PLAIN['"'] = false;
        PLAIN['\\'] = false;
    }

    private byte[] out = new byte[1 << 12];
    private int size = 0;
    private boolean first = true;

    Json open() {
        comma();
        out[size++] = '[';
        first = true;
        return this;
    }

    Json close() {
        room(1);
        out[size++] = ']';
        first = false;
        return this;
    }

    Json number(long value) {
        comma();
        if (value >= 0 && value < 10) {
            out[size++] = (byte) ('0' + value);
            return this;
        }
        String digits = Long.toString(value);
        room(digits.length());
        for (int i = 0; i < digits.length(); i++) {
            out[size++] = (byte) digits.charAt(i);
        }
        return this;
    }

    Json flag(boolean value) {
        return number(value ? 1 : 0);
    }

    Json none() {
        return raw(NULL, NULL.length);
    }

    /** Appends the output of another writer. */
    Json raw(byte[] json) {
        return raw(json, json.length);
    }

    private Json raw(byte[] json, int length) {
        comma();
        room(length);
        System.arraycopy(json, 0, out, size, length);
        size += length;
        return this;
    }

    Json text(String value) {
        if (value == null) {
            return none();
        }
        comma();
        room(6 * value.length() + 2);
        out[size++] = '"';
        for (int i = 0; i < value.length(); i++) {
            character(value.charAt(i));
        }
        out[size++] = '"';
        return this;
    }

    Json bytes(byte[] value) {
        comma();
        room(6 * value.length + 2);
        out[size++] = '"';
        for (byte one : value) {
            character((char) (one & 0xff));
        }
        out[size++] = '"';
        return this;
    }

    private void character(char c) {
        if (c < 256 && PLAIN[c]) {
            out[size++] = (byte) c;
            return;
        }
        out[size++] = '\\';
        out[size++] = 'u';
        out[size++] = HEX[c >> 12];
        out[size++] = HEX[c >> 8 & 15];
        out[size++] = HEX[c >> 4 & 15];
        out[size++] = HEX[c & 15];
    }

    /** Ensures room for at least two bytes besides the comma. */
    private void comma() {
        room(3);
        if (first) {
            first = false;
        } else {
            out[size++] = ',';
        }
    }

    private void room(int bytes) {
        if (out.length - size < bytes) {
            out = Arrays.copyOf(out, Math.max(2 * out.length, size + bytes));
        }
    }

    /** Whether the buffer holds exactly these bytes. */
    boolean holds(byte[] json) {
        return json != null && Arrays.equals(out, 0, size, json, 0, json.length);
    }

    /** Empties the buffer. */
    Json clear() {
        size = 0;
        first = true;
        return this;
    }

    /** Returns the contents and empties the buffer. */
    byte[] take() {
        byte[] written = Arrays.copyOf(out, size);
        clear();
        return written;
    }

    void moveTo(OutputStream stream) throws IOException {
        stream.write(out, 0, size);
        clear();
    }
}
