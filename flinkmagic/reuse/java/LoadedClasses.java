package flinkmagic.reuse;

import java.io.BufferedReader;
import java.io.FileInputStream;
import java.io.InputStreamReader;
import java.lang.management.ManagementFactory;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

import javax.management.ObjectName;

/**
 * Tells which classes this JVM has loaded, and loads classes of these names in another JVM.
 *
 * Seen on Java 17: a class stands in a line of its own as `|--|--name/loader`; hidden classes have more slashes.
 */
public class LoadedClasses {
    private static final Pattern CLASS = Pattern.compile("[|\\- ]*([\\w.$]+)/(null|0x[0-9a-f]+)");

    /** The names, a line each, of all that are not hidden; of some there is no file. */
    public String names() throws Exception {
        Object told = ManagementFactory.getPlatformMBeanServer().invoke(
            new ObjectName("com.sun.management:type=DiagnosticCommand"),
            "vmClassHierarchy",
            new Object[] {new String[0]},
            new String[] {String[].class.getName()}
        );
        StringBuilder names = new StringBuilder();
        for (String line : ((String) told).split("\n")) {
            Matcher found = CLASS.matcher(line.trim());
            if (found.matches()) {
                names.append(found.group(1)).append('\n');
            }
        }
        return names.toString();
    }

    /** Loads the classes that a file names; those that are not there are left out. */
    public static void main(String[] arguments) throws Exception {
        BufferedReader names = new BufferedReader(new InputStreamReader(new FileInputStream(arguments[0]), "UTF-8"));
        try {
            for (String name = names.readLine(); name != null; name = names.readLine()) {
                try {
                    Class.forName(name, false, ClassLoader.getSystemClassLoader());
                } catch (ClassNotFoundException notThere) {
                    continue; // another loader's
                } catch (LinkageError unfit) {
                    continue; // names a class that is in no file
                }
            }
        } finally {
            names.close();
        }
    }
}
