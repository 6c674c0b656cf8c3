package fencepost;

import java.io.BufferedOutputStream;
import java.io.BufferedReader;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;

/** Reads one trace a line, or some events of one, from standard input; writes a line of observations for it. */
public final class Main {
    private Main() { }

    public static void main(String[] arguments) throws IOException {
        CountingRandom.install();
        endWithParent();
        OutputStream out = new BufferedOutputStream(new FileOutputStream(FileDescriptor.out), 1 << 16);
        System.setOut(System.err); // nothing else may write between the answers
        ObjectMapper json = new ObjectMapper();
        Json answer = new Json();
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.US_ASCII), 1 << 16);
        out.write("ready\n".getBytes(StandardCharsets.US_ASCII));
        out.flush();
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            try {
                JsonNode command = json.readTree(line);
                if (command.get(0).isTextual()) {
                    Trace.continueTrace(command, answer);
                } else {
                    Trace.run(command, answer);
                }
            } catch (RuntimeException | IOException broken) {
                broken.printStackTrace();
                answer.clear().open().text(broken.toString()).close();
            }
            answer.moveTo(out);
            out.write('\n');
            if (!in.ready()) {
                out.flush();
            }
        }
    }

    /** Ends with the parent: a killed parent cannot close the input while another child of it still holds the pipe. */
    private static void endWithParent() {
        ProcessHandle.current().parent().ifPresent(parent -> parent.onExit().thenRun(() -> Runtime.getRuntime().halt(0)));
    }
}
