package flinkmagic.reuse;

import java.lang.management.ManagementFactory;
import javax.management.ObjectName;

/**
 * Gives this JVM's own compilers directives (JEP 165), as `jcmd PID Compiler.directives_add FILE` does.
 *
 * Seen on OpenJDK 17, 21 and 25. Another JVM has no such bean, which is an InstanceNotFoundException.
 */
public class CompilerDirectives {
    private boolean isAdded;

    /**
     * Adds the directives of a file, once for a JVM: directives that are added again stand there twice.
     *
     * @throws IllegalStateException with the JVM's words, if it has not taken them: the command itself only prints them
     */
    public synchronized void add(String file) throws Exception {
        if (isAdded) {
            return;
        }
        ObjectName commands = new ObjectName("com.sun.management:type=DiagnosticCommand");
        Object[] arguments = {new String[] {file}};
        String[] signature = {String[].class.getName()};
        Object answer =
            ManagementFactory.getPlatformMBeanServer().invoke(commands, "compilerDirectivesAdd", arguments, signature);
        if (!String.valueOf(answer).contains("compiler directives added")) {
            throw new IllegalStateException(String.valueOf(answer));
        }
        isAdded = true;
    }
}
