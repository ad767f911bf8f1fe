package flinkmagic.reuse;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.Map;

import org.apache.spark.SparkContext;
import org.apache.spark.sql.internal.SessionState;
import scala.collection.JavaConverters$;

/**
 * The settings of sessions, told apart by numbers: equal settings have the same number as long as it is among the last.
 * Hadoop's count whether they were set or are its defaults: a setting that is set to its default says nothing else.
 *
 * A session has some hundred settings and Hadoop a thousand, and a key is asked for several times an action. Seen on
 * Spark 3.5 and 4.3.
 */
public class SessionSettings {
    private static final int MOST = 50;
    private static final ArrayList<Object[]> KNOWN = new ArrayList<Object[]>();
    private static int last = 0;

    /** The number of what a session and Hadoop are set to now. */
    public static Integer numberOf(SessionState state, SparkContext context) {
        Object session = state.conf().getAllConfs();
        Map<Object, Object> hadoop = new HashMap<Object, Object>();
        for (Map.Entry<String, String> entry : context.hadoopConfiguration()) {
            hadoop.put(entry.getKey(), entry.getValue());
        }
        synchronized (KNOWN) {
            for (int i = KNOWN.size() - 1; i >= 0; i--) {
                Object[] known = (Object[]) KNOWN.get(i);
                if (known[1].equals(session) && known[2].equals(hadoop)) {
                    KNOWN.add(KNOWN.remove(i));
                    return (Integer) known[0];
                }
            }
            last++;
            KNOWN.add(new Object[] {Integer.valueOf(last), session, hadoop});
            if (KNOWN.size() > MOST) {
                KNOWN.remove(0);
            }
            return Integer.valueOf(last);
        }
    }

    /** The settings of a number that was given just now: those of the session, and those of Hadoop. */
    public static Map[] ofNumber(int number) {
        synchronized (KNOWN) {
            for (int i = KNOWN.size() - 1; i >= 0; i--) {
                Object[] known = (Object[]) KNOWN.get(i);
                if (((Integer) known[0]).intValue() == number) {
                    return new Map[] {JavaConverters$.MODULE$.mapAsJavaMap((scala.collection.Map) known[1]), (Map) known[2]};
                }
            }
        }
        throw new IllegalStateException(MOST + " other settings have been met since");
    }
}
