package fencepost;

/** Writes JSON arrays in ASCII. Byte strings are written as text, one character (0…255) a byte. */
final class Json {
    private static final char[] HEX = "0123456789abcdef".toCharArray();

    private final StringBuilder out = new StringBuilder(1 << 12);
    private boolean first = true;

    Json open() {
        comma();
        out.append('[');
        first = true;
        return this;
    }

    Json close() {
        out.append(']');
        first = false;
        return this;
    }

    Json number(long value) {
        comma();
        out.append(value);
        return this;
    }

    Json flag(boolean value) {
        return number(value ? 1 : 0);
    }

    Json none() {
        comma();
        out.append("null");
        return this;
    }

    Json raw(CharSequence json) {
        comma();
        out.append(json);
        return this;
    }

    Json text(String value) {
        if (value == null) {
            return none();
        }
        comma();
        out.append('"');
        for (int i = 0; i < value.length(); i++) {
            character(value.charAt(i));
        }
        out.append('"');
        return this;
    }

    Json bytes(byte[] value) {
        comma();
        out.append('"');
        for (byte one : value) {
            character((char) (one & 0xff));
        }
        out.append('"');
        return this;
    }

    private void character(char c) {
        if (c >= ' ' && c < 127 && c != '"' && c != '\\') {
            out.append(c);
        } else {
            out.append("\\u").append(HEX[c >> 12]).append(HEX[c >> 8 & 15]).append(HEX[c >> 4 & 15]).append(HEX[c & 15]);
        }
    }

    private void comma() {
        if (first) {
            first = false;
        } else {
            out.append(',');
        }
    }

    int length() {
        return out.length();
    }

    /** Takes what was written out, and starts again with nothing. */
    String take() {
        String text = out.toString();
        out.setLength(0);
        first = true;
        return text;
    }
}
