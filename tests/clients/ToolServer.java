import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import org.apache.kafka.common.utils.Exit;

/**
 * Many runs of command-line tools in one JVM, for the start of a JVM costs more than most of the runs.
 *
 * A line of standard input is a run: the main class and its arguments, separated by tabs. The answer is a line
 * "exit-code bytes-of-output bytes-of-errors", then those bytes. A tool that calls for the end of the JVM ends its
 * own run only.
 */
public class ToolServer {
    static final class Ended extends Error {
        final int code;

        Ended(int code) {
            super("exit " + code, null, false, false);
            this.code = code;
        }
    }

    static Integer said; // what the tool of this run called for first, also if it caught our error

    static void ended(int code, String message) {
        if (said == null) {
            said = code;
            if (message != null) System.err.println(message);
        }
        throw new Ended(code);
    }

    static int run(String mainClass, String[] arguments) {
        said = null;
        try {
            Class.forName(mainClass).getMethod("main", String[].class).invoke(null, (Object) arguments);
        } catch (ReflectiveOperationException failure) {
            Throwable cause = failure.getCause() == null ? failure : failure.getCause();
            if (!(cause instanceof Ended)) {
                cause.printStackTrace();
                if (said == null) said = 1;
            }
        }
        return said == null ? 0 : said;
    }

    public static void main(String[] none) throws Exception {
        PrintStream answers = System.out;
        Exit.setExitProcedure(ToolServer::ended);
        Exit.setHaltProcedure(ToolServer::ended);
        BufferedReader runs = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = runs.readLine(); line != null; line = runs.readLine()) {
            String[] words = line.split("\t", -1);
            ByteArrayOutputStream out = new ByteArrayOutputStream();
            ByteArrayOutputStream errors = new ByteArrayOutputStream();
            System.setOut(new PrintStream(out, true, StandardCharsets.UTF_8));
            System.setErr(new PrintStream(errors, true, StandardCharsets.UTF_8));
            int code = run(words[0], Arrays.copyOfRange(words, 1, words.length));
            System.out.flush();
            System.err.flush();
            answers.println(code + " " + out.size() + " " + errors.size());
            out.writeTo(answers);
            errors.writeTo(answers);
            answers.flush();
        }
        Runtime.getRuntime().halt(0); // threads that a tool left behind keep nobody
    }
}
